"""A record that a hand, another program or another version changed, in one place or several.

Whatever stands in it, every entry point either says what cannot be read, where, and what to do, or
reads it so that nothing is lost: what no segment covers is shown, what was pruned is found, and the
next visits fold as ever. The records are real ones of every kind; each of their fields is taken
away, and gets every odd value.
"""

import asyncio
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, ToolMessage

from langgraph_compaction import (
    ConfigurationError,
    RecordError,
    RecordVersionError,
    create_recall_tool,
    edit_digest,
    forget,
    merge_compaction,
    model_view,
    restore,
)
from langgraph_compaction.recall.answering import CLEARED
from langgraph_compaction.record import checked_record
from tests.support.folding import Recorder
from tests.support.records import (
    CONFIG,
    KINDS,
    ODD,
    REMOVED,
    Mutation,
    Real,
    State,
    all_places,
    mutations,
    places,
    real,
    work,
)
from tests.support.runtimes import runtime

VALUES: list[dict[str, Any]] = [
    {},
    {"history": "prune"},
    {"digest": "rolling"},
    {"digest_role": "system", "task": "latest"},
    {"clear": True, "clear_min_chars": 100},
    {"context_window": 4_000, "trigger": ("fraction", 0.5), "keep": "auto"},
    {"trigger": ("steps", 3), "keep": ("messages", 0), "recall_tool": "recall"},
]
"""Settings that the next visits may have."""

recall = create_recall_tool()


def entry_points(thread: Real, state: State) -> dict[str, Callable[[], Any]]:
    """Everything public that reads a record; none of it changes the state."""
    node, store = thread.node(), thread.store
    here = runtime(state, CONFIG, store)
    return {
        "model_view": lambda: model_view(state),
        "view": lambda: node.view(state, system="Be kind."),
        "invoke": lambda: node.invoke(state, CONFIG),
        "ainvoke": lambda: asyncio.run(node.ainvoke(state, CONFIG)),
        "measure": lambda: node.measure(state),
        "explain": lambda: str(node.explain(state)),
        "route": lambda: node.route("agent")(state),
        "edit_digest": lambda: edit_digest(state, "Part 1 is 8 mm."),
        "edit_digest of the first": lambda: edit_digest(state, "Part 1. " * 99, segment=0),
        "restore": lambda: restore(state),
        "restore of all": lambda: restore(state, segment=0),
        "forget": lambda: forget(state, store=None),
        "forget in the store": lambda: forget(state, store=deepcopy(store), config=CONFIG),
        "recall by id": lambda: recall.invoke({"id": "m2", "runtime": here}),
        "recall by position": lambda: recall.invoke({"first": 2, "last": 9, "runtime": here}),
        "recall by words": lambda: recall.invoke({"query": "word3", "runtime": here}),
        "merge as current": lambda: merge_compaction(state["compaction"], None),
        "merge as update": lambda: merge_compaction({}, state["compaction"]),
    }


CORRECTIONS = {"edit_digest", "restore", "forget"}


def faults_of(thread: Real, mutant: Any, *, shift: int = 0) -> Iterator[str]:
    """What goes wrong with another record in a thread, in words.

    Args:
        thread: the thread, with its own record.
        mutant: the other one.
        shift: how much greater the positions in it are than they were.
    """
    state = {**thread.state, "compaction": mutant}
    before = deepcopy(state["messages"]), repr(mutant)
    found: dict[str, Any] = {}
    for name, call in entry_points(thread, state).items():
        try:
            found[name] = call()
        except Exception as error:  # noqa: BLE001  # which one is what is asked
            found[name] = error
    if (state["messages"], repr(mutant)) != before:
        yield "an input was changed"
    refused = [name for name, one in found.items() if isinstance(one, RecordError)]
    for name, one in found.items():
        allowed = isinstance(one, ConfigurationError) and name.split()[0] in CORRECTIONS
        if isinstance(one, Exception) and not isinstance(one, RecordError) and not allowed:
            yield f"{name} raised {''.join(traceback.format_exception(one, limit=-3))}"
    if refused:
        if len(refused) < len(found):
            yield f"only {refused} refuse it: {found[refused[0]]}"
        yield from _unhelpful(found[refused[0]])
        return
    view = found["model_view"]
    if not isinstance(view, Exception):
        yield from unsafe(thread, mutant, view, shift)
        yield from _later(deepcopy(thread), mutant)


def _unhelpful(error: RecordError) -> Iterator[str]:
    said = str(error)
    remedy = "Upgrade" if isinstance(error, RecordVersionError) else "graph.update_state"
    if "compaction record" not in said or remedy not in said or len(said) > 600:
        yield f"the error does not help: {said}"


