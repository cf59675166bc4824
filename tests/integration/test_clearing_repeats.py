"""What the agent has not seen stays, and only a newer result of the same call supersedes one."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import model_view
from tests.integration.clearing import cleared, history, node, read, text_of, visited
from tests.support.folding import state_of


def test_results_of_parallel_calls_do_not_supersede_each_other() -> None:
    calls: Any = [{"name": "draw_sample", "args": {}, "id": f"d{n}"} for n in range(4)]
    drawn = [ToolMessage(text_of(n), tool_call_id=f"d{n}", id=f"s{n}") for n in range(4)]
    messages = [*history(6), AIMessage("", id="d", tool_calls=calls), *drawn]
    compact = node()
    assert not {"s0", "s1", "s2", "s3"} & set(
        cleared(compact.view(visited(compact, state_of(messages))))
    )


@pytest.mark.parametrize("shared", ["", "c"])
def test_parallel_calls_that_share_an_id_are_told_apart_by_their_order(shared: str) -> None:
    def step(name: str, paths: str) -> list[BaseMessage]:
        calls: Any = [{"name": "look", "args": {"path": p}, "id": shared} for p in paths]
        results = [
            ToolMessage(text_of(ord(p)) + name, tool_call_id=shared, name="look", id=f"{name}{p}")
            for p in paths
        ]
        return [AIMessage("", id=name, tool_calls=calls), *results]

    messages = [*history(0), *step("old", "ab"), *history(6)[1:], *step("new", "b")]
    compact = node(trigger=("tokens", 8_500), target=8_400, clear_keep=50)
    shown = {one.id: one.text for one in compact.view(visited(compact, state_of(messages)))}
    assert "A newer result of the same call" in shown["oldb"]
    assert shown["olda"] == text_of(ord("a")) + "old"


def in_content(n: int, path: Any, *, key: str = "input") -> list[BaseMessage]:
    """A call that stands in the content alone."""
    block = {"type": "tool_use", "id": f"c{n}", "name": "read_file"}
    asked, told = read(n)
    held = block if path is None else {**block, key: path}
    return [asked.model_copy(update={"tool_calls": [], "content": [held]}), told]


@pytest.mark.parametrize("as_text", [False, True])
def test_calls_in_content_blocks_are_compared_by_their_arguments(as_text: bool) -> None:
    def given(path: str) -> Any:
        return json.dumps({"path": path}) if as_text else {"path": path}

    paths = ["/a", "/b", "/c", "/a", "/d", "/e", "/f", "/g", "/h"]
    calls = [m for n, path in enumerate(paths) for m in in_content(n, given(path))]
    compact = node(target=8_400, trigger=("tokens", 8_500), clear_keep=50)
    view = compact.view(visited(compact, state_of([*history(0), *calls])))
    assert cleared(view) == ["t0"]


def test_calls_whose_arguments_are_unknown_supersede_nothing() -> None:
    calls = [m for n in range(9) for m in in_content(n, None)]
    compact = node(target=None, clear_min_share=0.0)
    view = compact.view(visited(compact, state_of([*history(0), *calls])))
    assert cleared(view)
    assert "newer result" not in str(view)


@pytest.mark.parametrize("tool", ["read_file", "grep"])
def test_a_copy_that_is_clipped_is_no_reason_to_clear_a_longer_one(tool: str) -> None:
    big = text_of(70, 14_000)
    calls: Any = [{"name": tool, "args": {"path": "/src/0.py"}, "id": "g0"}]
    calls += [{"name": "other", "args": {"n": n}, "id": f"g{n}"} for n in range(1, 4)]
    texts = [big, *(text_of(n, 14_000) for n in range(1, 4))]
    answers = [ToolMessage(text, tool_call_id=f"g{n}", id=f"g{n}") for n, text in enumerate(texts)]
    messages = [*history(0), *read(0, text=big), AIMessage("", id="a", tool_calls=calls), *answers]
    compact = node(
        context_window=128_000, trigger=("tokens", 18_000), target=17_900, clear_keep=50,
        max_result_tokens=40_000,
    )  # fmt: skip
    state = visited(compact, state_of(messages))
    assert cleared(compact.view(state)) == ["t0"]
    state["compaction"]["render"]["clip_result_bytes"] = 12_000
    shown = {one.id: one.text for one in compact.view(state)}
    assert len(shown["g0"]) < 4_000
    assert 11_000 < len(shown["t0"]) < 13_000
    # Where both are cut to the same length, one of them is enough.
    state["messages"] = [*history(0), *read(0, text=big), *read(1, path="/src/0.py", text=big)]
    state["compaction"]["clearing"] |= {"repeats_index": 4, "repeats_id": "t1"}
    assert cleared(compact.view(state)) == ["t0"]


def test_only_a_copy_that_stays_is_a_reason_to_clear_the_other() -> None:
    same, edited = text_of(70), text_of(71)
    messages = [
        HumanMessage("Compare them.", id="h"), *read(0, path="/a.yaml", text=same),
        *read(1, path="/b.yaml", text=same), *[m for n in range(2, 7) for m in read(n)],
        *read(7, path="/b.yaml", text=edited), *read(8), *read(9),
    ]  # fmt: skip
    compact = node(target=9_400, trigger=("tokens", 9_500), clear_min_share=0.0)
    view = compact.view(visited(compact, state_of(messages)))
    assert "t1" in cleared(view)
    assert "t0" not in cleared(view)


def test_a_note_that_nothing_changed_supersedes_nothing() -> None:
    note = "The file is unchanged since it was last read; the earlier result is still current."
    again = read(8, path="/src/0.py", text=note)
    compact = node(target=None, trigger=("tokens", 8_900))
    messages = [*history(8), *again, *read(9), *read(10)]
    view = {one.id: one for one in compact.view(visited(compact, state_of(messages)))}
    assert "newer result" not in str(view["t0"].content)


def test_a_marked_message_that_was_added_again_proves_nothing() -> None:
    state = visited(node(), state_of(history()))
    marked = state["compaction"]["clearing"]
    moved = next(one for one in state["messages"] if one.id == marked["repeats_id"])
    rest = [one for one in state["messages"] if one.id not in {moved.id, marked["last_id"]}]
    state["messages"] = [*rest, *read(30), *read(31), moved]
    assert cleared(model_view(state)) == []


def test_another_chat_without_ids_is_not_cleared() -> None:
    bare = [message.model_copy(update={"id": None}) for message in history()]
    state = visited(node(), state_of(bare))
    other = [message.model_copy(update={"id": None}) for n in range(40, 50) for message in read(n)]
    state["messages"] = [HumanMessage("Something else."), *other]
    assert not any(str(one.content).startswith("[Cleared") for one in model_view(state))


def test_a_late_result_behind_the_mark_brings_nothing_back() -> None:
    state = visited(node(), state_of(history()))
    before = cleared(model_view(state))
    late = ToolMessage("late", tool_call_id="c2", id="late")
    assert cleared(model_view({**state, "messages": [*state["messages"], late]})) == before
