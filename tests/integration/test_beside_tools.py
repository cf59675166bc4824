"""Beside middlewares that stand around the agent's tools, or bring tools of their own."""

from pathlib import Path
from typing import Any

from langchain.agents.middleware import (
    AutoModeMiddleware,
    FilesystemFileSearchMiddleware,
    HostExecutionPolicy,
    LLMToolEmulator,
    ShellToolMiddleware,
    ToolCallLimitMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
    wrap_tool_call,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from tests.support.beside import Beside, Decides, beside, steady
from tests.support.doubles import ScriptedModel, result

ALL = list(range(1, 37))
BAD = (5, 20, 30)
"""Steps that go wrong."""
WELL = [step for step in ALL if step not in BAD]


def answer(run: Beside, step: int) -> ToolMessage:
    """The result of a step."""
    found: ToolMessage = next(
        m for m in run.messages if isinstance(m, ToolMessage) and m.tool_call_id == f"c{step}"
    )
    return found


def shown_errors(calls: list[list[BaseMessage]]) -> bool:
    """Whether the model saw a failed result after a fold: an error is never cleared."""
    return any(
        isinstance(m, ToolMessage) and m.status == "error" for call in calls[20:] for m in call
    )


@beside(AutoModeMiddleware)
def test_auto_mode_blocks_calls_and_sees_the_whole_thread(first: bool, way: str) -> None:
    asked: list[Any] = []

    def risk(state: Any) -> dict[str, Any]:
        asked.append(state)
        return {"type": "noul", "noul": 0.9 if state["tool_call"]["args"]["n"] in BAD else 0.1}

    run = Beside(AutoModeMiddleware(tools=["work"], classifier=Decides(answer=risk)), first=first)
    run.work(way=way)
    run.assert_sound(WELL)
    assert all("was blocked" in answer(run, step).text for step in BAD)
    assert shown_errors(run.calls)
    # It looks at the state, whose messages are all there, and not at the view.
    assert len(asked) == len(ALL)
    assert max(len(state["messages"]) for state in asked) == 30


@beside(LLMToolEmulator)
def test_emulated_results_are_folded_like_others(first: bool, way: str) -> None:
    asked: list[str] = []

    def emulate(messages: list[BaseMessage]) -> AIMessage:
        asked.append(messages[0].text)
        return AIMessage(f"Emulated: {result(len(asked))}")

    emulator = LLMToolEmulator(tools=["work"], model=ScriptedModel(reply=emulate))
    run = Beside(emulator, first=first)
    run.work(way=way)
    run.assert_sound(ALL)
    assert len(asked) == len(ALL)
    assert answer(run, 7).text.startswith("Emulated: ")


def fragile(failures: dict[int, int]) -> tuple[Any, list[int]]:
    """A tool that fails at some steps, each time as often as it says, and its calls."""
    tried: list[int] = []

    @tool
    def work(n: int) -> str:
        """Do step n."""
        tried.append(n)
        if tried.count(n) <= failures.get(n, 0):
            raise TimeoutError(f"The machine for step {n} is busy.")
        return result(n)

    return work, tried


@beside(ToolRetryMiddleware)
def test_a_tool_is_tried_again(first: bool, way: str) -> None:
    again = ToolRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    failing, tried = fragile(dict.fromkeys(BAD, 1) | {30: 2})
    run = Beside(again, first=first, tools=[failing])
    run.work(way=way)
    run.assert_sound([step for step in ALL if step != 30])
    assert [step for step in ALL if tried.count(step) == 2] == list(BAD)
    assert answer(run, 30).status == "error"


@beside(ToolErrorMiddleware)
def test_an_error_of_a_tool_becomes_its_result(first: bool, way: str) -> None:
    told = ToolErrorMiddleware(lambda error, _: f"It failed: {error}")
    failing, _ = fragile(dict.fromkeys(BAD, 1))
    run = Beside(told, first=first, tools=[failing])
    run.work(way=way)
    run.assert_sound(WELL)
    assert answer(run, 20).text == "It failed: The machine for step 20 is busy."
    assert shown_errors(run.calls)


@beside(ToolCallLimitMiddleware)
def test_a_limit_of_tool_calls_holds_and_the_agent_goes_on(first: bool, way: str) -> None:
    run = Beside(ToolCallLimitMiddleware(tool_name="work", thread_limit=30), first=first)
    run.work(way=way)
    limit = "ToolCallLimitMiddleware[work].after_model"
    run.assert_sound(ALL[:30], wrote=[limit])
    assert all(answer(run, step).status == "error" for step in ALL[30:])
    assert run.values["thread_tool_call_count"] == {"work": 30}


@beside(ToolCallLimitMiddleware)
def test_a_limit_of_tool_calls_ends_the_run_and_the_next_goes_on(first: bool, way: str) -> None:
    ends = ToolCallLimitMiddleware(run_limit=10, exit_behavior="end")
    run = Beside(ends, first=first)
    run.work(24, way)
    run.run((25, 30), way)
    done = [*range(1, 11), *range(13, 23), *range(25, 31)]
    run.assert_sound(done, wrote=["ToolCallLimitMiddleware.after_model"])
    assert sum("limit" in m.text for m in run.messages if isinstance(m, AIMessage)) == 2


@beside(ShellToolMiddleware, HostExecutionPolicy)
def test_a_shell_keeps_its_session_over_folds(first: bool, way: str, tmp_path: Path) -> None:
    shell = ShellToolMiddleware(
        workspace_root=tmp_path, execution_policy=HostExecutionPolicy(command_timeout=20)
    )
    said = {
        step: ("shell", {"command": f"STEP=$((STEP+1)); echo shell-$STEP; echo {step} >> log"})
        for step in (2, 20, 30)
    }
    run = Beside(shell, first=first, model=steady(said))
    run.run((1, 36), way)
    steps = [step for step in ALL if step not in said]
    run.assert_sound(
        steps, wrote=["ShellToolMiddleware.before_agent", "ShellToolMiddleware.after_agent"]
    )
    assert "shell-3" in answer(run, 30).text
    assert (tmp_path / "log").read_text("utf-8").split() == ["2", "20", "30"]


@beside(FilesystemFileSearchMiddleware)
def test_a_search_in_files_finds_them(first: bool, way: str, tmp_path: Path) -> None:
    (tmp_path / "pump.txt").write_text("The pump runs at 10 rpm.\n", "utf-8")
    search = FilesystemFileSearchMiddleware(root_path=str(tmp_path), use_ripgrep=False)
    said = {
        3: ("glob_search", {"pattern": "*.txt"}),
        30: ("grep_search", {"pattern": "rpm", "output_mode": "content"}),
    }
    run = Beside(search, first=first, model=steady(said))
    run.work(way=way)
    run.assert_sound([step for step in ALL if step not in said])
    assert "pump.txt" in answer(run, 3).text
    assert "10 rpm" in answer(run, 30).text


@beside(wrap_tool_call)
def test_a_wrapped_tool_call_changes_its_result(first: bool, way: str) -> None:
    @wrap_tool_call
    def signed(asked: Any, handler: Any) -> Any:
        found = handler(asked)
        return found.model_copy(update={"content": f"{found.content} Signed."})

    @wrap_tool_call
    async def asigned(asked: Any, handler: Any) -> Any:
        found = await handler(asked)
        return found.model_copy(update={"content": f"{found.content} Signed."})

    run = Beside(signed if way == "stream" else asigned, first=first)
    run.work(way=way)
    run.assert_sound(ALL)
    assert all(answer(run, step).text.endswith("Signed.") for step in ALL)
    assert isinstance(run.messages[0], HumanMessage)
