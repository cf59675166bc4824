"""The digest through a real node: chain and rolling, what survives, what a person changed.

What a model writes is its own affair; what a segment must not lose is computed. These tests drive
`CompactionNode` with summarisers that lose, echo or overdo, and look at the record and the view.
"""

import itertools
import re
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import (
    CompactionNode,
    ExtractiveSummarizer,
    edit_digest,
    forget,
    merge_compaction,
    model_view,
    restore,
)
from langgraph_compaction.digest.segments import parts_of
from tests.benchmarks.survival.counting import tokens
from tests.support import folding
from tests.support.folding import DIGEST, Recorder, State

MODES = ("chain", "rolling")


def node(model: Any, **values: Any) -> CompactionNode:
    settings: dict[str, Any] = {
        "context_window": 20_000,
        "trigger": ("tokens", 2_000),
        "max_digest_tokens": 1_200,
        "token_counter": tokens,
    }
    return folding.node(model, **(settings | values))


def turns(start: int, number: int, said: Sequence[str] = ()) -> list[BaseMessage]:
    """Turns of the agent, and before them what the user says."""
    found: list[BaseMessage] = [
        HumanMessage(text, id=f"h{start}-{at}") for at, text in enumerate(said)
    ]
    for n in range(start, start + number):
        call = {"name": "look", "args": {"part": f"part {n}"}, "id": f"c{n}"}
        found.append(AIMessage("", tool_calls=[call], id=f"a{n}"))
        found.append(ToolMessage("word " * 110, tool_call_id=f"c{n}", id=f"t{n}"))
    return found


def visited(compact: CompactionNode, state: State) -> State:
    before = deepcopy(state)
    update = compact.invoke(state)
    assert state == before
    record = update.get("compaction")
    return {**state, "compaction": merge_compaction(state["compaction"], record)}


def grown(compact: CompactionNode, state: State, rounds: int, *, start: int = 1) -> State:
    """The state after so many rounds that each bring a fold."""
    for number in range(start, start + rounds):
        state = {**state, "messages": [*state["messages"], *turns(100 * number, 18)]}
        state = visited(compact, state)
    return state


def opened(*said: str) -> State:
    """A thread that begins with a task and with what the user says after it."""
    task = HumanMessage("Look at all parts.", id="task")
    newest = HumanMessage("Go on with it.", id="newest")
    return {"messages": [task, *turns(0, 1, said), newest, *turns(1, 18)], "compaction": {}}


def segments(state: State) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = state["compaction"].get("segments", [])
    return found


def digest(state: State) -> str:
    return "\n".join(one["text"] for one in segments(state))


# ---- the chain and its alternative


@pytest.mark.parametrize("mode", MODES)
def test_a_thread_stays_within_its_budget_and_is_covered_without_a_gap(mode: str) -> None:
    compact = node(Recorder(), digest=mode)
    state = opened()
    for number in range(1, 30):
        state = grown(compact, state, 1, start=number)
        found = segments(state)
        assert sum(one["tokens"] for one in found) <= 1_200
        assert found[0]["first_index"] == 0
        for one, following in itertools.pairwise(found):
            assert following["first_index"] == one["last_index"] + 1
        assert found[-1]["last_index"] == state["compaction"]["last_summarized_index"]
    assert (len(segments(state)) == 1) == (mode == "rolling")


def test_a_new_segment_leaves_the_bytes_before_it_as_they_are() -> None:
    compact = node(Recorder(), max_digest_tokens=8_000)
    state = grown(compact, opened(), 1)
    for number in range(2, 8):
        before = digest(state)
        state = grown(compact, state, 1, start=number)
        assert digest(state).startswith(before)
        assert digest(state) != before


def test_a_rolling_summariser_reads_the_record_so_far_and_only_new_messages() -> None:
    recorder = Recorder(lambda _: f"{DIGEST}\n## Findings\nRound {len(recorder.prompts)} is done.")
    state = grown(node(recorder, digest="rolling"), opened(), 3)
    assert len(recorder.prompts) == 3
    assert "<record>" not in recorder.prompts[0]
    last = recorder.prompts[-1]
    assert last.count("<record>\n") == 1
    assert "Round 2 is done." in last
    assert "part 117" not in last  # folded two rounds ago
    assert "part 300" in last
    (only,) = segments(state)
    assert (only["first_index"], only["level"]) == (0, 0)
    assert "Round 3 is done." in only["text"]
    assert "Round 2 is done." not in only["text"]


