"""Passing an error on out of an error handler of LangGraph."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from types import FunctionType

from langgraph_compaction.run.faults import said_by


def copied(error: BaseException) -> BaseException:
    """The same error as another object: class, arguments, attributes, traceback, cause and notes.

    A handler that raises the very object that it was given leaves a thread that LangGraph (1.2)
    takes for finished: the run fails, and no later one goes on with the node that failed. The
    error itself comes back only where no other object can be made of its class.
    """
    # The constructor of a class of the program's own may take something else than the arguments
    # that the error has in the end.
    of_its_own = isinstance(type(error).__init__, FunctionType)
    for way in (_made, copy) if of_its_own else (copy, _made):
        with suppress(Exception):
            found = way(error)
            vars(found).update(vars(error))
            if (
                found is not error
                and type(found) is type(error)
                and said_by(found) == said_by(error)
            ):
                found.__cause__, found.__context__ = error.__cause__, error.__context__
                found.__suppress_context__ = error.__suppress_context__
                return found.with_traceback(error.__traceback__)
    return error


def _made(error: BaseException) -> BaseException:
    """An object of the error's class that no constructor was called for."""
    try:
        found = type(error).__new__(type(error), *error.args)
    except TypeError:
        found = BaseException.__new__(type(error), *error.args)
    found.args = error.args
    return found
