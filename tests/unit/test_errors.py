"""Errors cross processes: task queues and process pools pickle them."""

import copy
import pickle

import pytest

from langgraph_compaction import (
    BudgetError,
    CascadeExhaustedError,
    ConfigurationError,
    MissingChannelError,
    RecordError,
    RecordVersionError,
)

ERRORS = [
    ConfigurationError("trigger: wrong"),
    MissingChannelError("compaction", "There is no such channel."),
    RecordError("unreadable"),
    RecordVersionError(9, 1),
    BudgetError("Too large.", sizes={"digest": 7}, limit=5),
    CascadeExhaustedError(["one: down", "two: silent"]),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_it_was(error: Exception) -> None:
    for back in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(back) is type(error)
        assert str(back) == str(error)
        assert vars(back) == vars(error)