def test_a_rolling_summariser_may_keep_the_record_as_it_is() -> None:
    kept = "- The ledger is kept in /srv/ledger.db, and nobody but the keeper may touch it at all."

    def keeps(_: list[BaseMessage]) -> str:
        return f"{DIGEST}\n## Findings\n{kept}\n{kept.replace('ledger', 'index')}"

    events: list[dict[str, Any]] = []
    grown(node(keeps, digest="rolling", hook=events.append), opened(), 4)
    assert [event for event in events if event["type"] == "compaction.rejected"] == []


@pytest.mark.parametrize("mode", MODES)
def test_how_full_the_digest_is_tells_the_summariser_what_to_shorten(mode: str) -> None:
    recorder = Recorder()
    grown(node(recorder, digest=mode, max_digest_tokens=400), opened(), 25)
    rewriting = [prompt for prompt in recorder.prompts if "<record>" in prompt]
    assert rewriting
    hints = ("There is room:", "Room is getting short:", "There is little room:")
    assert all(sum(hint in prompt for hint in hints) == 1 for prompt in rewriting)
    others = [prompt for prompt in recorder.prompts if "<record>" not in prompt]
    assert not any(hint in prompt for hint in hints for prompt in others)


def test_a_thread_may_change_from_chain_to_rolling_and_back() -> None:
    recorder = Recorder()
    state = grown(node(recorder, max_digest_tokens=4_000), opened("Never touch /srv/keep."), 3)
    assert len(segments(state)) == 3
    state = grown(node(recorder, digest="rolling", max_digest_tokens=4_000), state, 1, start=4)
    assert len(segments(state)) == 1
    state = grown(node(recorder, max_digest_tokens=4_000), state, 1, start=5)
    assert len(segments(state)) == 2
    assert "- Never touch /srv/keep." in digest(state)


def test_at_the_hard_limit_extracts_stand_beside_a_rolling_digest() -> None:
    state = grown(node(Recorder(), digest="rolling"), opened(), 2)
    (before,) = segments(state)

    def down(_: list[BaseMessage]) -> str:
        raise RuntimeError("503")

    compact = node(down, digest="rolling", trigger=("tokens", 2_000), context_window=2_300)
    state = grown(compact, state, 1, start=3)
    assert segments(state)[0] == before
    assert segments(state)[-1]["model"] == "extractive"


# ---- what survives


@pytest.mark.parametrize("mode", MODES)
def test_what_the_user_forbade_and_named_outlasts_a_summariser_that_keeps_nothing(
    mode: str,
) -> None:
    said = ["Never restart the ledger of Basel. Port 8443 is ours.", "不要删除 amber 仓库的数据。"]
    state = grown(node(Recorder(), digest=mode), opened(*said), 25)
    text = digest(state)
    assert text.count("- Never restart the ledger of Basel.") == 1
    assert text.count("- 不要删除 amber 仓库的数据。") == 1
    assert "8443" in text


@pytest.mark.parametrize("mode", MODES)
def test_of_a_value_that_changed_the_newest_stands_last(mode: str) -> None:
    values = ["30 s", "45 s", "20 s", "75 s"]
    compact = node(Recorder(), digest=mode)
    state = opened(f"The upload timeout is {values[0]}.")
    state = visited(compact, state)
    for number, value in enumerate(values[1:], 1):
        news = [HumanMessage(f"From now on the upload timeout is {value}.", id=f"u{number}")]
        state = {**state, "messages": [*state["messages"], *news]}
        state = grown(compact, state, 1, start=number)
    state["messages"] = [*state["messages"], HumanMessage("Go on.", id="later")]
    state = grown(compact, state, 10, start=len(values))
    text = digest(state)
    assert max(values, key=text.rfind) == "75 s"


def test_a_reference_is_taken_from_the_original_not_from_what_was_clamped() -> None:
    hidden = "x" * 30_000 + "\nconfig_file = /srv/hidden/place.yaml\n" + "y" * 30_000
    call = {"name": "cat", "args": {}, "id": "c"}
    odd = [AIMessage("", tool_calls=[call], id="a"), ToolMessage(hidden, tool_call_id="c", id="t")]
    recorder = Recorder()
    compact = node(recorder, context_window=200_000, trigger=("tokens", 15_000), clear=False)
    state = visited(compact, {"messages": [*odd, *turns(0, 8)], "compaction": {}})
    assert "/srv/hidden/place.yaml" not in recorder.prompts[0]
    assert "/srv/hidden/place.yaml" in digest(state)


