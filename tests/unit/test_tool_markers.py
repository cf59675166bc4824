"""A call and its result as one line: by the user's template, and nothing else is changed by it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraph_compaction import ConfigurationError
from langgraph_compaction.digest.dividing import pieces
from langgraph_compaction.digest.markers import SLOTS, check_markers
from langgraph_compaction.digest.rendering import FENCES
from langgraph_compaction.digest.source import NO_ANSWER, render_group
from langgraph_compaction.view.pairing import groups
from tests.support.histories import histories

SHELL = {"shell": "[shell: {label} → {outcome}]"}


def call(name: str, arguments: Any, call_id: str = "c") -> Any:
    return {"name": name, "args": arguments, "id": call_id}


def result(text: str, call_id: str = "c", **more: Any) -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id, **more)


def rendered(messages: list[BaseMessage], markers: Any, first: int = 3) -> str:
    positions = range(first, first + len(messages))
    return "\n".join(
        render_group(messages, group, positions, 2_000, markers) for group in groups(messages)
    )


def line(arguments: Any, answer: str, template: str = "{label} → {outcome}", **more: Any) -> str:
    """The line for one call of a tool named "t"."""
    asked = AIMessage("", tool_calls=[call("t", arguments)])
    shown = rendered([asked, result(answer, **more)], {"t": template})
    return shown.partition('result="4">')[2].rpartition("</call>")[0]


def test_a_call_and_its_result_are_one_line_in_the_message_of_the_call() -> None:
    asked = AIMessage("Let me see.", tool_calls=[call("shell", {"command": "pytest -q"})])
    assert rendered([asked, result("4 passed")], SHELL) == (
        '<message n="3" role="agent">\nLet me see.\n'
        '<call result="4">[shell: pytest -q → ok]</call>\n</message>'
    )


def test_a_tool_without_a_marker_is_shown_as_ever() -> None:
    calls = [call("shell", {"command": "ls"}, "a"), call("read", {"path": "b.py"}, "b")]
    messages: list[BaseMessage] = [
        AIMessage("", tool_calls=calls),
        result("b.py", "a"),
        result("x = 1", "b", name="read"),
    ]
    assert rendered(messages, SHELL) == (
        '<message n="3" role="agent">\n<call result="4">[shell: ls → ok]</call>\n'
        '<call>read {"path": "b.py"}</call>\n</message>\n'
        '<result n="5" of="read" outcome="ok">\nx = 1\n</result>'
    )


@given(histories())
def test_without_markers_for_its_tools_a_history_is_rendered_as_ever(
    history: list[BaseMessage],
) -> None:
    assert rendered(history, {"of no such name": "[x]"}) == rendered(history, None)


@given(histories())
def test_every_call_and_every_result_is_told_whatever_the_history(
    history: list[BaseMessage],
) -> None:
    plain, marked = rendered(history, None), rendered(history, {"*": "[{name}]"})
    told = marked.count("<call result=")
    assert marked.count("<call>") + told == plain.count("<call>")
    assert marked.count("<result ") + told == plain.count("<result ")
    assert marked.count("<message ") == plain.count("<message ")


def test_the_star_stands_for_all_other_tools_and_none_for_all_in_full() -> None:
    names = ("shell", "read", "ask")
    asked = AIMessage("", tool_calls=[call(name, {"path": "x"}, name) for name in names])
    messages: list[BaseMessage] = [asked, *(result("Yes.", name, name=name) for name in names)]
    shown = rendered(messages, {**SHELL, "*": "[tool-{name} → {outcome}]", "ask": None})
    assert "[shell: x → ok]" in shown
    assert "[tool-read → ok]" in shown
    assert '<call>ask {"path": "x"}</call>' in shown
    assert '<result n="6" of="ask" outcome="ok">\nYes.\n</result>' in shown


@pytest.mark.parametrize(
    ("answer", "more", "told"),
    [
        ("4 passed", {}, "ok"),
        ("", {}, "ok"),
        ("The disk is full.", {"status": "error"}, "✗ The disk is full."),
        ("", {"status": "error"}, "✗"),
        ("Traceback (most recent call last):\n  x\nKeyError: 'a'", {}, "✗ KeyError: 'a'"),
        ("<returncode>1</returncode>\nfailed: 2 tests", {}, "✗ failed: 2 tests"),
        ("Nope. " * 90, {"status": "error"}, "✗ Nope."),
    ],
)
def test_the_outcome_is_ok_or_what_failed(answer: str, more: Any, told: str) -> None:
    assert line({"command": "x"}, answer, "{outcome}", **more) == told


@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        ({"description": "Run", "command": "make\nmake test"}, "make …"),
        ({"content": "x" * 3_000, "path": "src/a.py"}, "src/a.py"),
        ({"path": f"{'deep/' * 60}file.py"}, "…/" + "deep/" * 22 + "file.py"),
        ({"limit": 5, "topic": "pumps"}, "pumps"),
        ({"limit": 5}, "5"),
        ({"path": ["a", "b"]}, '["a", "b"]'),
        ({}, ""),
    ],
)
def test_the_label_is_the_main_argument_on_one_line(arguments: Any, label: str) -> None:
    assert line(arguments, "ok", "<{label}>") == f"<{label}>"


def test_arguments_are_one_line_and_clipped() -> None:
    shown = line({"a": 1, "path": "x.py", "body": "long " * 900}, "ok", "[{name}: {arguments}]")
    assert shown.startswith("[t: a=1, path=x.py")
    assert len(shown) < 200
    assert "\n" not in shown


def test_only_the_templates_own_slots_are_filled() -> None:
    strange = "{outcome} {0} {{label}} %s {name!r} ${HOME}"
    assert line({"command": strange}, "ok") == f"{strange} → ok"
    assert line({"command": "x"}, "ok", "{{label}} {{ {label}") == "{x} {{ x"


@pytest.mark.parametrize("name", FENCES)
def test_no_call_closes_a_fence(name: str) -> None:
    asked = AIMessage("", tool_calls=[call("t", {"command": f"echo '</{name}>'"})])
    shown = rendered(
        [asked, result(f"Error: </{name}>", status="error")], {"*": "{label} {outcome}"}
    )
    body = shown.splitlines()[1]
    assert body.startswith('<call result="4">')
    assert body.count("</") == 1


def test_results_of_parallel_calls_go_to_their_own_even_where_ids_repeat() -> None:
    asked = AIMessage(
        "", tool_calls=[call("shell", {"command": "a"}), call("shell", {"command": "b"})]
    )
    shown = rendered([asked, result("ok"), result("no", status="error")], SHELL)
    assert '<call result="4">[shell: a → ok]</call>' in shown
    assert '<call result="5">[shell: b → ✗ no]</call>' in shown


def test_a_call_without_an_answer_says_so() -> None:
    asked = AIMessage("", tool_calls=[call("shell", {"command": "sleep 9"})])
    shown = rendered([asked, HumanMessage("Never mind.")], SHELL)
    assert "<call>[shell: sleep 9 → no answer]</call>" in shown
    assert NO_ANSWER in shown.splitlines()[0]


def test_a_late_result_of_another_call_is_shown_in_full() -> None:
    asked = AIMessage("", tool_calls=[call("shell", {"command": "a"}, "a")])
    shown = rendered([asked, result("one", "a"), result("late", "before")], SHELL)
    assert "[shell: a → ok]" in shown
    assert '<result n="5" of="tool" outcome="ok">\nlate\n</result>' in shown


def test_calls_that_the_provider_executes_have_an_outcome_too() -> None:
    made = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    marker = {"web_search": "[web: {label} → {outcome}]"}
    assert "[web: q → ok]" in rendered([AIMessage([made, found])], marker)
    assert "[web: q → no answer]" in rendered([AIMessage([made])], marker)


def test_a_message_too_long_is_cut_between_its_lines() -> None:
    calls = [call("shell", {"command": f"run {n}"}, f"c{n}") for n in range(40)]
    messages: list[BaseMessage] = [
        AIMessage("", tool_calls=calls),
        *(result("done", f"c{n}") for n in range(40)),
    ]
    text = rendered(messages, SHELL)
    found = pieces([text], 400, len)
    assert len(found) > 2
    lines = [row for piece in found for chunk in piece for row in chunk.splitlines()]
    for n in range(40):
        assert f'<call result="{4 + n}">[shell: run {n} → ok]</call>' in lines


@pytest.mark.parametrize("slot", SLOTS)
def test_a_near_miss_names_the_slot(slot: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^tool_markers: ") as caught:
        check_markers({"shell": "[{" + slot + "s}]"})
    assert f"did you mean {{{slot}}}?" in str(caught.value)
    assert all(f"{{{one}}}" in str(caught.value) for one in SLOTS)


@pytest.mark.parametrize("template", ["{}", "{0}", "{name!r}", "{label:>9}", "a\nb", "", " ", 7])
def test_what_is_no_template_is_refused(template: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^tool_markers: the template of 'shell'"):
        check_markers({"shell": template})


@given(st.text(alphabet="ab{}\n<>/ ✗→", max_size=60))
def test_whatever_a_command_has_it_stays_on_its_line(command: str) -> None:
    shown = line({"command": command}, "ok", "<<{label}>>")
    assert len(shown.splitlines()) == 1
    assert shown.startswith("<<")
