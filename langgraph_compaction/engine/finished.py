"""A fold beside the agent that has come to its end when a call is refused: its digest is there.

Nobody is asked and nothing is waited for. What it brought is better than the extracts that would
stand in for it, and it is paid for.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any, NamedTuple

from langgraph_compaction.engine import writer_for
from langgraph_compaction.engine.answers import Answers, StaleError, answered
from langgraph_compaction.engine.background import (
    CORRECTED,
    NO_END,
    OTHER,
    dropped,
    is_corrected,
    resumed,
)
from langgraph_compaction.engine.condensing import condensed
from langgraph_compaction.engine.effects import BackgroundFold, DropFold, Effect, Emit, MarkTold
from langgraph_compaction.engine.folding import folded
from langgraph_compaction.engine.tally import Tally
from langgraph_compaction.engine.visit import Visit
from langgraph_compaction.errors import RedactionError, shortened
from langgraph_compaction.plan.decision import decide_refused
from langgraph_compaction.record import CompactionRecord


class Finished(NamedTuple):
    """What a finished fold brought.

    Attributes:
        record: the record with its digest; None where it has none that can be applied.
        tally: its calls.
        failed: whether the summarisers were asked in vain, which counts towards their cool-down.
    """

    record: CompactionRecord | None
    tally: Tally
    failed: bool = False


class _StaleSpanError(Exception):
    """What was to be folded is not there any more, or changed."""


class _NoDigestError(Exception):
    """The summarisers were asked in vain; the text says why."""


def finished(
    visit: Visit, fold: BackgroundFold, common: dict[str, Any]
) -> Generator[Effect, object, Finished]:
    """Apply the answers of a fold that has come to its end; where they do not fit, it says so.

    An error that was to end the run is told instead: the run can go on without that digest.

    Args:
        visit: the thread as the refused call saw it, with the policy that folds are made by.
        fold: the thread's fold.
        common: fields of every event.

    Raises:
        RedactionError: the ``redact`` function failed, and the settings say that this ends the run.
    """
    answers, failed = Answers(fold), False
    try:
        steps = _folded(resumed(visit, fold), fold)
        found = yield from answered(steps, answers, may_ask=lambda _: False)
    except StaleError:
        why = OTHER if fold.complete else NO_END
    except _StaleSpanError as error:
        why = str(error)
    except _NoDigestError as error:
        why, failed = str(error), True
    except RedactionError as error:
        if visit.policy.raises:
            raise
        why, failed = str(error).removesuffix("."), True
    except Exception as error:
        if error is not answers.raised:
            raise
        why = f"it ended with {shortened(error)}"
    else:
        yield MarkTold(fold)
        return found
    if not fold.told:
        yield Emit(dropped(visit, common, fold, why))
    yield DropFold(fold)
    # One that was applied before did not fail then: something else has changed since.
    return Finished(None, Tally(), failed and not fold.told)


def _folded(visit: Visit, fold: BackgroundFold) -> Generator[Effect, object, Finished]:
    """Fold the span that was chosen when the fold began.

    Raises:
        _StaleSpanError: it is not there any more, or the digest was corrected.
        _NoDigestError: there is no digest of it.
    """
    if is_corrected(visit, fold):
        raise _StaleSpanError(CORRECTED)
    # That the summarisers are left alone now does not matter: they were asked.
    decision = replace(decide_refused(visit), cooling=None)
    if decision.span is None:
        raise _StaleSpanError("its span is not to be folded")
    writer = writer_for(visit, decision)
    made = yield from folded(visit, decision, decision.span, writer, urgent=False)
    if made.record is visit.record:
        raise _NoDigestError("no tier wrote an acceptable digest")
    chain = yield from condensed(visit, made.record, writer, urgent=False)
    if visit.size(visit.layout(chain.record)) >= visit.size(decision.layout):
        raise _NoDigestError("a digest was written but saves nothing")
    return Finished(chain.record, writer.tally)
