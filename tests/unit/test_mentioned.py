"""What a span mentions, by whom and how often, and in which order it is worth keeping."""

import copy
import time

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraph_compaction.digest.facts.arguments import ARGUMENT_SAID
from langgraph_compaction.digest.facts.layout import Parts
from langgraph_compaction.digest.facts.mentioned import MOST_MEDIA, Mentioned


def read(*messages: BaseMessage, before: dict[str, list[str]] | None = None) -> Mentioned:
    mentioned = Mentioned(before or {})
    mentioned.read(messages)
    return mentioned


def order(mentioned: Mentioned) -> list[str]:
    return [entry.mention.name for entry in mentioned.ranked()]


def series(mentioned: Mentioned) -> dict[str, list[str]]:
    return {subject: mentioned.series.values(subject) for subject in mentioned.series}


def called(**arguments: object) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "act", "args": arguments, "id": "1"}])


def result(text: str) -> ToolMessage:
    return ToolMessage(text, tool_call_id="1")


def test_the_users_names_come_before_the_agents_before_arguments_before_results() -> None:
    mentioned = read(
        HumanMessage("Use /by/user please"),
        AIMessage("I use /by/agent then"),
        called(target="/by/call"),
        result("wrote /by/result"),
    )
    assert order(mentioned) == ["/by/user", "/by/agent", "/by/call", "/by/result"]


def test_what_is_repeated_comes_before_what_is_not() -> None:
    mentioned = read(*[HumanMessage("see /a/often")] * 3, HumanMessage("see /b/once"))
    assert order(mentioned) == ["/a/often", "/b/once"]


def test_of_equal_ones_the_newer_comes_first() -> None:
    assert order(read(HumanMessage("see /a/x"), HumanMessage("see /b/y"))) == ["/b/y", "/a/x"]


def test_repeats_within_one_text_and_in_results_do_not_count() -> None:
    once = read(HumanMessage("see /a/x /a/x /a/x"), HumanMessage("see /b/y"))
    assert order(once) == ["/b/y", "/a/x"]
    logs = read(*[result("log /a/x")] * 50, HumanMessage("see /b/y"))
    assert order(logs) == ["/b/y", "/a/x"]
    assert logs.entries["", "/a/x"].times == 0


def test_a_passed_value_comes_after_the_newest() -> None:
    mentioned = read(
        HumanMessage("The port is 8080."),
        HumanMessage("The port is 8080."),
        HumanMessage("The port is 9090."),
    )
    assert order(mentioned) == ["9090", "8080"]
    assert series(mentioned) == {"port": ["8080", "9090"]}
    assert [entry.mention.name for entry in mentioned.newest()] == ["9090"]


def test_a_value_that_comes_back_is_the_newest_again() -> None:
    mentioned = read(*(HumanMessage(f"The port is {port}.") for port in (8080, 9090, 8080)))
    assert series(mentioned) == {"port": ["9090", "8080"]}


def test_a_printed_new_value_of_a_known_thing_counts_as_if_it_was_said() -> None:
    span = HumanMessage("see /a/b"), result("port: 9090")
    assert order(read(*span)) == ["/a/b", "9090"]
    for before, first in (("8080", "9090"), ("9090", "/a/b")):
        mentioned = read(*span, before={"port": [before]})
        assert order(mentioned)[0] == first
        assert mentioned.printed(mentioned.entries["port", "9090"]) == (before == "9090")


def test_the_values_from_before_are_older_than_those_of_the_span() -> None:
    mentioned = read(
        HumanMessage("The port is 9090."), before={"port": ["70", "80"], "log": ["/x/y"]}
    )
    assert series(mentioned) == {"port": ["70", "80", "9090"], "log": ["/x/y"]}
    assert [entry.mention.name for entry in mentioned.newest()] == ["9090"]
    again = read(HumanMessage("The port is 70."), before={"port": ["70", "80"]})
    assert [entry.mention.name for entry in again.newest()] == ["70"]
    assert mentioned.series.all_passed() == {"70", "80"}


def test_a_log_that_counts_takes_time_with_its_length_alone() -> None:
    def seconds(lines: int) -> float:
        text = "\n".join(f"count: {number}" for number in range(lines))
        started = time.process_time()
        found = read(HumanMessage(text[:150_000]))
        found.ranked()
        found.newest()
        return time.process_time() - started

    seconds(100)
    assert seconds(8_000) < 20 * seconds(2_000)  # four times the length; squared it was 16 times