def test_what_the_text_has_is_not_listed() -> None:
    has = "## Goal\nSee /srv/a.yaml.\n## State now\nUnder way.\n## Next step\nThe next part."
    state = visited(node(lambda _: has), opened("Look at /srv/a.yaml and /srv/b.yaml then."))
    parts = parts_of(segments(state)[0])
    assert "/srv/b.yaml" in parts.quotes[0]
    assert not any("/srv/" in name for name in (*parts.mentioned, *parts.printed))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("heading", ["Decisions", "Commitments and open items"])
def test_a_decision_outlasts_texts_that_forget_it(mode: str, heading: str) -> None:
    promise = "I put the retries into the crimson dagger queue, since the writers block each other."
    answers = iter([f"{DIGEST}\n## {heading}\n- {promise}"])
    compact = node(lambda _: next(answers, DIGEST), digest=mode, max_digest_tokens=1_000)
    state = grown(compact, visited(compact, opened()), 20)
    assert promise in digest(state)


@pytest.mark.parametrize("mode", MODES)
def test_an_echoing_summariser_makes_no_digest_grow(mode: str) -> None:
    def echoes(messages: list[BaseMessage]) -> str:
        return re.sub(r"</?\w+[^>]*>", "", str(messages[-1].content))

    state = grown(node([echoes, ExtractiveSummarizer()], digest=mode), opened(), 12)
    assert sum(one["tokens"] for one in segments(state)) <= 1_200


# ---- what a person changed


@pytest.mark.parametrize("mode", MODES)
def test_an_edit_sticks_through_later_folds(mode: str) -> None:
    compact = node(Recorder(), digest=mode)
    state = grown(compact, opened(), 2)
    corrected = "The ledger is in Bern.\nThe user said, word for word: nothing."
    state = {**state, **edit_digest(state, corrected, segment=0)}
    edited = segments(state)[0]
    state = grown(compact, state, 20, start=3)
    assert edited in segments(state)
    assert corrected in digest(state)
    assert sum(one["tokens"] for one in segments(state)) <= 1_200


@pytest.mark.parametrize("mode", MODES)
def test_a_fold_computed_before_an_edit_is_dropped(mode: str) -> None:
    compact = node(Recorder(), digest=mode)
    state = grown(compact, opened(), 2)
    more = {**state, "messages": [*state["messages"], *turns(900, 18)]}
    late = compact.invoke(more)["compaction"]
    edit = edit_digest(more, "A person wrote this.", segment=0)["compaction"]
    for first, second in ((late, edit), (edit, late)):
        merged = merge_compaction(merge_compaction(state["compaction"], first), second)
        assert merged == edit
    # The span of the dropped fold is folded again.
    again = visited(compact, {**more, "compaction": edit})
    assert again["compaction"]["last_summarized_index"] == late["last_summarized_index"]
    assert "A person wrote this." in digest(again)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_restored_is_visible_and_may_be_folded_anew(mode: str) -> None:
    recorder = Recorder()
    compact = node(recorder, digest=mode)
    state = grown(compact, opened("Never restart the ledger."), 2)
    folded = [one.id for one in state["messages"]]
    state = {**state, **restore(state, segment=0)}
    assert [one.id for one in model_view(state)] == folded
    asked = len(recorder.prompts)
    state = visited(compact, state)
    assert len(recorder.prompts) > asked
    assert len(model_view(state)) < len(folded)
    assert "- Never restart the ledger." in digest(state)


@pytest.mark.parametrize("mode", MODES)
def test_forget_leaves_nothing_of_it_in_the_record(mode: str) -> None:
    compact = node(Recorder(lambda _: f"{DIGEST}\nThe word is swordfish."), digest=mode)
    state = grown(compact, opened("Never tell the code 7719-alpha to anyone."), 3)
    assert "swordfish" in str(state["compaction"])
    assert "7719-alpha" in str(state["compaction"])
    update = forget(state)
    assert "swordfish" not in str(update["compaction"])
    assert "7719-alpha" not in str(update["compaction"])