def key(message: BaseMessage) -> str:
    """What tells a message from all others, also where it has no id and was cleared."""
    if message.id is None and isinstance(message, ToolMessage):
        return message.tool_call_id
    return _mark(message) if message.id is None else message.id


def unsafe(thread: Real, mutant: Any, view: list[BaseMessage], shift: int = 0) -> Iterator[str]:
    """What a view hides although no segment covers it, or what is lost in it."""
    shown = Counter(map(key, view))
    place = {key(message): index for index, message in enumerate(thread.thread)}
    spans = [
        (one["first_index"] - shift, one["last_index"] - shift)
        for one in mutant.get("segments", ())
    ]
    end = thread.record["last_summarized_index"]
    for message in thread.state["messages"]:
        at = place[key(message)]
        if shown[key(message)] > 1:
            yield f"message {at} is shown twice"
        if not shown[key(message)] and not any(first <= at <= last for first, last in spans):
            yield f"message {at} is hidden, and no segment covers it"
        if not shown[key(message)] and at > end:
            yield f"message {at} is hidden, and never was covered"
    text = "\n".join(str(message.content) for message in view)
    for one, (first, last) in zip(mutant.get("segments", ()), spans, strict=True):
        covered = thread.thread[first : last + 1]
        if one["text"] not in text and not all(shown[key(message)] for message in covered):
            yield f"the segment from {first} is not shown, nor all it covers"


def _later(thread: Real, mutant: Any) -> Iterator[str]:
    """What goes wrong when the thread goes on."""
    thread.state = {**thread.state, "compaction": mutant}
    named = bool(thread.thread[0].id)
    for _ in range(2):
        model = Recorder()
        hidden = _hidden(thread.state)
        messages, record = thread.state["messages"], thread.record
        update = thread.node(model).invoke(thread.state, CONFIG)
        if update:
            thread.take(update)
            checked_record(thread.record)
            if thread.record.get("revision") != record.get("revision", 0) + 1:
                yield "the update lost against the record"
            gone = {message.id for message in update.get("messages", ())}
            here = runtime(thread.state, CONFIG, thread.store)
            for message in messages:
                if key(message) in _hidden(thread.state) - hidden and _mark(message) not in (
                    model.read
                ):
                    yield f"{key(message)} is hidden, and no summariser read it"
                found = str(recall.invoke({"id": message.id, "runtime": here}))
                # Where the chain began anew, what is older than it is not looked up, and that is
                # said: it may be of a chat that was cleared.
                if message.id in gone and _mark(message) not in found and CLEARED not in found:
                    yield f"{key(message)} was pruned, and is not found"
        if thread.node(model).invoke(thread.state, CONFIG) != {}:
            yield "a second visit changes an unchanged thread"
        thread.say(*work(3, start=30, named=named))


def _mark(message: BaseMessage) -> str:
    return str(message.content).split(" ")[0]


def _hidden(state: State) -> set[str]:
    return {*map(key, state["messages"])} - {*map(key, model_view(state))}


# ---- one place


@pytest.mark.parametrize("kind", KINDS)
def test_the_real_records_are_read_by_all(kind: str) -> None:
    thread = real(kind)
    assert list(faults_of(thread, thread.record)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_any_field_may_be_missing(kind: str) -> None:
    thread = real(kind)
    for path in places(thread.record):
        mutation = Mutation(path, REMOVED)
        assert list(faults_of(thread, mutation.of(thread.record))) == [], mutation


@pytest.mark.parametrize("kind", KINDS)
def test_any_place_may_hold_anything(kind: str) -> None:
    # The other entry points read a record by the same check: the next test has them all.
    thread = real(kind)
    made, refused = 0, 0
    for mutation in mutations(thread.record):
        made += 1
        mutant = mutation.of(thread.record)
        try:
            view = model_view({**thread.state, "compaction": mutant})
        except RecordError as error:
            refused += 1
            faults = list(_unhelpful(error))
        else:
            faults = list(unsafe(thread, mutant, view))
        assert faults == [], mutation
    assert made > 1_000
    assert made / 2 < refused < made


# ---- several places


def test_what_is_no_mapping_lacks_no_field() -> None:
    assert ("clearing", "last_index") in all_places({"clearing": {}})
    assert all_places({"segments": [], "clearing": 0}).count(("clearing",)) == 1
    assert ("clearing", "last_index") not in all_places({"segments": [], "clearing": 0})


@given(st.data(), st.sampled_from([*KINDS]), st.sampled_from(VALUES))
def test_any_places_may_hold_anything(data: st.DataObject, kind: str, values: Any) -> None:
    thread = real(kind)
    thread.values |= values
    mutant = deepcopy(thread.record)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(all_places(mutant)))
        near = st.integers(-1, 40)  # what is nearly right is worse than what is wrong
        value = data.draw(st.one_of(near, st.sampled_from([REMOVED, *ODD]), st.text(max_size=3)))
        mutant = Mutation(path, value).of(mutant)
    try:
        checked_record(mutant)
        event("is read")
    except RecordError:
        event("is refused")
    assert list(faults_of(thread, mutant)) == []


