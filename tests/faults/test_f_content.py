"""Content lost or revived: what must still be known after a fold, and what must not come back.

An agent that loses its request works on an old one. One that loses what it has done does it again.
And what nobody needs in a digest (base64 of images) fills every later call.
"""

import base64
import json
import random
import re
from itertools import product
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware, dynamic_prompt
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import (
    CompactionNode,
    CompactionState,
    ExtractiveSummarizer,
    create_recall_tool,
    model_view,
    pin,
)
from langgraph_compaction.digest.facts.layout import DONE
from langgraph_compaction.middleware import CompactionMiddleware
from tests.faults.threads import (
    Talk,
    agent,
    each_graph,
    each_role,
    each_way,
    filled,
    history,
    human,
    result,
    system,
)
from tests.support.bad_answers import SAID, written_in
from tests.support.doubles import ScriptedModel, transcript
from tests.support.folding import DIGEST, Recorder, node
from tests.support.histories import random_history
from tests.support.runtimes import runtime
from tests.support.validity import violations

KEEPS = [("messages", 2), ("messages", 1), ("tokens", 50), ("messages", 0)]


@pytest.mark.parametrize("keep", KEEPS)
@each_graph
def test_f1_the_current_request_is_there_while_the_work_on_it_goes_on(
    way: str, between: bool, keep: Any
) -> None:
    """hermes-agent#10896, codex#25686: the request is swallowed, and an old task is done again.

    `H old, AI, H "TASK B", (AI(i), T(i))×n`: the newest human message stays, or the digest has it
    word for word, as the newest one.
    """
    task = f"TASK B: sort the parts by weight. {filled('b', 80)}"
    asked = iter([agent(f"a{n}", f"c{n}") for n in range(2, 9)])
    talk = Talk(
        node(keep=keep, clear=False, min_keep=0), way=way, between=between,
        answer=lambda _: next(asked),
    )  # fmt: skip
    said = [human("old", 80), agent("done", words=80), HumanMessage(task, id="task-b")]
    talk.say(*said, agent("a1", "c1"), result("c1"))
    for number in range(2, 8):
        talk.say(result(f"c{number}", 60))
    assert talk.record["segments"]
    for view in talk.views:
        shown = [message.text for message in view]
        if task not in shown:  # quoted
            assert keep == ("messages", 0)
            text = next(message.text for message in view if message.id == "summarization")
            assert f"The user's newest message here, word for word:\n{task}" in text
        assert not any("old-word" in one and "Record of" not in one for one in shown[1:])


@pytest.mark.parametrize("keep", KEEPS)
@each_role
def test_f2_the_newest_request_and_group_are_always_there(role: str, keep: Any) -> None:
    """langmem#111: of `H, AI(c), T(600 words)` the model receives a system message alone.

    Both are there, whole or clipped; with `keep=("messages", 0)` the request is quoted in full.
    """
    request = f"Read the log. {filled('q', 60)}"
    for window, size in product((900, 1_500, 60_000), (600, 3_000)):
        compact = node(
            keep=keep, context_window=window, trigger=("tokens", 400), digest_role=role,
            task=None, min_keep=0,
        )  # fmt: skip
        talk = Talk(compact)
        read = [HumanMessage(request, id="q"), agent("a1", "c"), result("c", size)]
        view = talk.say(human("h0", 60), agent("a0", words=60), *read)
        assert violations(view) == []
        assert any(request in message.text for message in view)
        texts = {message.id: message.text for message in view}
        if keep != ("messages", 0):
            assert texts["q"] == request
            assert view[-2].tool_calls  # type: ignore[attr-defined]
            whole = filled("r-c", size)
            assert texts["r-c"] == whole or (
                texts["r-c"].startswith(whole[:60]) and texts["r-c"].endswith(whole[-60:])
            )
        assert compact.measure(talk.state).tokens <= window


