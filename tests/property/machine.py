"""One thread, and everybody at once: a state machine in a real graph with real checkpoints.

People write, delete, edit, pin and insert messages, clear the chat, correct, restore and forget
digests, change settings, fork from earlier checkpoints; summarisers answer well, badly or never;
visits happen here, beside the agent, side by side or after a restart. After every step the promises
of the package are checked from the outside, see `tests.support.branches`.

Nothing in it depends on the clock, so that a history that breaks a promise breaks it again.
"""

import asyncio
import pickle
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from typing import Any, ClassVar

from hypothesis import stateful
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore

from langgraph_compaction import (
    BudgetError,
    CompactionNode,
    CompactionState,
    ConfigurationError,
    ExtractiveSummarizer,
    ModelTier,
    create_recall_tool,
    edit_digest,
    forget,
    model_view,
    overflow_handler,
    pin,
    request_compaction,
    restore,
)
from langgraph_compaction.engine import fallback
from langgraph_compaction.run.context import place_of
from langgraph_compaction.state import UNSET
from tests.support.background import begun, settle
from tests.support.branches import Branch, State
from tests.support.doubles import THREAD
from tests.support.moody import BAD, Moody
from tests.support.promises import BrokenPromiseError, Fault, Promise, Tally, expect
from tests.support.runtimes import runtime
from tests.support.sources import Extracts, Sources

PROSE = "The pump was opened, cleaned and closed again, and runs without a fault. "
SIZES = {"short": 1, "middle": 4, "long": 12, "huge": 90}
CLEARS = {"clear": True, "clear_min_chars": 50, "clear_keep": 1, "clear_min_share": 0.0}
SETTINGS: list[dict[str, Any]] = [
    {"trigger": ["tokens", 200]},
    {"trigger": ["messages", 6]},
    {"trigger": ["steps", 2]},
    {"trigger": ["tokens", 5_000]},
    {"trigger": None},
    {"keep": ["messages", 2]},
    {"keep": ["messages", 0]},
    {"keep": ["tokens", 150]},
    {"keep": UNSET, "trigger": UNSET, "target": UNSET},
    {"target": None},
    {"digest": "rolling"},
    {"digest": "chain"},
    {"digest_role": "system"},
    {"digest_role": "human"},
    {"task": "latest"},
    {"task": None},
    CLEARS,
    {"clear": False},
    {"history": "prune"},
    {"history": "full"},
    {"enabled": False},
    {"enabled": True},
    {"max_digest_tokens": 400},
    {"max_digest_tokens": UNSET},
    {"context_window": 1_500},
    {"context_window": 3_000, "trigger": ["fraction", 0.5]},
    {"context_window": 60_000},
    {"pinned": {"contains": "long"}},
    {"pinned": None},
    {"recall_tool": "recall"},
    {"max_result_tokens": 200},
    {"digest_header": "[What was done so far]"},
    {"trigger": "soon", "nonsense": 1},
]
recall = create_recall_tool()


class ProviderRefusedError(Exception):
    """What a provider's client raises, in words of its own."""


moods = st.sampled_from([*["good"] * 5, *BAD])
sizes = st.sampled_from(["middle", "short", "long", "huge"])
meanwhile = st.sampled_from(["nothing", "says", "edits", "deletes", "pins"])
places = st.integers(0, 10**6)
"""Which of what there is: the remainder counts."""


Rule = Callable[..., None]


def _step(function: Rule) -> Rule:
    """A rule whose steps are counted; a history that broke a promise is not driven on."""

    @wraps(function)
    def counted(self: "Machine", **values: Any) -> None:
        if self.ended:
            return
        self.tally.steps[function.__name__] += 1
        self.told.append(f"{function.__name__}({values})")
        try:
            function(self, **values)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is a finding
            self._ends(error)

    return counted


def rule(**values: Any) -> Callable[[Rule], Any]:
    return lambda function: stateful.rule(**values)(_step(function))


