"""Clearing before a fold, and where a fold fails or is not worth its call."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langgraph_compaction import (
    ConfigurationError,
    merge_compaction,
    model_view,
    request_compaction,
    restore,
)
from tests.integration.clearing import cleared, history, node, read, talk, text_of, visited
from tests.support.folding import Recorder, State, failing, state_of


def test_where_clearing_is_not_enough_the_summariser_reads_the_originals() -> None:
    summariser = Recorder()
    compact = node(summariser, target=2_500)
    state = visited(compact, state_of(history(10, *talk())))
    assert summariser.prompts
    assert "result 0 line of text" in summariser.read
    assert "[Cleared" not in summariser.read
    assert "clearing" not in state["compaction"]


def test_where_a_fold_would_leave_no_less_results_are_cleared() -> None:
    """Large results in a small window: neither reaches the target, and clearing asks nobody."""
    summariser = Recorder()
    compact = node(summariser, target=2_500)
    told = compact.explain(state_of(history()))
    assert told.action == "clear"
    assert "no more than a fold would" in str(told)
    state = visited(compact, state_of(history()))
    assert not summariser.prompts
    assert 2_500 < compact.measure(state).tokens == told.tokens_after
    small = {"context_window": 8_000, "trigger": ("fraction", 0.8)}
    hard = node(summariser, target="auto", keep="auto", **small)
    assert hard.explain(state_of(history(7))).need == "hard"
    visited(hard, state_of(history(7)))
    assert not summariser.prompts


def test_a_restore_shows_cleared_results_again_where_there_is_no_digest() -> None:
    state = visited(node(), state_of(history()))
    assert cleared(node().view(state))
    state |= restore(state)
    assert not cleared(node().view(state))
    assert model_view(state) == state["messages"]
    with pytest.raises(ConfigurationError, match="no segments yet"):
        restore(state)


def test_without_a_target_all_is_cleared_that_may_be() -> None:
    """Else each clearing would end just below the trigger, and break the prefix at every step."""
    state = visited(node(target=None), state_of(history()))
    assert len(cleared(node().view(state))) == 7


def test_what_was_cleared_is_folded_from_its_originals_later() -> None:
    summariser = Recorder()
    compact = node(summariser)
    state = visited(compact, state_of(history()))
    assert "clearing" in state["compaction"]
    state["messages"] += [message for n in range(20, 60) for message in read(n, text="x " * 400)]
    while not summariser.prompts:
        state = visited(compact, state)
        state["messages"] += [HumanMessage("go on " * 400, id=f"h{len(state['messages'])}")]
    assert "result 0 line of text" in summariser.read
    assert "[Cleared" not in summariser.read


def test_a_clearing_only_grows_until_the_next_fold() -> None:
    compact = node(clear_keep=1)
    state = state_of(history())
    marks = []
    for n in range(20, 40):
        state = visited(compact, state)
        if "segments" in state["compaction"]:
            break
        before = set(cleared(compact.view(state)))
        marks.append(state["compaction"].get("clearing", {}).get("last_index", -1))
        state["messages"] += read(n, path="/src/0.py")  # would supersede an older one
        assert set(cleared(compact.view(state))) == before
    assert marks == sorted(marks)
    assert len(set(marks)) > 1


def test_a_restore_shows_originals_and_not_their_placeholders() -> None:
    state = visited(node(clear=False), state_of(history()))
    state["messages"] += [message for n in range(20, 30) for message in read(n)]
    state = visited(node(clear=False), state)
    assert len(state["compaction"]["segments"]) == 2
    state["messages"] += [message for n in range(30, 40) for message in read(n)]
    state = visited(node(), state)
    assert cleared(model_view(state))
    for segment in range(len(state["compaction"]["segments"])):
        update = restore(state, segment=segment)
        back = {**state, "compaction": merge_compaction(state["compaction"], update["compaction"])}
        assert cleared(model_view(back)) == []


def test_a_clearing_has_to_be_worth_the_broken_prefix() -> None:
    small = [m for n in range(3) for m in read(n, text=text_of(n, 1_200))]
    filler = [HumanMessage("w " * 3_600, id=f"f{n}") for n in range(2)]
    tail = [m for n in range(4, 7) for m in read(n, text="ok")]
    state = state_of([HumanMessage("Go.", id="h"), *small, *filler, *tail])
    assert node(clear_min_share=0.2, target=None).explain(state).action == "fold"
    # Two results would bring the view below the trigger, but are not worth it: three are.
    compact = node(target=None)
    assert compact.explain(state).action == "clear"
    assert cleared(compact.view(visited(compact, state))) == ["t0", "t1", "t2"]


def test_off_means_off() -> None:
    compact = node(clear=False)
    state = visited(compact, state_of(history()))
    assert "segments" in state["compaction"]
    assert cleared(compact.view(state)) == []


def test_a_thread_that_prunes_folds_unless_it_is_told_to_clear() -> None:
    pruning: dict[str, Any] = {"history": "prune", "archive": None}
    assert node(**pruning).explain(state_of(history())).action == "fold"
    assert node(clear=True, **pruning).explain(state_of(history())).action == "clear"


def unfoldable() -> State:
    """A task that fills the window, one old result that is worth no fold, and the newest one."""
    task = HumanMessage("word " * 9_000, id="h")
    return state_of([task, *read(0, text=text_of(0, 700)), *read(1, text="ok")])


def test_at_the_hard_limit_a_visit_clears_and_clips_and_explain_says_so() -> None:
    events = list[dict[str, Any]]()
    limits: dict[str, Any] = {"context_window": 9_000, "trigger": ("tokens", 7_900)}
    compact = node(hook=events.append, clear_keep=1, clear_min_chars=100, **limits)
    state = unfoldable()
    told = compact.explain(state)
    assert (told.need, told.action, told.span) == ("hard", "clear", None)
    state = {**state, "compaction": compact.invoke(state)["compaction"]}
    assert [event["type"] for event in events] == ["compaction.cleared", "compaction.completed"]
    assert (events[0]["first_index"], events[0]["last_index"]) == told.cleared
    assert events[0]["reason"] == told.reason
    assert events[0]["tokens_after"] == told.tokens_after
    assert cleared(compact.view(state)) == ["t0"]
    assert events[1]["tokens_after"] == compact.measure(state).tokens <= 8_100


def test_a_veto_at_the_hard_limit_clears_before_it_clips() -> None:
    events = list[dict[str, Any]]()

    def veto(event: dict[str, Any]) -> bool:
        events.append(event)
        return False

    compact = node(hook=veto, context_window=9_000, trigger=("tokens", 7_900), clear_min_share=0.99)
    state = state_of(history())
    assert compact.explain(state).action == "fold"
    state = {**state, "compaction": compact.invoke(state)["compaction"]}
    assert [event["type"].partition(".")[2] for event in events] == [
        "started", "skipped", "cleared"
    ]  # fmt: skip
    assert compact.measure(state).tokens <= 8_100


def test_a_request_folds() -> None:
    compact = node()
    asked = {"messages": history(4), "compaction": {}, **request_compaction()}
    assert compact.explain(asked).action == "fold"


def test_steps_and_messages_are_brought_down_by_folds_alone() -> None:
    for trigger in (("messages", 10), ("steps", 5)):
        assert node(trigger=trigger, target=None).explain(state_of(history())).action == "fold"


# ---- where the summarisers fail


def test_at_the_hard_limit_clearing_comes_before_extracts() -> None:
    compact = node(failing, context_window=9_000, trigger=("tokens", 7_900), target=2_000)
    state = visited(compact, state_of(history()))
    assert "segments" not in state["compaction"]
    assert cleared(compact.view(state))
    assert compact.measure(state).tokens <= 8_100


def test_extracts_follow_where_clearing_is_not_enough_at_the_hard_limit() -> None:
    talk = [HumanMessage(f"word{n} " * 600, id=f"w{n}") for n in range(12)]
    compact = node(failing, context_window=9_000, trigger=("tokens", 7_900))
    state = visited(compact, state_of([*talk, *history(3)]))
    assert state["compaction"]["segments"][0]["model"] == "extractive"
    assert compact.measure(state).tokens <= 8_100


def test_a_fold_that_failed_and_a_clearing_complete_nothing() -> None:
    events: list[dict[str, Any]] = []
    compact = node(failing, target=2_500, hook=events.append)
    compact.invoke(state_of(history(10, *talk())))
    kinds = [event["type"].removeprefix("compaction.") for event in events]
    assert kinds == ["started", "tier_failed", "failed", "cleared"]
    assert "the digest is as it was" in events[2]["reason"]
    assert events[3]["tokens_after"] < events[3]["tokens_before"]


def test_while_the_summarisers_rest_clearing_goes_on() -> None:
    compact = node(failing, target=2_500)
    state = visited(compact, state_of(history(10, *talk())))
    assert state["compaction"]["failures"]["count"] == 1
    assert len(cleared(compact.view(state))) == 7  # in the visit whose fold failed
    assert compact.invoke(state) == {}
    state["compaction"]["failures"]["count"] = 3  # the breaker is open
    state["messages"] += [m for n in (20, 21) for m in read(n, text=text_of(n, 9_000))]
    again = compact.explain(state)
    assert again.action == "clear"
    assert again.cooling is not None
    state = visited(compact, state)
    assert len(cleared(compact.view(state))) == 9
    assert state["compaction"]["failures"]["count"] == 3