@each_role
@each_graph
def test_f3_system_messages_survive_byte_for_byte(way: str, between: bool, role: str) -> None:
    """langchain#33856: the system message is removed.

    All of them are there as they were, in order; also later ones, and one with blocks of its own.
    """
    block: Any = {"type": "text", "text": "Cached.\n\n  \t", "cache_control": {"type": "ephemeral"}}
    leading = [SystemMessage("You are “careful”.\r\n ", id="s1"), SystemMessage([block], id="s2")]
    late = SystemMessage("  Never skip {this}.\n", id="s3")
    talk = Talk(node(digest_role=role, clear=False), way=way, between=between)
    talk.say(*leading, human("h1"), agent("a1", words=150), late, human("h2", 150))
    talk.say(human("h3", 150))
    view = talk.say(human("h4", 150))
    assert talk.record["segments"]
    systems = [message for message in view if isinstance(message, SystemMessage)]
    blocks = [one for message in systems for one in content_of(message)]
    assert blocks[:3] == ["You are “careful”.\r\n ", block, "  Never skip {this}.\n"]
    assert {"s1", "s2", "s3"} <= {message.id for message in talk.state["messages"]}


def content_of(message: SystemMessage) -> list[Any]:
    """The blocks of a system message, plain text without its wrapping."""
    if isinstance(message.content, str):
        return [message.content]
    return [
        one["text"] if isinstance(one, dict) and set(one) == {"type", "text"} else one
        for one in message.content
    ]


class Planned(CompactionState):
    todos: list[str]


@each_role
def test_f4_live_state_is_shown_whatever_the_digest_loses(role: str) -> None:
    """deepagents#4164: the to-do list lives in the state, and the digest loses it.

    It is added to the view as it is now, and an agent may do so itself by its system prompt.
    """
    compact = node(digest_role=role, clear=False, live_state="todos")
    talk = Talk(compact, state=Planned)
    talk.graph.update_state(talk.config, {"todos": ["1. weigh", "2. sort"]}, as_node="agent")
    talk.say(*history())
    assert talk.record["segments"]
    talk.graph.update_state(talk.config, {"todos": ["2. sort"]}, as_node="agent")
    state = talk.state
    view = compact.view(state, system=f"Open to-dos: {state['todos']}")
    assert view[0].text.startswith("Open to-dos: ['2. sort']")
    assert sum(isinstance(message, SystemMessage) for message in view) == 1
    assert violations(view, state_ends_with_ai=True) == []
    shown = [message.text for message in view if message.id == "live_state"]
    assert len(shown) == 1
    assert "- 2. sort" in shown[0]
    assert "1. weigh" not in shown[0]


def test_f4_the_todo_list_of_create_agent_is_shown_after_a_fold() -> None:
    """deepagents#4164: as above, with LangChain's to-do list in `create_agent`."""
    todo: Any = {"content": "sort by weight", "status": "in_progress"}

    def reply(view: list[BaseMessage]) -> AIMessage:
        if any("write_todos" in str(getattr(m, "tool_calls", "")) for m in view) or folds:
            return AIMessage("Noted.")
        folds.append(1)
        call: Any = {"name": "write_todos", "args": {"todos": [todo]}, "id": "c"}
        return AIMessage("", tool_calls=[call])

    @dynamic_prompt
    def todos(request: Any) -> str:
        return f"To-dos: {json.dumps(request.state.get('todos', []))}"

    folds: list[int] = []
    model = ScriptedModel(reply=reply)
    compaction = CompactionMiddleware(
        lambda _: DIGEST, context_window=60_000, trigger=("tokens", 600), keep=("messages", 1),
        min_fold_tokens=0, min_fold_share=0.0, token_counter="estimate", clear=False,
    )  # fmt: skip
    app = create_agent(
        model, middleware=[TodoListMiddleware(), compaction, todos], checkpointer=InMemorySaver()
    )
    config: Any = {"configurable": {"thread_id": "t"}}
    for number in range(3):
        app.invoke({"messages": [human(f"h{number}", 250)]}, config)
    state = app.get_state(config).values
    assert state["compaction"]["segments"]
    assert not any(isinstance(message, ToolMessage) for message in model.calls[-1])
    assert "sort by weight" in model.calls[-1][0].text


