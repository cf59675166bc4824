"""Given the same list of messages, what triggers and keeps of other packages come to, and ours.

The middlewares of LangChain and deepagents decide here themselves, without an agent around them:
what they pass on tells whether they summarised, and what they kept.
"""

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepSummarization
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents.middleware import ModelRequest, ModelResponse, SummarizationMiddleware
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from langgraph_compaction import CompactionNode
from tests.support.doubles import ScriptedModel, Summaries
from tests.support.migrating import backs

WINDOW = 100_000
PROFILE: Any = {"max_input_tokens": WINDOW}
MODEL = ScriptedModel(reply=lambda _: AIMessage("A summary."), profile=PROFILE)
Ids = list[str | None]


# ---- what they decide


def kept_by_langchain(messages: list[AnyMessage], **options: Any) -> Ids | None:
    """What `SummarizationMiddleware` leaves of a list; None: it does not summarise."""
    theirs = SummarizationMiddleware(MODEL, **options)
    runtime: Any = None
    update = theirs.before_model({"messages": messages}, runtime)
    return None if update is None else [m.id for m in update["messages"][2:]]


def kept_by_deepagents(messages: list[AnyMessage], **options: Any) -> Ids | None:
    """The same of deepagents, which shows the model a summary and leaves the state alone."""
    state: Any = {"messages": messages}
    seen: list[Ids] = []

    def provider(request: Any) -> ModelResponse:
        seen.append([message.id for message in request.messages])
        return ModelResponse(result=[AIMessage("Done.")])

    with tempfile.TemporaryDirectory() as folder:
        backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
        theirs = DeepSummarization(model=MODEL, backend=backend, **options)
        theirs.wrap_model_call(ModelRequest(model=MODEL, messages=messages, state=state), provider)
    (shown,) = seen
    return None if shown == [message.id for message in messages] else shown[1:]


each_package = pytest.mark.parametrize(
    "theirs", [kept_by_langchain, kept_by_deepagents], ids=["langchain", "deepagents"]
)
Theirs = Callable[..., Ids | None]


def node(**options: Any) -> CompactionNode:
    """Ours, where nothing but trigger and keep decides."""
    rules = {"clear": False, "min_keep": 0, "min_fold_tokens": 0, "min_fold_share": 0.0, **options}
    return CompactionNode(Summaries(), agent_model=MODEL, **rules)


# ---- threads


@st.composite
def threads(draw: st.DrawFn, fewest: int = 1, most: int = 60) -> list[AnyMessage]:
    """Requests and answers with some calls, alone or in parallel, of so many words each."""
    messages: list[AnyMessage] = []
    sizes = st.integers(fewest, most)

    def add(kind: type[AnyMessage], **more: Any) -> None:
        text = "word " * draw(sizes)
        messages.append(kind(content=text, id=f"m{len(messages)}", **more))

    for parallel in [-1, 0, *draw(st.lists(st.integers(-1, 3), max_size=25))]:
        if parallel < 0:
            add(HumanMessage)
            continue
        names = [f"c{len(messages)}-{n}" for n in range(parallel)]
        add(AIMessage, tool_calls=[{"name": "work", "args": {}, "id": name} for name in names])
        for name in names:
            add(ToolMessage, tool_call_id=name)
    return messages


@st.composite
def triggers(draw: st.DrawFn) -> tuple[list[AnyMessage], Any]:
    """A thread, and a trigger in each form, whose conditions it just meets or just does not."""
    messages = draw(threads())
    tokens = count_tokens_approximately(messages)
    near = st.integers(-2, 2)
    pair = st.one_of(
        st.tuples(st.just("messages"), near.map(lambda n: max(2, len(messages) + n))),
        st.tuples(st.just("tokens"), near.map(lambda n: tokens + n)),
        # Theirs rounds its product down to whole tokens, so no nearer than two.
        st.tuples(
            st.just("fraction"), st.sampled_from([-2, 2]).map(lambda n: (tokens + n) / WINDOW)
        ),
    )
    all_of = st.lists(pair, min_size=1, max_size=3).map(dict)
    any_of = st.lists(st.one_of(pair, all_of), min_size=1, max_size=3)
    return messages, draw(st.one_of(pair, all_of, any_of))


KEEPS = st.one_of(
    st.tuples(st.just("messages"), st.integers(1, 40)),
    st.tuples(st.just("tokens"), st.integers(600, 15_000)),
    st.tuples(st.just("fraction"), st.floats(0.006, 0.15)),
)


# ---- whether, and what is left


@backs("langchain", theirs="trigger", here="trigger")
@backs("deepagents", theirs="trigger", here="trigger")
@backs("deepagents", theirs="token_counter", here="token_counter")
@each_package
@given(triggers())
def test_a_trigger_fires_on_the_same_lists(
    theirs: Theirs, case: tuple[list[AnyMessage], Any]
) -> None:
    """A pair, a dict of which all have to hold, a list of which one has to."""
    messages, trigger = case
    fires = theirs(messages, trigger=trigger, keep=("messages", 1)) is not None
    ours = node(trigger=trigger, keep=("messages", 1), token_counter="approximate")
    assert (ours.explain({"messages": messages, "compaction": {}}).need != "none") is fires


@backs("langchain", theirs="keep", here="keep")
@backs("deepagents", theirs="keep", here="keep")
@each_package
@given(messages=threads(fewest=260, most=400), keep=KEEPS)
def test_a_keep_hides_the_same_messages_and_the_group_that_it_divides(
    theirs: Theirs, messages: list[AnyMessage], keep: Any
) -> None:
    """Theirs shows such a group whole; here it is hidden, unless it is the newest.

    With messages so long that any is worth a fold. The newest request stays here in any case.
    """
    asked = max(n for n, message in enumerate(messages) if isinstance(message, HumanMessage))
    left = theirs(messages, trigger=("tokens", 1), keep=keep)
    first = 0 if left is None else len(messages) - len(left)
    hidden = set(range(first)) - {asked}
    ours = node(
        trigger=("steps", 1), keep=keep, target=None, task=None, token_counter="approximate"
    )
    found = ours.explain({"messages": messages, "compaction": {}})
    span = range(found.span[0], found.span[1] + 1) if found.span else ()
    more = set(span) - set(found.kept) - hidden
    assert hidden <= set(span) - set(found.kept)
    assert not more or group_of(messages, first) == more
    assert len(more) != 1


def group_of(messages: Sequence[AnyMessage], first: int) -> set[int]:
    """The positions of a call and its results."""
    end = first + 1
    while end < len(messages) and isinstance(messages[end], ToolMessage):
        end += 1
    return set(range(first, end))