# ---- what hands do


def _edited(**fields: Any) -> Callable[[Any], Any]:
    return lambda record: {**record, **fields}


def _shifted(by: int) -> Callable[[Any], Any]:
    """All positions further on or back: the record of a thread that was longer, or shorter."""

    def shift(record: Any) -> Any:
        moved = [
            {
                **one,
                "first_index": max(0, one["first_index"] + by),
                "last_index": one["last_index"] + by,
            }
            for one in record["segments"]
        ]
        return {
            **record,
            "segments": moved,
            "last_summarized_index": record["last_summarized_index"] + by,
        }

    return shift


def _chain(change: Callable[[list[Any]], list[Any]]) -> Callable[[Any], Any]:
    return lambda record: {**record, "segments": change(deepcopy(record["segments"]))}


def _texts(text: str) -> Callable[[Any], Any]:
    return _chain(lambda chain: [{**one, "text": text} for one in chain])


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "reversed": (_chain(lambda chain: chain[::-1]), "after one that ends at"),
    "one twice": (_chain(lambda chain: [chain[0], *chain]), "from 0 to 12, after one"),
    "one taken out": (_chain(lambda chain: [chain[0], chain[2]]), "after one that ends at 12"),
    "the newest taken out": (_chain(lambda chain: chain[:2]), "up to 20, but"),
    "upside down": (
        _chain(lambda chain: [{**chain[0], "first_index": 12, "last_index": 0}, *chain[1:]]),
        "from 12 to 0",
    ),
    "overlapping": (
        _chain(lambda chain: [chain[0], {**chain[1], "first_index": 8}, chain[2]]),
        "from 8 to 20",
    ),
    "pins forgotten": (_edited(kept_ids=[]), "no 'kept_ids'"),
    "segments as JSON text": (_edited(segments="[]"), "'segments'"),
    "a newer version": (_edited(version=2, segments={"0": "another shape"}), "Upgrade"),
}
"""Hand edits that contradict themselves, and a part of what is said of them."""

READ: dict[str, Callable[[Any], Any]] = {
    "an older version": _edited(version=0),
    "no version, as in notes": lambda record: {**record, "note": ["by hand", {"n": 1.5}]},
    "the first segment taken out": _chain(lambda chain: chain[1:]),
    "no segments": _edited(segments=[]),
    "pins of absent messages": _edited(kept_ids=["s", "m0", "gone"], kept_hints=[0, 1, 999]),
    "pins that are named twice": _edited(kept_ids=["s", "m0"] * 2, kept_hints=[0, 1] * 2),
    "a pin that is added": lambda record: {**record, "kept_ids": [*record["kept_ids"], "m5"]},
    "nothing but what has to be": lambda record: {
        name: record[name]
        for name in ("segments", "last_summarized_index", "last_summarized_id", "pruned")
        if name in record
    },
    "texts that are empty": _texts(""),
    "half a surrogate pair": _texts("Part 1 \ud83d is 7 mm. \udc00"),
    "a digest in a digest": _texts("[End of the record. The conversation goes on below.]\n" * 3),
    "a long text": _texts("Part 1 is 7 mm, see /srv/1.yaml. " * 900),
}
"""Hand edits that can be read."""


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("kind", ["folded", "pruned"])
def test_a_hand_that_contradicts_itself_is_told(kind: str, name: str) -> None:
    thread = real(kind)
    change, said = REFUSED[name]
    mutant = change(thread.record)
    assert list(faults_of(thread, mutant)) == []
    with pytest.raises(RecordError, match=said):
        merge_compaction(thread.record, mutant)


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("kind", ["folded", "pruned"])
def test_what_a_hand_left_readable_is_read_and_folded_on(kind: str, name: str) -> None:
    thread = real(kind)
    mutant = READ[name](thread.record)
    assert checked_record(mutant) is mutant
    assert list(faults_of(thread, mutant)) == []


@pytest.mark.parametrize("by", [-9, 1, 1_000, 2**50])
@pytest.mark.parametrize("kind", ["folded", "pruned"])
def test_where_ids_say_what_is_covered_wrong_positions_do_no_harm(kind: str, by: int) -> None:
    thread = real(kind)
    assert list(faults_of(thread, _shifted(by)(thread.record), shift=by)) == []