@each_graph
def test_f5_results_of_protected_tools_are_never_cleared_and_can_be_pinned(
    way: str, between: bool
) -> None:
    """claude-code#13919: skill texts are lost, their names remain.

    With `protected_tools` such a result is never cleared, and pinned it outlives every fold, with
    its call.
    """

    def skill(number: int) -> list[BaseMessage]:
        call: Any = {"name": "load_skill", "args": {"n": number}, "id": f"s{number}"}
        text = filled(f"skill-{number}", 300)
        made = ToolMessage(text, tool_call_id=f"s{number}", name="load_skill", id=f"t{number}")
        return [AIMessage("", tool_calls=[call], id=f"l{number}"), made]

    work = [m for n in range(8) for m in (agent(f"a{n}", f"c{n}", words=10), result(f"c{n}", 300))]
    clearing: Any = {"clear": True, "clear_keep": 1, "clear_min_chars": 100, "target": 2_900}
    for pinned in (None, {"name": "load_skill"}):
        compact = node(
            trigger=("tokens", 3_000), protected_tools=["load_skill"], pinned=pinned, **clearing
        )
        talk = Talk(compact, way=way, between=between)
        talk.say(human("h1"), *skill(1), *work, human("h2"))
        view = talk.say(human("h3"))
        assert "cleared" in talk.kinds
        shown = {message.id: message.text for message in view}
        assert shown["t1"] == filled("skill-1", 300)
        assert any(text.startswith("[Cleared: ") for text in shown.values())
        for number in range(6):
            talk.say(human(f"more-{number}", 400))
        view = talk.views[-1]
        assert talk.record["segments"]
        assert ("t1" in {message.id for message in view}) is (pinned is not None)
        if pinned:
            index = [message.id for message in view].index("t1")
            assert view[index - 1].id == "l1"
            assert view[index].text == filled("skill-1", 300)
        assert violations(view) == []


PIXELS = base64.b64encode(bytes(range(256)) * 12).decode()
IMAGES: dict[str, Any] = {
    "OpenAI": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXELS}"}},
    "standard": {"type": "image", "base64": PIXELS, "mime_type": "image/png"},
    "Anthropic": {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PIXELS},
    },
    "Responses": {"type": "input_image", "image_url": f"data:image/png;base64,{PIXELS}"},
}


@pytest.mark.parametrize("model", ["summariser", "extracts"])
@pytest.mark.parametrize("shape", IMAGES)
def test_f6_an_image_leaves_a_marker_and_its_original_is_in_the_archive(
    shape: str, model: str
) -> None:
    """deepagents#2873: of `H([text, image_url])` the image vanishes from digest and archive.

    The digest has a marker with type and size, and the archive the message as it was.
    """
    store, recorder = InMemoryStore(), Recorder()
    given = HumanMessage([{"type": "text", "text": "What is this pump?"}, IMAGES[shape]], id="pic")
    writer: Any = recorder if model == "summariser" else ExtractiveSummarizer()
    talk = Talk(node(writer, history="prune", min_segment_tokens=400), store=store)
    said = [human("h1"), agent("a1", words=200), given, agent("a2", words=100), human("h3")]
    talk.say(*said)
    assert "pic" not in {message.id for message in talk.state["messages"]}
    digest = talk.record["segments"][0]["text"]
    assert "[image image/png 3,0" in digest  # of 3,072 bytes, or about
    if model == "summariser":
        assert "[image image/png 3,0" in recorder.read
    assert PIXELS in str([item.value for item in store.search(("langgraph_compaction",))])
    recall = create_recall_tool(search=False, media=True, max_tokens=20_000)
    call = {"id": "pic", "runtime": runtime(talk.state, talk.config, store)}
    answer = recall.invoke({"name": "recall", "args": call, "id": "c", "type": "tool_call"})
    assert (PIXELS if shape in {"OpenAI", "standard"} else "What is this pump?") in str(answer)


