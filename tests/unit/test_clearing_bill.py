"""The clearing benchmark's own parts: what it bills, and which handles it reads off a view."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction.plan.counting import token_counter
from tests.benchmarks.clearing.looking_up import Desk, Handles
from tests.benchmarks.clearing.pricing import OUTPUT, READ, SUMMARISER_INPUT, WRITE, Bill
from tests.benchmarks.clearing.replaying import Transcript, replay

COUNTER = token_counter("estimate")
CALL = {"name": "read", "args": {"path": "a.py"}, "id": "c1"}


def bill() -> Bill:
    return Bill(COUNTER)


def chat(*texts: str) -> list[BaseMessage]:
    return [HumanMessage(text) for text in texts]


def test_what_the_last_view_begins_with_is_read_from_the_cache() -> None:
    one = bill()
    first, second = chat("a b c", "d e f"), chat("a b c", "d e f", "g h i")
    one.call(first)
    assert one.cached == 0
    one.call(second)
    new = COUNTER.messages(second[2:])
    assert one.cached == COUNTER.messages(first)
    assert one.agent == pytest.approx(READ * one.cached + WRITE * (COUNTER.messages(first) + new))


def test_a_change_at_the_beginning_pays_for_all_that_follows() -> None:
    one = bill()
    one.call(chat("a b c", "d e f", "g h i"))
    one.call(chat("x b c", "d e f", "g h i"))
    assert one.cached == 0


def test_a_digest_that_grows_at_its_end_stays_cached_up_to_there() -> None:
    one = bill()
    digest = "Segment one. " * 50
    one.call(chat(digest, "d e f"))
    one.call(chat(digest + "Segment two.", "d e f"))
    assert one.cached == COUNTER.text(digest)


def test_other_arguments_of_a_call_break_the_prefix() -> None:
    one = bill()
    tail = chat("d e f")
    one.call([AIMessage("", tool_calls=[CALL]), *tail])
    one.call([AIMessage("", tool_calls=[{**CALL, "args": {"path": "b.py"}}]), *tail])
    assert one.cached == 0


def test_the_summariser_pays_for_input_and_output() -> None:
    one = bill()
    prompt = chat("Read all this.")
    one.summary(prompt, "Done with it.")
    assert one.summaries == 1
    assert one.summariser == pytest.approx(
        SUMMARISER_INPUT * COUNTER.messages(prompt) + OUTPUT * COUNTER.text("Done with it.")
    )


def test_handles_are_read_off_the_text_of_a_view() -> None:
    result = ToolMessage("text", tool_call_id="c1", id="m2")
    view = [
        HumanMessage("[Record]\n\n# Messages 3 to 9 (folded after step 4)\nText."),
        AIMessage("", tool_calls=[{**CALL, "id": "c2"}]),
        ToolMessage('[Cleared: result of read. recall(id="c1") shows it.]', tool_call_id="c2"),
    ]
    handles = Handles.of(view)
    assert handles == Handles(frozenset({"c1"}), ((3, 9),), frozenset({"c2"}))
    assert list(handles.to(result, 5)) == [
        ("placeholder", {"id": "c1"}),
        ("heading", {"first": 5, "last": 5}),
    ]
    assert list(handles.to(result, 10)) == [("placeholder", {"id": "c1"})]
    other = ToolMessage("text", tool_call_id="c2", id="m4")
    assert list(handles.to(other, 10)) == [("call", {"id": "c2"})]
    assert list(handles.to(ToolMessage("text", tool_call_id="c3"), 10)) == []


def thread(results: int = 20) -> list[BaseMessage]:
    """Each result names a file, and the last message of the agent uses the first one again."""
    messages: list[BaseMessage] = [HumanMessage("Read them all.", id="m")]
    for n in range(results):
        call = {"name": "read", "args": {"part": n}, "id": f"c{n}"}
        messages.append(AIMessage(f"Part {n}.", tool_calls=[call], id=f"a{n}"))
        text = f"See src/part_{n}/main.py for it.\n" + "Nothing else is to be seen here. " * 80
        messages.append(ToolMessage(text, tool_call_id=f"c{n}", name="read", id=f"t{n}"))
    return [*messages, AIMessage("It is src/part_0/main.py.", id="last")]


def test_a_reference_that_was_cleared_is_found_by_words_and_by_its_placeholder() -> None:
    measured = replay(Transcript.of(thread()), 16_000, look_up=True)
    assert (measured.done["cleared"], measured.done["completed"]) == (1, 0)
    found = measured.found
    assert (measured.uses, measured.seen) == (1, 0)
    assert (found.hidden, found.first_page, found.placeholder) == (1, 1, 1)


def test_a_reference_that_nothing_holds_is_not_found() -> None:
    messages = thread()
    desk = Desk(messages)
    state = {"messages": messages, "compaction": {}}
    found = desk.look_up("src/nowhere.py", [2], state, messages)
    assert (found.hidden, found.pages, found.placeholder, found.heading, found.call) == (
        1,
        0,
        0,
        0,
        0,
    )