def test_attached_files_are_mentioned_by_name_or_else_by_type_and_size() -> None:
    data = {"base64": "aGk=" * 50, "mime_type": "image/png"}
    found = read(
        HumanMessage(
            [
                {"type": "text", "text": "Look."},
                {"type": "image", **data},
                {"type": "file", "mime_type": "application/pdf", "filename": "costs_2034.pdf"},
                {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
            ]
        )
    )
    images = ["[image image/png 150 bytes]", "[image https://a.example/b.png]"]
    assert [name for _, name in found.entries] == [*images, "costs_2034.pdf"]
    many = [{"type": "image", "base64": "aaaa" * n, "mime_type": "image/png"} for n in range(9)]
    found = read(*(HumanMessage([block]) for block in many))
    assert [name for _, name in found.entries] == [
        f"[image image/png {3 * size} bytes]" for size in range(9 - MOST_MEDIA, 9)
    ]


def test_what_a_summariser_invented_is_not_mentioned() -> None:
    mentioned = Mentioned()
    body = "See /srv/real.yaml and /srv/invented.yaml.\nshell → wrote /srv/invented.yaml"
    mentioned.read_parts(Parts(body, unsourced=["/srv/invented.yaml"]))
    assert [name for _, name in mentioned.entries] == ["/srv/real.yaml"]


def test_a_value_of_two_things_is_the_newest_of_each() -> None:
    mentioned = read(HumanMessage("The log is /a/x. The home was /b/y. The home is /a/x."))
    mentioned.read([HumanMessage("The log is /a/x. The root was /c/z. The root is /a/x.")])
    found = {entry.mention.subject: entry.mention.name for entry in mentioned.newest()}
    assert found == {"home": "/a/x", "root": "/a/x"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"timeout": "45 s"},
        {"options": {"timeout": "45 s"}},
        {"options": [{"timeout": "45 s"}]},
        {"options": [{"deep": [{"timeout": ["45 s"]}]}]},
    ],
)
def test_arguments_are_read_at_any_depth_with_their_names(arguments: dict[str, object]) -> None:
    assert series(read(called(**arguments))) == {"timeout": ["45 s"]}


def test_numbers_are_values_of_their_arguments() -> None:
    mentioned = read(called(port=8080, retries=3, ok=True, nothing=None))
    assert series(mentioned) == {"port": ["8080"], "retries": ["3"]}


def test_long_arguments_are_read_as_data() -> None:
    code = "x = parseHeader()\n" * ARGUMENT_SAID + "open('/srv/a/b.py')"
    found = read(called(code=code)).entries
    assert ("", "/srv/a/b.py") in found
    assert ("", "parseHeader()") not in found


def test_arguments_that_contain_themselves_or_are_no_json_are_read_once() -> None:
    loop: list[object] = ["/a/b"]
    loop.append(loop)
    mentioned = Mentioned()
    message = called(x=1)
    message.tool_calls[0]["args"] = {"loop": loop, "bytes": b"x", "object": object()}
    mentioned.read([message])
    assert ("", "/a/b") in mentioned.entries


def test_arguments_that_are_no_json_text_are_read_too() -> None:
    call = {"name": "act", "args": '{"path": "/a/b", ', "id": "1", "error": "no JSON"}
    message = AIMessage("", invalid_tool_calls=[call])
    assert ("", "/a/b") in read(message).entries


def test_system_messages_are_left_out_since_they_stay() -> None:
    assert read(SystemMessage("The port is 8080. See /a/b."), HumanMessage("hi")).entries == {}


def test_code_blocks_count_as_calls() -> None:
    mentioned = read(HumanMessage("Look at /a/b:\n```\nopen('/c/d')\nuse parseHeader\n```\nThanks"))
    assert mentioned.entries["", "/c/d"].weight < mentioned.entries["", "/a/b"].weight
    assert ("", "parseHeader") not in mentioned.entries


