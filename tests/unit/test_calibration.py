"""The provider's report of the newest call corrects the count, and only while it holds."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction import CompactionNode, Measurement, edit_digest, restore
from tests.support.replay import good_summary

TEXT = "It was opened, cleaned, closed and run for an hour without a fault. " * 6


def usage(tokens: int, **details: int) -> dict[str, Any]:
    return {
        "input_tokens": tokens,
        "output_tokens": 10,
        "total_tokens": tokens + 10,
        "input_token_details": details,
    }


def node(**options: Any) -> CompactionNode:
    values: dict[str, Any] = {"context_window": 50_000, "token_counter": "estimate"}
    return CompactionNode(good_summary, **{**values, **options})


def measured(messages: list[BaseMessage], record: Any = None, **options: Any) -> Measurement:
    return node(**options).measure({"messages": messages, "compaction": record or {}})


def counted(messages: list[BaseMessage]) -> int:
    return measured(messages, calibrate=False).tokens


BEFORE: list[BaseMessage] = [HumanMessage("Check the pumps." + TEXT, id="h")]
AFTER: list[BaseMessage] = [HumanMessage("And the valves?" + TEXT, id="h2")]


def reply(reported: dict[str, Any] | None, **more: Any) -> AIMessage:
    return AIMessage("They run.", id="a", usage_metadata=reported, **more)  # type: ignore[arg-type]


def test_what_was_reported_counts_and_what_came_after_it_is_added() -> None:
    messages = [*BEFORE, reply(usage(3_000)), *AFTER]
    found = measured(messages)
    assert found.tokens == 3_000 + counted(messages[1:])
    assert found.counted == counted(messages)
    assert found.overhead == 3_000 - counted(BEFORE)
    assert found.reported == 3_000
    assert found.tokens == found.counted + found.overhead


def test_the_newest_report_counts() -> None:
    messages = [*BEFORE, reply(usage(900)), *AFTER, AIMessage("Yes.", usage_metadata=usage(1_100))]  # type: ignore[arg-type]
    assert measured(messages).reported == 1_100


def test_a_report_replaces_what_was_given_by_hand() -> None:
    messages = [*BEFORE, reply(usage(3_000))]
    assert measured(messages, overhead_tokens=700).overhead == 3_000 - counted(BEFORE)
    assert measured(BEFORE, overhead_tokens=700).overhead == 700


def test_streaming_without_usage_leaves_the_count() -> None:
    for message in (reply(None), AIMessageChunk("They run.", id="a")):
        found = measured([*BEFORE, message, *AFTER])
        assert found.reported is None
        assert found.tokens == counted([*BEFORE, message, *AFTER])


def test_an_older_report_counts_where_the_newest_call_has_none() -> None:
    messages = [*BEFORE, reply(usage(3_000)), *AFTER, AIMessage("Yes.", id="b")]
    assert measured(messages).reported == 3_000


@pytest.mark.parametrize(
    ("reported", "details", "total"),
    [
        (3_000, {"cache_read": 2_000}, 3_000),  # LangChain's way: included
        (3_000, {"cache_read": 1_000, "cache_creation": 500}, 3_000),
        (100, {"cache_read": 2_900}, 3_000),  # Anthropic's own way: beside
        (100, {"cache_read": 2_000, "cache_creation": 900}, 3_000),
    ],
)
def test_cached_tokens_are_input(reported: int, details: dict[str, int], total: int) -> None:
    assert measured([*BEFORE, reply(usage(reported, **details))]).reported == total


@pytest.mark.parametrize("tokens", [0, 1, 20])
def test_a_report_that_cannot_be_true_is_not_believed(tokens: int) -> None:
    messages = [*BEFORE, reply(usage(tokens))]
    assert measured(messages).tokens == counted(messages)


def test_fewer_tokens_than_counted_are_believed_down_to_half() -> None:
    messages = [*BEFORE, reply(usage(counted(BEFORE) - 20))]
    assert measured(messages).tokens == counted(messages) - 20


@pytest.mark.parametrize("kind", ["server_tool_use", "web_search_call"])
def test_a_call_in_which_the_provider_called_itself_is_a_sum(kind: str) -> None:
    message = AIMessage(
        [{"type": kind, "id": "s", "name": "web_search"}, {"type": "text", "text": "Found."}],
        usage_metadata=usage(3_000),  # type: ignore[arg-type]
    )
    assert measured([*BEFORE, message]).reported is None


def test_calls_of_the_client_are_no_sum() -> None:
    call = {"name": "look", "args": {}, "id": "c"}
    content: list[Any] = [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]
    message = AIMessage(content, tool_calls=[call], usage_metadata=usage(3_000))  # type: ignore[arg-type,list-item]
    assert measured([*BEFORE, message, ToolMessage("ok", tool_call_id="c")]).reported == 3_000


@pytest.mark.parametrize("counter", ["approximate", "chars/4+400", len])
def test_a_counter_of_other_units_is_not_mixed_with_reports(counter: Any) -> None:
    messages = [*BEFORE, reply(usage(3_000))]
    assert measured(messages, token_counter=counter).reported is None
    assert measured(messages, token_counter=counter, calibrate=True).reported == 3_000


def test_the_system_message_of_the_state_is_counted_once() -> None:
    messages = [SystemMessage("You inspect pumps. " + TEXT, id="s"), *BEFORE, reply(usage(3_000))]
    found = measured(messages)
    assert found.tokens == 3_000 + counted(messages[-1:])


# ---- after the view changed


def long_thread(tokens: int = 9_000) -> list[BaseMessage]:
    return [
        HumanMessage("Check the pumps.", id="h"),
        *(
            AIMessage(f"Pump {n}. {TEXT}", id=f"a{n}", usage_metadata=usage(tokens + n))  # type: ignore[arg-type]
            for n in range(20)
        ),
    ]


def test_a_report_fires_the_trigger_once_and_none_from_before_the_fold() -> None:
    compact = node(trigger=("tokens", 8_000), keep=("tokens", 500))
    state: dict[str, Any] = {"messages": long_thread(), "compaction": {}}
    assert compact.measure(state).reported == 9_019
    state.update(compact.invoke(state))
    assert len(state["compaction"]["segments"]) == 1
    found = compact.measure(state)
    assert found.reported is None, "a report from before the fold says nothing of this view"
    assert compact.invoke(state) == {}
    state["messages"] = [*state["messages"], AIMessage("Ok.", id="n", usage_metadata=usage(7_000))]  # type: ignore[arg-type]
    assert compact.measure(state).reported == 7_000


def folded(reported: int, **options: Any) -> tuple[dict[str, Any], Measurement]:
    """The last event of a visit to a long thread, and what is measured after it."""
    events: list[dict[str, Any]] = []
    compact = node(keep=("tokens", 500), hook=events.append, **options)
    state: dict[str, Any] = {"messages": long_thread(reported), "compaction": {}}
    state.update(compact.invoke(state))
    return events[-1], compact.measure(state)


def test_after_a_fold_what_was_reported_beyond_shrinks_with_the_messages() -> None:
    total = counted(long_thread()[:-1])
    done, after = folded(2 * total, trigger=("tokens", total))
    assert done["tokens_before"] > 2 * total
    assert done["tokens_after"] == pytest.approx(2 * after.counted, rel=0.01)


def test_what_was_reported_of_messages_that_are_folded_is_no_reason_to_give_up() -> None:
    # Five times as many tokens as counted: images, say, or a tokenizer for another language.
    done, after = folded(12_000, trigger=("tokens", 4_000), context_window=14_000)
    assert done["type"] == "compaction.completed"
    assert done["tokens_after"] < 8_000
    assert after.tokens < 8_000


def test_what_was_told_of_tools_stays_after_a_fold() -> None:
    done, after = folded(9_000, trigger=("tokens", 8_000), overhead_tokens=6_000)
    assert done["tokens_after"] >= after.counted + 6_000
    assert after.overhead == 6_000


@pytest.mark.parametrize("change", ["edit", "restore"])
def test_a_change_by_hand_ends_what_was_reported_before(change: str) -> None:
    compact = node(trigger=("tokens", 8_000), keep=("tokens", 500))
    state: dict[str, Any] = {"messages": long_thread(), "compaction": {}}
    state.update(compact.invoke(state))
    state["messages"] = [*state["messages"], AIMessage("Ok.", id="n", usage_metadata=usage(7_000))]  # type: ignore[arg-type]
    assert compact.measure(state).reported == 7_000
    state.update(edit_digest(state, "Short.") if change == "edit" else restore(state))
    assert compact.measure(state).reported is None


def test_a_clip_ends_what_was_reported_before() -> None:
    compact = node(context_window=3_000, trigger=("tokens", 1_500), min_fold_tokens=1)
    messages: list[BaseMessage] = [HumanMessage(TEXT * 30, id="h"), reply(usage(2_950))]
    state: dict[str, Any] = {"messages": messages, "compaction": {}}
    assert compact.measure(state).reported == 2_950
    state.update(compact.invoke(state))
    assert "length_at_change" in state["compaction"]
    assert compact.measure(state).reported is None
    assert compact.measure(state).tokens <= 2_700


# ---- the provider's own tokenizer


class Provider:
    """Counts ``slope`` tokens for one of ours, and ``fixed`` more for each call."""

    def __init__(self, slope: float, fixed: int) -> None:
        self.slope, self.fixed = slope, fixed

    def reads(self, messages: list[BaseMessage]) -> int:
        return round(counted(messages) * self.slope) + self.fixed

    def thread(self, turns: int, words: int = 60) -> list[BaseMessage]:
        found: list[BaseMessage] = []
        for turn in range(turns):
            found.append(HumanMessage(f"{turn}: " + "It rains again. " * words, id=f"h{turn}"))
            said = usage(self.reads(found))
            found.append(AIMessage(f"Noted {turn}.", id=f"a{turn}", usage_metadata=said))  # type: ignore[arg-type]
        return found


@given(st.floats(0.6, 4.9), st.integers(0, 20_000), st.integers(1, 400))
def test_two_reports_tell_the_providers_tokenizer(slope: float, fixed: int, words: int) -> None:
    provider = Provider(slope, fixed)
    thread = [*provider.thread(3), HumanMessage("And now? " * words, id="now")]
    assert measured(thread).tokens == pytest.approx(provider.reads(thread), rel=0.01, abs=3)


def test_one_report_adds_what_is_counted() -> None:
    thread = [*Provider(2.0, 0).thread(1), HumanMessage("And now? " * 50, id="now")]
    assert measured(thread).tokens == thread[1].usage_metadata["input_tokens"] + counted(thread[1:])  # type: ignore[attr-defined]


def test_two_reports_close_together_tell_nothing() -> None:
    thread = [*Provider(3.0, 500).thread(2, words=5), HumanMessage("And now? " * 50, id="now")]
    assert measured(thread).tokens == thread[3].usage_metadata["input_tokens"] + counted(thread[3:])  # type: ignore[attr-defined]


def test_tools_that_were_added_between_the_reports_are_no_tokenizer() -> None:
    thread = Provider(1.0, 0).thread(2)
    last: Any = thread[3]
    last.usage_metadata["input_tokens"] += 9_000
    thread.append(HumanMessage("And now? " * 50, id="now"))
    # Not to be told from a sum over the chunks of a stream: for one call it is not believed.
    assert measured(thread).tokens == counted(thread)


def test_a_sum_over_the_chunks_of_a_stream_is_not_believed() -> None:
    assert measured(Provider(150.0, 0).thread(3)).reported is None


def test_prompts_of_different_sizes_are_no_tokenizer() -> None:
    small, large = Provider(1.0, 200), Provider(1.0, 5_000)
    thread: list[BaseMessage] = []
    for turn, provider in enumerate([small, large, small, large]):
        thread.append(HumanMessage(f"{turn}: " + "It rains again. " * 400, id=f"h{turn}"))
        said = usage(provider.reads(thread))
        thread.append(AIMessage("Noted.", id=f"a{turn}", usage_metadata=said))  # type: ignore[arg-type]
    thread.append(HumanMessage("And now? " * 900, id="now"))
    assert measured(thread).tokens <= large.reads(thread) * 1.02


def test_a_report_above_the_window_is_not_believed_and_ends_no_thread() -> None:
    messages = [*BEFORE, reply(usage(135_000)), *AFTER]
    assert measured(messages).tokens == counted(messages)


def test_a_report_of_messages_that_were_removed_ends_no_thread() -> None:
    compact = node(context_window=20_000, pinned={"type": "human"})
    thread = [*BEFORE, reply(usage(19_900)), HumanMessage(TEXT * 8, id="new")]
    state: dict[str, Any] = {"messages": thread, "compaction": {}}
    state.update(compact.invoke(state))  # BudgetError, once
    assert compact.view(state)


ODD: list[Any] = ["1200", float("nan"), float("inf"), -5, True, [], {}, 10**400, None, object()]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("where", ["input_tokens", "cache_read", "details", "usage"])
def test_odd_usage_is_no_report(odd: Any, where: str) -> None:
    said: Any = usage(3_000)
    if where == "input_tokens":
        said["input_tokens"] = odd
    elif where == "cache_read":
        said["input_token_details"] = {"cache_read": odd}
    elif where == "details":
        said["input_token_details"] = odd
    message = AIMessage("They run.", id="a")
    object.__setattr__(message, "usage_metadata", odd if where == "usage" else said)
    expected = None if where in {"input_tokens", "usage"} else 3_000
    assert measured([*BEFORE, message]).reported == expected


def test_a_reused_id_does_not_move_a_report() -> None:
    twin = AIMessage("Again.", id="a")
    messages = [*BEFORE, reply(usage(3_000)), HumanMessage(TEXT * 9, id="h3"), twin]
    assert measured(messages).tokens == 3_000 + counted(messages[1:])


def test_an_overhead_that_is_told_too_large_does_not_spoil_a_fold() -> None:
    done, after = folded(2_780, trigger=("steps", 10), overhead_tokens=10_000)
    assert done["type"] == "compaction.completed"
    assert after.messages < 21


def test_a_second_visit_does_nothing_where_less_was_reported_than_counted() -> None:
    total = counted(long_thread()[:-1])
    compact = node(trigger=("tokens", int(total * 0.5)), keep=("messages", 10))
    state: dict[str, Any] = {"messages": long_thread(int(total * 0.55)), "compaction": {}}
    state.update(compact.invoke(state))
    assert state["compaction"]["segments"]
    assert compact.invoke(state) == {}


def test_a_list_that_is_kept_at_one_length_has_reports_again_after_a_change() -> None:
    compact = node(context_window=3_000, trigger=("tokens", 1_500), min_fold_tokens=1)
    state: dict[str, Any] = {"messages": [HumanMessage(TEXT * 30, id="h")], "compaction": {}}
    state.update(compact.invoke(state))
    assert "length_at_change" in state["compaction"]
    fresh = [HumanMessage(f"{n}. {TEXT}", id=f"n{n}") for n in range(3)]
    answer = AIMessage("Ok.", id="new", usage_metadata=usage(2_000))  # type: ignore[arg-type]
    trimmed = {**state, "messages": [*fresh, answer]}
    assert compact.measure(trimmed).reported == 2_000


# ---- reports of another view


def worked(reports: list[int]) -> list[BaseMessage]:
    """A thread of equal steps whose calls had these input tokens by the provider's reports."""
    messages: list[BaseMessage] = list(BEFORE)
    for number, tokens in enumerate(reports):
        answer = AIMessage(TEXT * 4, id=f"a{number}", usage_metadata=usage(tokens))  # type: ignore[arg-type]
        messages += [answer, HumanMessage("Go on.", id=f"g{number}")]
    return messages