@pytest.mark.parametrize("shape", [*IMAGES, "text", "result", "argument"])
@each_way
def test_f7_no_base64_is_ever_in_a_digest(way: str, shape: str) -> None:
    """codex#33493: base64 images are in every replacement, 4.16 GB of them.

    Neither in a request nor in the record, wherever it stood; nor what a summariser copies of it.
    """
    url = f"data:image/png;base64,{PIXELS}"
    odd: list[BaseMessage] = [HumanMessage(f"Look at {url} and say what it is.", id="odd")]
    if shape in IMAGES:
        odd = [HumanMessage([{"type": "text", "text": "Look."}, IMAGES[shape]], id="odd")]
    elif shape == "result":
        odd = [agent("x", "c"), ToolMessage(url, tool_call_id="c", id="odd")]
    elif shape == "argument":
        call: Any = {"name": "show", "args": {"image": url}, "id": "c"}
        odd = [AIMessage("", tool_calls=[call], id="x"), result("c")]

    def copying(messages: list[BaseMessage]) -> str:
        found = re.findall(r"[A-Za-z0-9+/=]{60,}", messages[-1].text)
        return f"{DIGEST}\n## Findings\n" + "\n".join(found)

    for model in (copying, ExtractiveSummarizer()):
        recorder = Recorder(copying)
        writer: Any = recorder if model is copying else model
        talk = Talk(
            node(writer, clear=False, max_segment_tokens=20_000, segment_share=0.9), way=way
        )
        talk.say(human("h1"), agent("a1", words=200), *odd, agent("a2", words=100), human("h3"))
        assert PIXELS[:60] not in str(talk.record)
        assert PIXELS[-60:] not in str(talk.record)
        if shape in IMAGES:
            assert PIXELS[:60] not in recorder.read
        assert talk.record["segments"]


def effects() -> list[BaseMessage]:
    """An agent that has sent a mail, deleted a file, and failed to deploy."""
    steps = [
        ("send_email", {"to": "ann@example.com", "subject": "Invoice 4711"}, "sent", "success"),
        ("delete_file", {"path": "/srv/tmp/old.csv"}, "deleted", "success"),
        ("deploy", {"target": "prod-7"}, "Error: quota exceeded", "error"),
    ]
    found: list[BaseMessage] = []
    for number, (name, args, said, status) in enumerate(steps):
        call: Any = {"name": name, "args": args, "id": f"e{number}"}
        found.append(AIMessage("", tool_calls=[call], id=f"ea{number}"))
        found.append(
            ToolMessage(said, tool_call_id=f"e{number}", id=f"et{number}", status=status, name=name)
        )
    return found


@each_way
def test_f8_finished_effects_are_told_as_done(way: str) -> None:
    """hermes-agent#48855: side effects are repeated.

    A summariser is asked for what was done, and shown name, arguments and outcome of every call.
    What its text does not tell of, here nothing, stands below it; extracts have it by themselves.
    """
    names = {"send_email": "ann@example.com", "delete_file": "/srv/tmp/old.csv", "deploy": "prod-7"}
    recorder = Recorder()
    for writer in (recorder, ExtractiveSummarizer()):
        model: Any = writer
        talk = Talk(node(model, clear=False, min_segment_tokens=500, task=None), way=way)
        said = [human("h1"), agent("a1", words=200), *effects(), agent("a2", words=60), human("h3")]
        talk.say(*said)
        digest = talk.record["segments"][0]["text"]
        if writer is recorder:
            asked = recorder.prompts[0]
            assert re.search(r"## Done: actions already taken .* so that none is repeated", asked)
            shown = transcript([HumanMessage(asked)])
            for name, argument in names.items():
                assert re.search(rf"<call>{name} .*{re.escape(argument)}.*</call>", shown)
            assert re.search(r'of="deploy" outcome="error">\nError: quota exceeded', shown)
            assert re.search(r'of="send_email" outcome="ok">\nsent', shown)
            told = digest.partition(f"{DONE}\n")[2].splitlines()
            assert told[:3] == [
                "- send_email(to=ann@example.com, subject=Invoice 4711) → ok: sent",
                "- delete_file(/srv/tmp/old.csv) → ok: deleted",
                "- deploy(prod-7) → error: Error: quota exceeded",
            ]
            assert "look(" not in digest
        else:
            done = digest.partition("## Done")[2].partition("\n## ")[0]
            for name, argument in names.items():
                line = next(row for row in done.splitlines() if name in row)
                assert argument in line
            assert "sent" in done
            assert "quota exceeded" in digest