def test_only_text_blocks_are_read() -> None:
    blocks = [
        {"type": "text", "text": "see /a/b"},
        {"type": "reasoning", "reasoning": "see /c/d"},
        {"type": "image", "base64": "/e/f" * 50, "mime_type": "image/png"},
    ]
    assert [name for _, name in read(AIMessage(blocks)).entries if name[0] == "/"] == ["/a/b"]


def test_the_parts_of_an_earlier_segment_are_read_in_their_order() -> None:
    mentioned = Mentioned()
    mentioned.read_parts(
        Parts("The port is 1111.", ["The port is 2222."], ["port: 3333", "/a/b"], ["port: 4444"])
    )
    assert series(mentioned) == {"port": ["1111", "2222", "3333", "4444"]}
    mentioned.read_parts(Parts("", newest="The port is 5555."))
    assert series(mentioned)["port"][-1] == "5555"


@pytest.mark.parametrize(
    "value", ["/srv/b2/out", "45 s", "45秒", "v1.2.3", "2034年5月12日", "8080"]
)
@pytest.mark.parametrize("subject", ["export folder", "导出目录"])
def test_a_listed_value_is_the_same_entry_as_when_it_was_said(subject: str, value: str) -> None:
    mentioned = read(AIMessage(f"{subject}: {value}"))
    before = set(mentioned.entries)
    mentioned.read_parts(Parts("", mentioned=[f"{subject}: {value}"]))
    assert set(mentioned.entries) == before
    assert series(mentioned) == {subject: [value]}


def test_nothing_read_is_changed() -> None:
    messages = [HumanMessage("see /a/b"), called(a={"b": ["c", 1]}), result("port: 1")]
    before = copy.deepcopy(messages)
    read(*messages)
    assert messages == before


def test_a_span_without_text_mentions_nothing() -> None:
    assert read().ranked() == []
    assert read(HumanMessage(""), AIMessage([]), result("")).ranked() == []


def test_values_that_different_calls_printed_are_of_different_things() -> None:
    def reading(name: str, port: int) -> list[BaseMessage]:
        call = {"name": "cat", "args": {"path": name}, "id": name}
        return [
            AIMessage("", tool_calls=[call]),
            ToolMessage(f"listen_port: {port}", tool_call_id=name),
        ]

    files = [message for n in range(4) for message in reading(f"/srv/{n}.yaml", 7001 + n)]
    mentioned = read(*files)
    assert {"7001", "7002", "7003", "7004"} <= set(order(mentioned))
    assert mentioned.newest() == []
    assert mentioned.entries["listen_port (/srv/2.yaml)", "7003"]
    # The same file again is another matter.
    again = read(*files, *reading("/srv/0.yaml", 8001))
    assert [entry.mention.name for entry in again.newest()] == ["8001"]
    # What somebody speaks of is what the tool prints, until it is told otherwise.
    said = read(HumanMessage("listen_port: 9999"), *reading("/srv/0.yaml", 7001))
    assert [entry.mention.name for entry in said.newest()] == ["7001"]
    # Calls that are about nothing nameable print one thing after the other.
    asked = [AIMessage("", tool_calls=[{"name": "sh", "args": {"command": "a b"}, "id": "1"}])]
    answered = [*asked, result("count: 5 rows"), *asked, result("count: 6 rows")]
    assert [entry.mention.name for entry in read(*answered).newest()] == ["6 rows"]


@pytest.mark.parametrize(
    "text",
    [
        "The rollout timeout is 450 s from now on, 300 s was too short.",
        "Set the rollout timeout to 450 s instead of 300 s.",
        "The rollout timeout is 450 s now (before: 300 s).",
        "Change the rollout timeout from 300 s to 450 s.",
        "The rollout timeout is 450 s, not 300 s.",
        "Der rollout timeout ist jetzt 450 s statt 300 s.",
        "The rollout timeout was 300 s. The rollout timeout is 450 s.",
    ],
)
def test_a_value_that_is_said_to_be_past_is_not_the_newest(text: str) -> None:
    for before in ({}, {"rollout timeout": ["300 s"]}, {"rollout timeout": ["100 s", "300 s"]}):
        mentioned = read(HumanMessage(text), before=before)
        assert {one.mention.name for one in mentioned.newest()} == {"450 s"}, mentioned.series


def test_a_past_value_alone_is_a_value() -> None:
    mentioned = read(HumanMessage("Use it instead of port 8080."))
    assert "8080" in order(mentioned)
