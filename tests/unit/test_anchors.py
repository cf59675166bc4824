"""Never hide a message that no digest covers, whatever was done to the list since the fold.

People delete messages, clear chats, rewind threads, restore backups; applications write lists of
their own and use ids again. The record finds its place by an index and two ids. Where those do not
prove what is covered, everything is shown: too much costs tokens, too little costs the task.

Known limits, not tested: where both anchors left their old places nothing tells a message that was
added again from the one that was folded (so the random edits stop there), nor, without ids of every
covered message, a covered one from another that was put exactly in its place.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraph_compaction.changes import advanced, pruned, revised
from langgraph_compaction.corrections import by_hand
from langgraph_compaction.record import CompactionRecord, DigestSegment
from langgraph_compaction.view import build_view
from langgraph_compaction.view.anchors import Anchor, locate
from langgraph_compaction.view.places import FIRST_LANDMARKS, LANDMARKS
from langgraph_compaction.view.unreached import MOST_MARKS


def said(name: str, text: str | None = None) -> BaseMessage:
    return HumanMessage(text or f"<{name}>", id=name)


def chat(names: str) -> list[BaseMessage]:
    """One message a letter; the letter is its id."""
    return [said(name) for name in names]


def folded(
    messages: Sequence[BaseMessage],
    stop: int,
    *,
    kept: Sequence[int] = (),
    record: CompactionRecord | None = None,
) -> CompactionRecord:
    """The record after a fold of what stands before ``stop``, as the engine writes it."""
    before = record or {}
    anchor = locate(messages, before)
    last = anchor.position_of(stop - 1)
    segment = DigestSegment(
        text=f"[segment to {last}]",
        first_index=anchor.position,
        last_index=last,
        last_id=messages[stop - 1].id,
        level=0,
        tokens=1,
        source_tokens=2,
        model="m",
    )
    chain = before.get("segments", []) if anchor.digest else []
    return revised(
        advanced(
            before,
            messages,
            anchor,
            stop=stop,
            kept=kept,
            segments=[*chain, segment],
            render={},
            steps=0,
        )
    )


def shown(messages: Sequence[BaseMessage], record: CompactionRecord) -> str:
    """The letters that the view shows, and "#" for the digest."""
    view = build_view(messages, record)
    return "".join("#" if "[segment" in str(m.content) else str(m.content)[1] for m in view)


RECORD = folded(chat("abcdef"), 3)
"""a, b and c are folded; d follows."""


# What the list has become, and what the view shows of it.
PLACES = {
    "nothing happened": "abcdef #def  abcdefgh #defgh",
    "one anchor is enough, however far it moved to the front": (
        "acdef #def  cdef #def  def #def  abdef #def  abcef #ef  cef #ef"
    ),
    "cut back to what is covered: the newest request is what is to be answered": "abc #c  c #c",
    "both are gone: not even the digest belongs here": (
        "abef abef  ef ef  ab ab  xyzuvw xyzuvw  x x"
    ),
    "rewound to before the fold, and gone on differently": "abxyz abxyz  axyzuv axyzuv",
    "what was folded is a new message at the end": "abdefc #defc  bdefca #defca  abcefd #efd",
    "the same, where its index happens to be right": "adc #dc  dec #dec  abced #ed  bcedx #edx",
}


@pytest.mark.parametrize("story", PLACES)
def test_a_record_finds_its_place(story: str) -> None:
    words = PLACES[story].split()
    for now, expected in zip(words[::2], words[1::2], strict=True):
        assert shown(chat(now), RECORD) == expected, now
    assert shown([], RECORD) == ""


@pytest.mark.parametrize("now", ["abed", "xyzd", "abxd", "xabcdef", "axbcdef", "abcxdef"])
def test_what_was_put_before_an_anchor_is_shown(now: str) -> None:
    visible = shown(chat(now), RECORD)
    assert [name for name in now if name not in "abc" and name not in visible] == []


def test_without_a_message_after_the_fold_the_last_one_alone_is_the_anchor() -> None:
    record = folded(chat("abc"), 3)
    assert shown(chat("abcd"), record) == "#d"
    assert shown(chat("acd"), record) == "#d"
    assert shown(chat("abd"), record) == "abd"
    assert shown(chat("abdc"), record) == "abdc"


def test_what_another_tool_puts_in_front_is_shown() -> None:
    # A list that was written anew: a summary of another tool's, then the newest messages.
    longer = folded(chat("abcdefgh"), 6)
    assert shown(chat("xdefgh"), longer) == "#xgh"
    assert shown(chat("xyfgh"), longer) == "#xygh"


def test_where_the_front_was_deleted_little_of_what_is_covered_shows_again() -> None:
    messages = [said(f"m{number}") for number in range(240)]
    record = folded(messages, 230)
    assert len(record["landmark_ids"]) <= LANDMARKS
    gaps = []
    for gone in range(1, 229):
        anchor = locate(messages[gone:], record)
        assert anchor.boundary == 230 - gone
        gaps.append(len(anchor.kept))
    assert gaps[:3] == [0, 0, 0]
    assert max(gaps) <= 230 / (LANDMARKS - FIRST_LANDMARKS)


@pytest.mark.parametrize("now", ["xydefgh", "xyfgh", "defgh", "xyzuvw"])
def test_a_change_by_hand_makes_nothing_of_it_known(now: str) -> None:
    longer = folded(chat("abcdefgh"), 6)
    edited = by_hand(longer, chat(now))
    assert shown(chat(now), edited) == shown(chat(now), longer)


def test_an_older_segment_or_a_kept_message_proves_what_stands_before_it() -> None:
    older = folded(chat("abcdefg"), 5, record=folded(chat("abcdefg"), 2))
    assert shown(chat("abcg"), older) == "#cg"
    kept = folded(chat("abcdefg"), 5, kept=[2])
    assert shown(chat("abcg"), kept) == "#cg"
    assert shown(chat("abcdg"), kept) == "#cdg"


def test_what_is_put_in_is_shown_where_older_messages_were_deleted_before_the_fold() -> None:
    # Positions count the deleted ones, so that they run ahead of the places in the list.
    older = folded(chat("abcdefgh"), 3)
    later = folded(chat("cdefgh"), 4, record=older)
    assert shown(chat("cdefgh"), later) == "#gh"
    assert later["last_summarized_index"] == 5
    for now in ("cxdefgh", "xcdefgh", "cdxefgh", "cdefxgh", "cxdefyg", "xydefgh"):
        visible = shown(chat(now), later)
        assert [name for name in now if name in "xygh" and name not in visible] == [], now


def test_a_thread_that_was_cut_back_shows_its_newest_request() -> None:
    messages = [*chat("ab"), AIMessage("<c>", id="c"), *chat("de")]
    record = folded(messages, 4)
    assert shown(messages, record) == "#e"
    assert shown(messages[:4], record) == "#d"
    assert shown([*messages[:3], said("d", "<D>")], record) == "#D"  # and asked in other words
    assert shown([*messages[:4], said("f")], record) == "#f"
    assert shown(messages[:2], record) == "ab"
    older = folded(messages, 4, record=folded(messages, 3))
    assert shown(messages[:3], older) == "#bc"  # up to the end of an older segment
    # Where everything was folded, nothing was cut off.
    assert shown(messages, folded(messages, 5)) == "#"


def test_a_message_of_a_cleared_chat_that_was_added_again_proves_nothing() -> None:
    for now in ("xyc", "xycz", "xc", "xyzuvc"):
        assert shown(chat(now), RECORD) == now
    older = folded(chat("abcdefg"), 5, record=folded(chat("abcdefg"), 2))
    assert shown(chat("xbz"), older) == "xbz"


def test_a_survivor_that_was_added_again_proves_nothing() -> None:
    kept = folded(chat("abcdefg"), 5, kept=[0])
    assert shown(chat("xa"), kept).replace("#", "") == "xa"
    assert shown(chat("xya"), kept).replace("#", "") == "xya"


def test_kept_messages_stay_visible_wherever_they_moved_and_may_be_gone() -> None:
    record = folded(chat("abcdefg"), 5, kept=[1, 3])
    assert shown(chat("abcdefg"), record) == "#bdfg"
    assert shown(chat("bcdefg"), record) == "#bdfg"
    assert shown(chat("acdefg"), record) == "#dfg"
    assert shown(chat("bcdfg"), record) == "#bdfg"
    assert shown(chat("efg"), record) == "#fg"


@pytest.mark.parametrize("named", [True, False])
def test_a_record_without_segments_hides_nothing_whatever_it_says(*, named: bool) -> None:
    messages = chat("abcdef") if named else unnamed("abcdef")
    record = folded(messages, 3, kept=[0])
    del record["segments"]
    assert shown(messages, record) == "abcdef"
    # Its position counts: a fold that began before it would be dropped by the reducer.
    again = folded(messages, 4, record=record)
    assert [(s["first_index"], s["last_index"]) for s in again["segments"]] == [(3, 6)]
    assert shown(messages, again) == "#ef"


def test_what_stands_before_the_first_segment_is_shown() -> None:
    record = folded(chat("abcdef"), 5, kept=[0])
    record["segments"][0]["first_index"] = 2
    assert shown(chat("abcdef"), record) == "#abf"


def test_a_message_that_is_kept_twice_is_shown_once() -> None:
    record = folded(chat("abcdef"), 5, kept=[1])
    assert shown(chat("abcdef"), {**record, "kept_ids": ["b", "b"], "kept_hints": [1, 1]}) == "#bf"


def test_an_edited_message_keeps_its_place() -> None:
    now = chat("abcdef")
    now[2], now[3] = said("c", "<C>"), said("d", "<D>")
    assert shown(now, RECORD) == "#Def"


def test_ids_that_occur_twice_are_told_apart_by_their_order() -> None:
    now = [said("1", "<a>"), said("2", "<b>"), said("1", "<c>"), said("4", "<d>")]
    record = folded(now, 2)
    assert shown(now, record) == "#cd"
    assert shown(now[1:], record).replace("#", "") in {"cd", "bcd"}
    again = folded(now, 3, record=record)
    assert shown(now, again) == "#d"
    assert shown([*now, said("2", "<e>"), said("1", "<f>")], again) == "#def"
    first_kept = folded(now, 2, kept=[0])
    assert shown(now, first_kept) == "#acd"


# ---- messages without ids


def unnamed(texts: str) -> list[BaseMessage]:
    return [AIMessage(f"<{text}>") for text in texts]


@pytest.mark.parametrize("now", ["ab", "", "xyzuvw", "bcdef", "xabcdef"])
def test_messages_without_ids_are_anchored_by_position(now: str) -> None:
    record = folded(unnamed("abcdef"), 3)
    assert shown(unnamed("abcdef"), record) == "#def"
    assert shown(unnamed("abc"), record) == "#"
    assert shown(unnamed(now), record) == now


def test_a_message_without_an_id_can_be_kept() -> None:
    record = folded(unnamed("abcdef"), 3, kept=[0, 2])
    assert shown(unnamed("abcdef"), record) == "#acdef"


def test_ids_that_appear_or_vanish_after_the_fold_hide_nothing_new() -> None:
    named, record = chat("abcdef"), folded(unnamed("abcdef"), 3)
    assert shown(named, record) == "abcdef"
    assert shown(unnamed("abcdef"), RECORD) == "abcdef"
    mixed = [*unnamed("ab"), said("c"), *unnamed("d"), said("e")]
    assert shown(mixed, folded(mixed, 3)) == "#de"
    assert shown(mixed, folded(mixed, 4)) == "#e"
    assert shown([*mixed[1:], said("f")], folded(mixed, 4)).endswith("ef")


# ---- pruned records


PRUNED = {
    "kept messages and next": "ade #ade  de #de  ad #ad  defg #defg",
    "what another tool puts in front is shown": "xade #xade  xde #xde  axde #axde",
    "the chat was cleared, and next is a new message": "xd #xd",
    "the channel of a parent graph, which a subgraph's prune does not reach": "abcde #ade",
    "next is gone": "ae #ae  aef #aef",
    "what ran beside the subgraph is shown there": "abcxyde #axyde  abcxyaz #axyaz",
    "but only behind what is proven to be covered": "xbcyde #xbcyde",
    "next was removed and added again": "aed #aed  aefd #aefd",
    "no kept message is left, so the chat was cleared": "xyz xyz",
}


@pytest.mark.parametrize("story", PRUNED)
def test_after_a_prune_the_next_message_is_the_anchor(story: str) -> None:
    record = folded(chat("abcde"), 3, kept=[0])
    left = pruned(record, chat("abcde"), locate(chat("abcde"), record), None)
    words = PRUNED[story].split()
    for now, expected in zip(words[::2], words[1::2], strict=True):
        assert shown(chat(now), left) == expected, now


def test_what_a_prune_left_has_its_old_positions() -> None:
    record = folded(chat("abcdefg"), 5, kept=[0, 3])
    left = pruned(record, chat("abcdefg"), locate(chat("abcdefg"), record), "key")
    assert left["archived"] == "key"
    anchor = locate(chat("adfg"), left)
    assert (anchor.boundary, anchor.kept, anchor.position) == (2, (0, 1), 5)
    assert [anchor.position_of(index) for index in range(4)] == [0, 3, 5, 6]
    # They count from the same message wherever the prune did not reach.
    parent = locate(chat("abcdefg"), left)
    assert (parent.boundary, parent.kept, parent.position) == (5, (0, 3), 5)
    assert [parent.position_of(index) for index in range(7)] == list(range(7))


def test_a_prune_of_everything_is_anchored_by_what_was_kept() -> None:
    record = folded(chat("abc"), 3, kept=[1])
    left = pruned(record, chat("abc"), locate(chat("abc"), record), None)
    assert "archived" not in left
    assert shown(chat("b"), left) == "#b"
    anchor = locate(chat("bde"), left)
    assert (anchor.boundary, anchor.position) == (1, 3)
    # Added again behind others it proves nothing.
    assert shown(chat("deb"), left) == "#deb"
    nothing = pruned(
        folded(chat("abc"), 3), chat("abc"), locate(chat("abc"), folded(chat("abc"), 3)), None
    )
    assert shown([], nothing) == "#"
    assert (locate(chat("de"), nothing).boundary, locate(chat("de"), nothing).position) == (0, 3)


def prune(
    messages: list[BaseMessage], record: CompactionRecord, before: Sequence[int] | None = None
) -> tuple[list[BaseMessage], CompactionRecord]:
    """The channel and the record after a prune; ``before`` as `marks_of` takes it."""
    anchor = locate(messages, record)
    left = [messages[index] for index in anchor.kept] + messages[anchor.boundary :]
    return left, pruned(record, messages, anchor, None, before)


def numbers(first: int, last: int) -> list[BaseMessage]:
    return [said(f"m{number}", f"<{number}>") for number in range(first, last)]


@pytest.mark.parametrize("given", [3, 40, MOST_MARKS - 1])
@pytest.mark.parametrize("covered", [False, True])
@pytest.mark.parametrize("task", [(), (0,)])
def test_the_graph_around_hides_what_runs_of_a_subgraph_covered(
    given: int, task: tuple[int, ...], *, covered: bool
) -> None:
    # Each run is given all that the graph around has, and makes, folds and prunes a lot itself.
    around, record, made = numbers(0, given), CompactionRecord(), given
    if covered:  # a run before these folded a lot, and pruned nothing
        around += numbers(20_000, 20_000 + 2 * MOST_MARKS)
        record = folded(around, len(around) - 3, kept=task)
    for run in range(3):
        inside = list(around)
        before: Sequence[int] | None = locate(inside, record).hidden
        for _ in range(20):
            boundary = locate(inside, record).boundary
            inside += numbers(made, made + 20)
            made += 20
            fresh = folded(inside, max(len(inside) - 5, boundary + 1), kept=task, record=record)
            inside, record = prune(inside, fresh, before)
            before = None
        known = {message.id for message in around}
        beside = numbers(10_000 + 10 * run, 10_003 + 10 * run)
        around += [*beside, *(message for message in inside if message.id not in known)]
        anchor = locate(around, record)
        visible = [message.id for n, message in enumerate(around) if n not in set(anchor.hidden)]
        assert visible == [m.id for m in (*(around[i] for i in task), *beside, *inside[-5:])]
        around += numbers(made, made + 3)
        made += 3


def test_beyond_its_marks_the_graph_around_shows_more_and_loses_nothing() -> None:
    around = numbers(0, MOST_MARKS + 20)
    _, record = prune(around, folded(around, MOST_MARKS + 10))
    anchor = locate([*around, said("x")], record)
    assert anchor.digest
    assert anchor.hidden == tuple(range(MOST_MARKS))


def test_a_graph_around_in_which_everything_was_folded_shows_what_came_after() -> None:
    around = chat("abcd")
    inside, record = prune([*around, said("e")], folded([*around, said("e")], 5))
    assert shown([*around, said("x"), *inside], record) == "#x"


def test_a_fold_of_what_a_prune_left_moves_no_anchor() -> None:
    first = folded(chat("abcdef"), 4, kept=[0])
    left = pruned(first, chat("abcdef"), locate(chat("abcdef"), first), None)
    again = folded(chat("aef"), 1, record=left)
    assert (again["last_summarized_index"], again["last_summarized_id"]) == (3, "d")
    gone = pruned(again, chat("aef"), locate(chat("aef"), again), None)
    assert shown(chat("ef"), gone) == shown(chat("abcdef"), gone) == "#ef"


def test_after_a_prune_that_failed_what_it_left_stays_hidden() -> None:
    first = folded(chat("abcdefgh"), 3, kept=[0])
    left = pruned(first, chat("abcdefgh"), locate(chat("abcdefgh"), first), None)
    # The next fold counts, and its messages are still there; the last of them is pinned.
    failed = folded(chat("adefgh"), 4, kept=[0, 3], record=left)
    assert shown(chat("adefgh"), failed) == "#afgh"
    assert shown(chat("aefgh"), failed).replace("e", "") == "#afgh"
    assert shown(chat("axdefgh"), failed).endswith("fgh")
    assert "x" in shown(chat("axdefgh"), failed)


# ---- random edits


@dataclass
class Edited:
    """A thread under random edits, and the oracle: which of its messages a fold has covered."""

    rng: random.Random
    messages: list[BaseMessage] = field(default_factory=list)
    record: CompactionRecord = field(default_factory=CompactionRecord)
    covered: set[str] = field(default_factory=set)  # contents
    removed: list[str] = field(default_factory=list)  # ids
    log: list[Any] = field(default_factory=list)
    anchors: tuple[str, ...] = ()  # contents
    first: Any = None
    made: int = 0
    added_again: bool = False
    prunes: bool = False

    def message(self, name: str | None = None) -> BaseMessage:
        self.made += 1
        return said(name or f"m{self.made}", f"text {self.made}")

    def edit(self, *, again: bool) -> None:
        kinds = ["append"] * 4 + ["remove"] * 3 + ["fold", "fold", "edit", "rewind", "clear"]
        kind = self.rng.choice([*kinds, *(["again"] * 4 if again and self.removed else [])])
        place = self.rng.randrange(len(self.messages)) if self.messages else 0
        self.log.append((kind, place))
        if kind == "append" or (kind != "again" and not self.messages):
            self.messages.append(self.message())
        elif kind == "again":
            name = self.removed.pop(self.rng.randrange(len(self.removed)))
            self.messages.append(self.message(name))
            self.added_again = True
        elif kind == "fold":
            self.fold(place + 1)
        elif kind == "edit":
            old, new = self.messages[place], self.message(self.messages[place].id)
            self.messages[place] = new
            self.covered |= {new.content} if old.content in self.covered else set()  # type: ignore[arg-type]
            self.anchors = tuple(str(new.content) if a == old.content else a for a in self.anchors)
            self.first = new.content if self.first == old.content else self.first
        else:
            first, last = {"remove": (place, place + 1), "rewind": (place, None)}.get(
                kind, (0, None)
            )
            self.removed += [str(message.id) for message in self.messages[first:last]]
            del self.messages[first:last]

    def fold(self, stop: int) -> None:
        anchor = locate(self.messages, self.record)
        if stop <= anchor.boundary:
            return
        fresh = list(range(anchor.boundary, stop))
        kept = sorted({*anchor.kept, *(index for index in fresh if self.rng.random() < 0.2)})
        self.record = folded(self.messages, stop, kept=kept, record=self.record)
        contents = [str(message.content) for message in self.messages]
        # Where an anchor was lost, what had been covered is shown, and is folded anew.
        self.covered -= {*contents[stop:], *(contents[index] for index in kept)}
        self.covered |= {contents[index] for index in fresh if index not in kept}
        self.anchors = tuple(contents[stop - 1 : stop + 1])
        self.first = contents[0]
        self.removed, self.added_again = [], False
        if self.prunes and self.rng.random() < 0.6:  # else it failed, or comes with a later fold
            self.prune()

    def prune(self) -> None:
        anchor = locate(self.messages, self.record)
        if len(anchor.kept) == anchor.boundary:
            return
        self.record = pruned(self.record, self.messages, anchor, None)
        left = [self.messages[index] for index in anchor.kept]
        self.messages = [*left, *self.messages[anchor.boundary :]]
        self.first = self.messages[0].content if self.messages else None

    @property
    def anchored(self) -> bool:
        return any(message.content in self.anchors for message in self.messages)

    def faults(self) -> Iterator[str]:
        visible = {message.content for message in build_view(self.messages, self.record)}
        # Where the first message is gone, too, another list may have been written in its place.
        unmoved = bool(self.messages) and self.messages[0].content == self.first
        for message in self.messages:
            if message.content not in visible and message.content not in self.covered:
                yield f"{message.content!r} is hidden, but no fold covered it"
            if (
                not self.prunes
                and unmoved
                and self.anchored
                and message is not self.messages[-1]  # cut back to it, it is shown
                and message.content in visible
                and message.content in self.covered
            ):
                yield f"{message.content!r} is shown, but an anchor proves it covered"


@pytest.mark.parametrize("prunes", [False, True])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_no_edit_hides_what_no_fold_covered(seed: int, *, again: bool, prunes: bool) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        thread = Edited(rng, prunes=prunes)
        for _ in range(rng.randrange(4, 40)):
            thread.edit(again=again)
            if thread.added_again and not thread.anchored:
                break
            assert list(thread.faults()) == [], f"after {thread.log}"


# ---- cost


class Watched(list[BaseMessage]):
    """A list that counts which of its messages are looked at."""

    looked_at = 0

    def __getitem__(self, index: Any) -> Any:
        self.looked_at += 1
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[BaseMessage]:
        for index in range(len(self)):
            yield self[index]


def test_finding_the_place_looks_at_few_messages_while_the_hints_hold() -> None:
    messages = Watched(said(f"m{number}") for number in range(5_000))
    record = folded(messages, 4_990, kept=[0, 1_000])
    messages.looked_at = 0
    assert locate(messages, record).boundary == 4_990
    assert messages.looked_at <= 6
    assert locate(messages, {}) == Anchor(boundary=0, kept=(), position=0, digest=False)