def honest(steps: int) -> list[int]:
    """What a provider reports of calls with the whole thread."""
    messages = worked([1] * steps)
    places = [n for n, message in enumerate(messages) if isinstance(message, AIMessage)]
    return [counted(messages[:place]) for place in places]


def test_reports_of_trimmed_views_do_not_lower_the_count() -> None:
    """An application, or another package, sent less than the thread: ours is sent next."""
    whole = honest(30)
    trimmed = [min(tokens, 4_000) for tokens in whole]
    found = measured(worked(trimmed))
    assert found.counted > 6_000
    assert found.tokens >= found.counted
    # As long as all was sent, a report may lower it.
    lower = [round(tokens * 0.8) for tokens in whole]
    found = measured(worked(lower))
    assert found.tokens < found.counted


def test_reports_that_fell_without_a_fold_do_not_lower_the_count() -> None:
    """deepagents compacts in its own state: the messages stay, and a later report is of less."""
    whole = honest(40)
    fallen = [tokens if n < 25 else tokens - 4_000 for n, tokens in enumerate(whole)]
    found = measured(worked(fallen))
    assert found.reported == fallen[-1]
    assert found.tokens >= found.counted


def test_a_doubtful_report_may_still_raise_the_count() -> None:
    """Agents with longer and shorter prompts write into one thread in turn."""
    whole = honest(30)
    found = measured(
        worked([tokens + (3_000 if n % 2 else 6_000) for n, tokens in enumerate(whole)])
    )
    assert found.tokens >= found.counted + 3_000


def test_many_reports_take_no_time_with_the_square_of_their_number() -> None:
    messages = worked([1_000 + 500 * n for n in range(3_000)])
    begun = time.process_time()
    measured(messages, context_window=10_000_000)
    assert time.process_time() - begun < 5