@pytest.mark.parametrize(
    "language", ["German", "Chinese", "Cyrillic script", "Spanish", "Japanese"]
)
def test_f9_the_digest_is_in_the_language_of_the_conversation(language: str) -> None:
    """opencode#20156: the digest switches to English, and the agent follows.

    A digest in another language is mended or rejected, and the next tier's turn comes.
    """
    goal, state = SAID[language]
    said: list[BaseMessage] = []
    for number in range(30):
        said.append(HumanMessage(f"{goal} ({number})", id=f"h{number}"))
        said.append(AIMessage(f"{state} ({number})", id=f"a{number}"))
    wrong, good = (
        Recorder(lambda _: written_in("English")),
        Recorder(lambda _: written_in(language)),
    )
    talk = Talk(node([wrong, good], clear=False, segment_share=0.9, task=None))
    talk.say(*said, HumanMessage(goal, id="last"))
    assert len(wrong.prompts) == 2
    assert "in the language of the conversation" in wrong.prompts[0]
    assert "it is written in English" in wrong.prompts[1]
    assert talk.kinds == ["started", "rejected", "rejected", "completed"]
    assert talk.record["segments"][0]["text"].count(state) == 1
    assert SAID["English"][1] not in str(talk.record)


def test_f10_before_any_fold_the_view_is_the_messages() -> None:
    """dotnet/extensions#6890: messages are lost below the threshold.

    The view equals the messages; of an abandoned call only the missing answer is added.
    """
    asked = Recorder()
    compact = CompactionNode(asked, context_window=10_000_000, token_counter="estimate")
    for seed in range(60):
        malformed = seed % 2 == 1
        messages = random_history(random.Random(seed), malformed=malformed, ids="unique")
        state: Any = {"messages": messages, "compaction": {}}
        assert compact.invoke(state) == {}
        view = model_view(state)
        assert compact.view(state) == view
        if not malformed:
            assert view == messages
        added = [message for message in view if message not in messages]
        assert len(view) - len(messages) == len([m for m in added if isinstance(m, ToolMessage)])
        assert {message.id for message in messages} <= {message.id for message in view}
    abandoned = [human("h1"), agent("a1", "x", "y"), result("x"), human("h2")]
    talk = Talk(compact)
    view = talk.say(*abandoned)
    assert [m for m in view if m.id in {"h1", "a1", "r-x", "h2"}] == abandoned
    (answer,) = (m for m in view if m.id not in {"h1", "a1", "r-x", "h2"})
    assert isinstance(answer, ToolMessage)
    assert answer.tool_call_id == "y"
    assert asked.prompts == []


def test_f10_a_pin_stays_word_for_word() -> None:
    """dotnet/extensions#6890: what is marked stays, through every fold."""
    talk = Talk(node(clear=False))
    talk.say(human("h1"), agent("a1"), pin(human("rule", 30)), agent("a2", words=100), human("h2"))
    for number in range(5):
        talk.say(human(f"more-{number}", 200))
    assert [m.text for m in talk.views[-1] if m.id == "rule"] == [filled("rule", 30)]
    assert len(talk.record["segments"]) >= 3
    assert system("s").id == "s"
