"""The bundled agent's models: one that knows its messages alone, and any that speaks OpenAI's."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.checkpoint.memory import InMemorySaver
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from langgraph_compaction import ExtractiveSummarizer, model_view
from tests.integration.research import (
    offline_model,
    research_agent,
    survey,
    thread,
    tools,
    write_small,
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small(tmp_path_factory.mktemp("small"))


def surveyed(small: Path, summarizer: Any) -> list[BaseMessage]:
    graph, _ = survey.build(
        offline_model.OfflineModel(),
        summarizer,
        tools.Workspace(small),
        window=8_000,
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 500}
    state = graph.invoke({"messages": [survey.opening(tools.Workspace(small))]}, config)
    messages: list[BaseMessage] = state["messages"]
    return messages


class DropsOne(ExtractiveSummarizer):
    """Loses the second finding whenever it sees it."""

    def summarize(self, messages: Sequence[BaseMessage], **limits: Any) -> str:
        return re.sub(r".*Finding 2:.*\n?", "", super().summarize(messages, **limits))


def test_a_lost_finding_is_looked_up_again_and_counted(small: Path) -> None:
    messages = surveyed(small, DropsOne())
    again = [m.text for m in messages if "I cannot see finding 2" in m.text]
    assert len(again) == 1
    assert survey.rereads(messages) >= 1
    assert list(survey.mistakes(messages[-1].text, tools.Workspace(small))) == []


def test_without_the_task_the_model_stops() -> None:
    reply = offline_model.OfflineModel().invoke([HumanMessage("Hello"), AIMessage("Hello.")])
    assert reply.response_metadata["lost"] == ["the task"]


def test_the_model_decides_from_its_messages_alone(small: Path) -> None:
    messages = surveyed(small, ExtractiveSummarizer())
    model = offline_model.OfflineModel()
    at_search = next(
        at
        for at, message in enumerate(messages)
        if isinstance(message, AIMessage)
        and [call for call in message.tool_calls if call["name"] == "search_text"]
    )
    view = messages[:at_search]
    first, second = model.invoke(view), offline_model.OfflineModel().invoke(view)
    assert (first.text, first.tool_calls) == (second.text, second.tool_calls)
    assert first.tool_calls[0]["name"] == "search_text"
    # Without one finding it does something else, and says why.
    poorer = [
        message.model_copy(update={"content": "I go on."})
        if "Finding 3:" in message.text
        else message
        for message in view
    ]
    assert "I cannot see finding 3 of 14" in model.invoke(poorer).text


# ---- a server that speaks chat completions


def completion(message: AIMessage) -> dict[str, Any]:
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
        }
        for call in message.tool_calls
    ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if calls else "stop",
                "message": {"role": "assistant", "content": message.text}
                | ({"tool_calls": calls} if calls else {}),
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


@pytest.fixture
def server(httpserver: HTTPServer) -> tuple[str, list[dict[str, Any]]]:
    """Its address and what it was asked. With tools it acts as the agent, without as summariser."""
    asked: list[dict[str, Any]] = []

    def answer(request: Request) -> Response:
        body = request.get_json()
        asked.append(body)
        if "tools" in body:
            reply = offline_model.OfflineModel().invoke(convert_to_messages(body["messages"]))
        else:
            given = body["messages"][1]["content"].partition("\n<transcript>\n")
            text = (given[2] or given[0]).partition("</transcript>")[0]
            found = re.findall(r"Finding \d+: .*?\)\.|The folder has .*? lines\.", text)
            bullets = "\n".join(f"- {one}" for one in dict.fromkeys(found))
            reply = AIMessage(
                f"## Goal\nA survey of constants.\n## Findings\n{bullets}\n"
                "## State now\nUnder way.\n## Next step\nThe next file."
            )
        return Response(json.dumps(completion(reply)), content_type="application/json")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    return httpserver.url_for("/v1"), asked


def test_the_same_graph_runs_on_chatopenai_with_digests_by_another_model(
    small: Path,
    tmp_path: Path,
    server: tuple[str, list[dict[str, Any]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    url, asked = server
    db = tmp_path / "threads.sqlite"
    status = research_agent.main(
        ["--base-url", url, "--model", "worker", "--summary-model", "writer", "--window", "8000",
         "--folder", str(small), "--db", str(db)]
    )  # fmt: skip
    shown = capsys.readouterr().out
    assert status == 0, shown
    assert "the answer agrees with the files" in shown, shown
    state = thread(db, history=True)
    assert {body["model"] for body in asked if "tools" in body} == {"worker"}
    summaries = [body for body in asked if "tools" not in body]
    assert {body["model"] for body in summaries} == {"writer"}
    assert {one["model"] for one in state["compaction"]["segments"]} == {"writer"}
    assert survey.DIGEST_INSTRUCTIONS in summaries[0]["messages"][0]["content"]
    assert state["twice"] == []
    assert any(m.id == "summarization" for m in model_view(state))
    assert any(isinstance(m, ToolMessage) for m in state["messages"])


def test_a_server_that_is_down_is_reported_and_the_thread_kept(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = tmp_path / "threads.sqlite"
    options = ["--folder", str(small), "--db", str(db)]
    assert research_agent.main([*options, "--base-url", "http://127.0.0.1:9/v1"]) == 1
    assert "the same command goes on" in capsys.readouterr().err
    assert research_agent.main([*options, "--offline"]) == 0