class Machine(RuleBasedStateMachine):
    """A thread with everything that may happen to it.

    Attributes:
        tally: what all machines did; a broken promise is counted instead of raised where there
            are others to come.
        collects: whether there are.
    """

    tally: ClassVar[Tally] = Tally()
    collects: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.tally.histories += 1
        self.told: list[str] = []
        self.ended = False
        self.sources = Sources()
        self.model = Moody(sources=self.sources)
        fallback.FALLBACK = Extracts(self.sources.ledger)  # type: ignore[assignment]
        self.store = InMemoryStore()
        self.saver = _saver()
        self.branch = Branch()
        self.made = 0
        self.erased: set[str] = set()  # what was deleted in the archive, for all branches
        self.earlier: list[tuple[Any, Branch]] = []
        self.refusals = 0
        self._open()
        self.config = self._written({"messages": [], "compaction": {}})

    def _ends(self, error: Exception) -> None:
        """A promise was broken: raise it, or count it and let the next history begin."""
        if not self.collects:
            raise error
        raised = [Fault(Promise.NO_ERROR, f"{type(error).__name__}: {error}")]
        faults = error.faults if isinstance(error, BrokenPromiseError) else raised
        self.tally.note(faults, "\n".join(self.told))
        self.ended = True

    def _happened(self, what: str) -> None:
        self.tally.happened[what] += 1

    def _open(self) -> None:
        """A process begins: nothing but the saver and the store is there."""
        values: dict[str, Any] = {
            "archive": self.store,
            "context_window": 60_000,
            "token_counter": "estimate",
            "trigger": ("tokens", 600),
            "min_fold_tokens": 0,
            "min_fold_share": 0.0,
            "clear": False,
        }
        tier = ModelTier(self.model)
        self.compact = CompactionNode(tier, **values, keep=("messages", 2))
        self.second = CompactionNode(tier, **values, keep=("messages", 5), name="second")
        builder: Any = StateGraph(CompactionState)
        builder.add_node("compact", self.compact)
        builder.add_node("agent", self._agent, error_handler=overflow_handler(self.compact))
        builder.add_conditional_edges(
            START, lambda state: "agent" if self.refusals else "compact", ["agent", "compact"]
        )
        self.graph = builder.compile(checkpointer=self.saver, store=self.store)
        self.values: State = {}

    def _agent(self, state: Any) -> Any:
        """An agent whose provider refuses the next calls as too long, and says nothing else."""
        self.refusals -= 1
        if self.refusals >= 0:
            size = self.compact.measure(state).tokens
            raise ProviderRefusedError(
                f"maximum context length is {size * 2 // 3} tokens, you requested {size} tokens"
            )
        return {}

    # ---- what is done to the thread

    def _written(self, update: State, config: Any = None) -> Any:
        found = self.graph.update_state(config or THREAD, update, as_node="compact")
        self.values = self.graph.get_state(found).values
        return found

    def _people(self, update: State, *, grows: bool = False) -> None:
        """What somebody writes into the state."""
        before = self.values.get("messages", [])
        self.config = self._written(update, self.config)
        self.branch.follow(before, self.values["messages"], grows=grows)

    def _visited(self, before: State) -> None:
        """What a visit left: messages that are gone were pruned."""
        after = self.values
        left = {message.id for message in after["messages"]}
        gone = [message for message in before["messages"] if message.id not in left]
        self.branch.pruned |= {str(message.id) for message in gone}
        faults = list(self.branch.faults_of_visit(before, after))
        if faults:
            raise BrokenPromiseError(faults)
        old, new = before["compaction"], after["compaction"]
        if new != old:
            self._happened("a visit changed the record")
            self._remember()
        for name in "segments", "clearing", "failures", "overflow":
            if new.get(name) != old.get(name) and new.get(name):
                self._happened(f"a visit wrote {name}")
        if gone:
            self._happened("a visit pruned")
        self.erased -= {str(message.id) for message in gone}  # they are in the archive again
        for message in gone:
            self._is_found(message)

    def _remember(self) -> None:
        self.earlier = [*self.earlier[-7:], (self.config, self.branch.copy())]

    def _text(self, name: str, size: str, edits: int = 0) -> str:
        return f"{name}.{edits}: {size} {PROSE * SIZES[size]}"

    def _name(self) -> str:
        self.made += 1
        return f"m{self.made}"

    def _last_covered(self) -> int:
        covered = set().union(*map(self.sources.of, self._segments))
        covered |= set(self.values["compaction"].get("kept_ids", ()))
        messages = self.values["messages"]
        return max((n for n, message in enumerate(messages) if message.id in covered), default=-1)

    def _place(self, place: int, *, after_covered: bool) -> int:
        # Right behind what is covered it might stand where the last of that stood.
        first = self._last_covered() + 2 if after_covered else 0
        return first + place % max(1, len(self.values["messages"]) - first)

    def _one(self, place: int) -> BaseMessage:
        messages = self.values["messages"]
        return messages[place % len(messages)]  # type: ignore[no-any-return]

    @property
    def _segments(self) -> list[Any]:
        return self.values["compaction"].get("segments", [])  # type: ignore[no-any-return]

    @property
    def _any(self) -> bool:
        return bool(self.values.get("messages"))

    @stateful.initialize(
        turns=st.integers(0, 8),
        size=sizes,
        values=st.sampled_from([{}, *SETTINGS]),
        own=st.sampled_from([{}, {"history": "prune"}, {"history": "prune"}, CLEARS]),
        pinned=st.booleans(),
    )
    @_step
    def begin(
        self, turns: int, size: str, values: dict[str, Any], own: dict[str, Any], *, pinned: bool
    ) -> None:
        """A thread that was used before compaction was added to its graph."""
        self._people({"compaction_settings": {**own, **values}})
        self._converse(turns, size, 1)
        if pinned and turns:
            self._people({"messages": [pin(self._one(1))]})

    @rule(turns=st.integers(1, 4), size=sizes, calls=st.integers(0, 2))
    def converse(self, turns: int, size: str, calls: int) -> None:
        """User and agent in turns."""
        self._converse(turns, size, calls)

    def _converse(self, turns: int, size: str, calls: int) -> None:
        new = [m for _ in range(turns) for m in (self._said(size), *self._worked(size, calls))]
        self._people({"messages": new}, grows=True)

    @rule(size=sizes, calls=st.integers(0, 3), steps=st.integers(1, 3))
    def work(self, size: str, calls: int, steps: int) -> None:
        """The agent works for some steps, with calls of tools and their results."""
        new = [m for _ in range(steps) for m in self._worked(size, calls)]
        self._people({"messages": new}, grows=True)

    @rule(calls=st.integers(1, 3))
    def call(self, calls: int) -> None:
        """The agent calls tools, whose results are still to come."""
        self._people({"messages": self._worked("short", calls)[:1]}, grows=True)

    @rule(size=sizes, system=st.booleans())
    def say(self, size: str, *, system: bool) -> None:
        """A user writes, or a program instructs."""
        new = self._said(size)
        if system:
            new = SystemMessage(self._text(str(new.id), "short"), id=new.id)
        self._people({"messages": [new]}, grows=not system)

    def _said(self, size: str) -> BaseMessage:
        name = self._name()
        return HumanMessage(self._text(name, size), id=name)

    def _worked(self, size: str, calls: int) -> list[BaseMessage]:
        name = self._name()
        made = [{"name": "read", "args": {"part": n}, "id": f"{name}-{n}"} for n in range(calls)]
        speaks = AIMessage(self._text(name, "short"), id=name, tool_calls=made)
        return [speaks, *(self._result(str(call["id"]), size) for call in made)]

    def _result(self, call: str, size: str) -> BaseMessage:
        name = self._name()
        return ToolMessage(self._text(name, size), id=name, tool_call_id=call, name="read")

    @precondition(lambda self: self.branch.pending)
    @rule(place=places, size=sizes)
    def answer(self, place: int, size: str) -> None:
        """A result comes, in any order and however late."""
        pending = self.branch.pending
        new = self._result(pending[place % len(pending)], size)
        self._people({"messages": [new]}, grows=True)

    @precondition(lambda self: self._any)
    @rule(place=places, count=st.integers(1, 3))
    def delete(self, place: int, count: int) -> None:
        """Somebody deletes messages."""
        self._delete(place, count)

    def _delete(self, place: int, count: int) -> None:
        at = self._place(place, after_covered=self.branch.inserted)
        gone = self.values["messages"][at : at + count]
        self.branch.deleted = self.branch.deleted or at <= self._last_covered()
        self._people({"messages": [RemoveMessage(message.id) for message in gone]})

    @precondition(lambda self: self._any)
    @rule(place=places, size=sizes)
    def edit(self, place: int, size: str) -> None:
        """Somebody writes a message anew, under its id."""
        self._edit(place, size)

    def _edit(self, place: int, size: str) -> None:
        old = self._one(place)
        edits = int(str(old.content).partition(".")[2].partition(":")[0]) + 1
        new = old.model_copy(update={"content": self._text(str(old.id), size, edits)})
        self._people({"messages": [new]})

    @precondition(lambda self: self._any)
    @rule(place=places, pinned=st.booleans())
    def mark(self, place: int, *, pinned: bool) -> None:
        """Somebody pins a message, or takes the pin off."""
        self._people({"messages": [pin(self._one(place), pinned=pinned)]})

    @precondition(lambda self: self._any)
    @rule(place=places)
    def insert(self, place: int) -> None:
        """Another program writes the list anew, with a message of its own in it."""
        messages, name = list(self.values["messages"]), self._name()
        # Of what covered messages a prune has left, only their number tells (docs, limits).
        left = self.values["compaction"].get("pruned", False) and self._last_covered() >= 0
        at = self._place(place, after_covered=self.branch.deleted or left)
        self.branch.inserted = self.branch.inserted or at <= self._last_covered()
        messages.insert(at, HumanMessage(self._text(name, "middle"), id=name))
        self._people({"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *messages]})

    @precondition(lambda self: self._any)
    @rule(all_at_once=st.booleans())
    def clear(self, *, all_at_once: bool) -> None:
        """Somebody clears the chat."""
        one_by_one = [RemoveMessage(message.id) for message in self.values["messages"]]
        everything = [RemoveMessage(REMOVE_ALL_MESSAGES)]
        self._people({"messages": everything if all_at_once else one_by_one})

    @rule(values=st.sampled_from(SETTINGS))
    def configure(self, values: dict[str, Any]) -> None:
        """Somebody changes the thread's settings."""
        self._people({"compaction_settings": values}, grows=True)

    @rule(said=st.sampled_from([None, "keep the parts"]))
    def request(self, said: str | None) -> None:
        """Somebody asks for compaction."""
        self._people(request_compaction(said), grows=True)

    # ---- what is done to the digest

    def _corrected(self, change: Callable[[State], State]) -> State | None:
        before = deepcopy(self.values)
        try:
            update = change(self.values)
        except ConfigurationError as error:
            self._happened(f"refused: {str(error)[:18]}")
            update = None
        expect(Promise.PURE, holds=self.values == before, detail="a correction changed its input")
        if update is not None:
            self._people(update)
            epoch = before["compaction"].get("epoch", 0) + 1
            raised = self.values["compaction"]["epoch"] == epoch
            expect(Promise.BY_HAND, holds=raised, detail=f"the epoch is not {epoch}")
        return update

    @precondition(lambda self: self._segments)
    @rule(place=places)
    def correct(self, place: int) -> None:
        """Somebody corrects a segment."""
        number = place % len(self._segments)
        text = self.sources.corrected(self._segments[number])
        if self._corrected(lambda state: edit_digest(state, text, segment=number)):
            self._happened("a digest was corrected")
            self._remember()

    @precondition(lambda self: self._segments)
    @rule(place=places)
    def restore(self, place: int) -> None:
        """Somebody takes segments back."""
        number, hidden = place % len(self._segments), self._hidden()
        if self._corrected(lambda state: restore(state, segment=number)):
            self._happened("a digest was restored")
            more = self._hidden() - hidden
            expect(Promise.BY_HAND, holds=not more, detail=f"a restore hid {more}")
            self._remember()

    @precondition(lambda self: self._segments)
    @rule(everywhere=st.booleans())
    def forget(self, *, everywhere: bool) -> None:
        """Somebody has it all forgotten."""
        before, hidden = self.values, self._hidden()
        store = self.store if everywhere else None
        if self._corrected(lambda state: forget(state, store=store, config=THREAD)):
            left = {message.id for message in self.values["messages"]}
            marked = {m.id for m in before["messages"] if pin(m) == m}
            removed = {m.id for m in before["messages"]} - left
            right = removed == hidden - marked and not self._segments
            expect(Promise.BY_HAND, holds=right, detail=f"a forget removed {removed}")
            gone = set(self.branch.pruned)
            forgotten = [m for m in self.branch.full if m.id in gone]
            self.branch.full = [m for m in self.branch.full if m.id not in gone]
            self.branch.pruned = set()
            if everywhere:
                self.erased |= gone.union(*(branch.pruned for _, branch in self.earlier))
                for message in forgotten:
                    self._is_found(message)
            self._happened("a digest was forgotten")
            self._remember()

    def _hidden(self) -> set[str | None]:
        shown = {message.id for message in model_view(self.values)}
        systems = {m.id for m in self.values["messages"] if isinstance(m, SystemMessage)}
        return {message.id for message in self.values["messages"]} - shown - systems

    @precondition(lambda self: self.branch.full)
    @rule(place=places)
    def recall(self, place: int) -> None:
        """The agent looks up what it sees no more, or sees."""
        self._is_found(self.branch.full[place % len(self.branch.full)])

    def _is_found(self, message: BaseMessage) -> None:
        here = runtime(self.values, THREAD, self.store)
        answer = str(recall.invoke({"id": message.id, "runtime": here}))
        present = any(one.id == message.id for one in self.values["messages"])
        gone = self.erased | self.branch.cleared  # deleted, or of a chat that was cleared
        due = present or message.id not in gone
        found = str(message.content)[:60] in answer
        expect(Promise.FOUND, holds=found == due, detail=f"{message.id}: {answer[:200]}")
        if not due:
            how = "erased" if message.id in self.erased else "cleared"
            self._happened(f"what was {how} was looked up")

    # ---- visits

    def _invoke(self, config: Any, *, asynchronously: bool = False) -> None:
        """Run the graph; what a visit may raise by contract is raised before it writes."""
        before = deepcopy(self.values)
        try:
            if asynchronously:
                asyncio.run(self.graph.ainvoke({"messages": []}, config))
            else:
                self.graph.invoke({"messages": []}, config)
        except BudgetError:
            self._happened("a visit raised BudgetError")
        except ProviderRefusedError:  # raised as it is where compaction is off
            expect(Promise.OFF, holds=not _is_on(before), detail="it is on")
        found = self.graph.get_state(THREAD)
        self.config, self.values = found.config, found.values
        self._visited(before)

    @rule(asynchronously=st.booleans())
    def visit(self, *, asynchronously: bool) -> None:
        """The node visits the thread, and all is well."""
        self.model.mood = "good"
        self._invoke(self.config, asynchronously=asynchronously)
        try:
            again = self.compact.invoke(self.values, THREAD)
        except BudgetError:
            return
        expect(Promise.IDLE, holds=again == {}, detail=f"{list(again)} changed")
        size = self.compact.measure(self.values, THREAD)
        fits = size.window is None or size.tokens <= size.window or not _is_on(self.values)
        expect(Promise.WINDOW, holds=fits, detail=f"{size.tokens} of {size.window} tokens")

    @rule(mood=st.sampled_from(BAD), asynchronously=st.booleans())
    def visit_in_vain(self, mood: str, *, asynchronously: bool) -> None:
        """The node visits the thread, and the summariser fails in some way."""
        self.model.mood = mood
        self._invoke(self.config, asynchronously=asynchronously)

    @rule(mood=moods, meanwhile=meanwhile, place=places)
    def visit_beside(self, mood: str, meanwhile: str, place: int) -> None:
        """A visit begins a fold beside the agent, and a later one applies it."""
        self._converse(2, "long", 1)
        self.model.mood = mood
        beside = {**self.config["configurable"], "compaction_settings": {"background": True}}
        self._invoke({"configurable": beside})
        settle(self.compact)
        self._check()
        if begun(self.compact).of(place_of(THREAD)) is not None:
            self._happened("a fold was begun beside the agent")
        if meanwhile == "says":
            self._converse(1, "short", 0)
        elif meanwhile == "edits" and self._any:
            self._edit(place, "middle")
        elif meanwhile == "deletes" and self._any:
            self._delete(place, 1)
        elif meanwhile == "pins" and self._any:
            self._people({"messages": [pin(self._one(place))]})
        self._check()
        beside = {**self.config["configurable"], "compaction_settings": {"background": True}}
        self._invoke({"configurable": beside})
        settle(self.compact)  # of one that this visit began

    @rule(mood=moods)
    def visit_side_by_side(self, mood: str) -> None:
        """Two nodes visit the same state; whose update comes first makes no difference."""
        self.model.mood = mood
        before, fork = deepcopy(self.values), self.config
        updates = []
        for node in (self.compact, self.second):
            try:
                updates.append(node.invoke(self.values, THREAD))
            except BudgetError:
                self._happened("a visit raised BudgetError")
        ends = []
        for order in (updates, updates[::-1]):
            self.config = fork
            for update in filter(None, order):
                self.config = self._written(update, self.config)
            ends.append(self.values)
        expect(Promise.MERGED, holds=ends[0] == ends[1], detail="it makes one")
        self._visited(before)

    @rule(refusals=st.integers(1, 2))
    def overflow(self, refusals: int) -> None:
        """The provider refuses the view, once or twice."""
        self.model.mood, self.refusals = "good", refusals
        self._invoke(self.config)
        self.refusals = 0

    # ---- processes and checkpoints

    @rule(of=st.just("process"))
    def restart(self, of: str) -> None:
        """The process ends, and another one opens what was stored."""
        settle(self.compact)
        saver = _saver()
        for name in ("storage", "writes", "blobs"):
            _fill(getattr(saver, name), getattr(self.saver, name))
        store = InMemoryStore()
        for item in self.store.search((), limit=10_000):
            store.put(item.namespace, item.key, pickle.loads(pickle.dumps(item.value)), index=False)
        self.saver, self.store = saver, store
        values = self.values
        self._open()
        self.values = self.graph.get_state(self.config).values
        expect(Promise.RESTARTED, holds=self.values == values, detail="it is another one")

    @precondition(lambda self: self.earlier)
    @rule(place=places)
    def fork(self, place: int) -> None:
        """Somebody goes back to an earlier checkpoint, and goes on from there."""
        self._remember()
        self.config, branch = self.earlier[place % len(self.earlier)]
        self.branch = branch.copy()
        self.branch.grown = False
        self.values = self.graph.get_state(self.config).values
        self._happened("a fork")

    # ---- what has to hold

    @invariant()
    def check(self) -> None:
        """The promises."""
        if self.ended:
            return
        self.tally.checks += 1
        try:
            self._check()
        except Exception as error:  # noqa: BLE001
            self._ends(error)

    def _check(self) -> None:
        state = self.values
        before = deepcopy(state)
        view, own = model_view(state), self.compact.view(state)
        expect(Promise.PURE, holds=view == model_view(state), detail="two views differ")
        expect(Promise.PURE, holds=state == before, detail="a view changed its input")
        same = "render" not in state["compaction"] or own == view
        expect(Promise.SAME_VIEW, holds=same, detail=f"{len(own)} messages, {len(view)} messages")
        faults = self.branch.faults(state, self.sources)
        if faults:
            raise BrokenPromiseError(faults)

    def teardown(self) -> None:
        fallback.FALLBACK = ExtractiveSummarizer()
        if self.ended:
            return
        try:
            for message in self.branch.full:
                if message.id in self.branch.pruned:
                    self._is_found(message)
        except Exception as error:  # noqa: BLE001
            self._ends(error)


def _is_on(state: State) -> bool:
    own = state.get("compaction_settings", {})
    return own.get("enabled", True) and own.get("trigger", 1) is not None


def _saver() -> InMemorySaver:
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))


def _fill(new: Any, old: Any) -> None:
    """Fill a mapping of mappings, with copies of what another one holds."""
    for key, value in old.items():
        if isinstance(value, dict):
            _fill(new[key], value)
        else:
            new[key] = pickle.loads(pickle.dumps(value))
