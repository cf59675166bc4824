"""The survival benchmark's own parts: what it plants, how it loses, what it counts.

A benchmark that scores wrongly is believed all the same, so its rules are tested like code.
"""

from collections.abc import Sequence

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from tests.benchmarks.survival.counting import joined, text_tokens, tokens
from tests.benchmarks.survival.facts import KINDS, REFERENCES, USERS, Fact
from tests.benchmarks.survival.history import History, build
from tests.benchmarks.survival.matching import holds, standing_last
from tests.benchmarks.survival.reuse import facts_of, references, replay
from tests.benchmarks.survival.scoring import NEWEST_LAST, STALE_LAST, score, tail_start
from tests.benchmarks.survival.summariser import ScriptedSummariser
from tests.benchmarks.survival.systems import Limits, SeesEverything, systems

THREAD = build(7, 4, round_tokens=3_000, lead_tokens=500)
MESSAGES = [message for messages in THREAD.rounds for message in messages]
LIMITS = Limits(trigger=3_000, keep=500, digest=4_000, window=20_000)
SECTIONS = "Use these headings:\n  ## Goal: what\n  ## Findings: what\n  ## Next step: what\n"


def summariser(loss: float, *, budget: int = 20_000, seed: int = 1) -> ScriptedSummariser:
    return ScriptedSummariser(facts=THREAD.facts, loss=loss, seed=seed, budget=budget)


def newest(facts: Sequence[Fact]) -> list[Fact]:
    """All facts but those that a newer one of their series replaced."""
    last = {fact.series: fact for fact in facts if fact.series}
    return [fact for fact in facts if fact.series is None or last[fact.series] is fact]


@pytest.mark.parametrize(
    ("text", "value", "stands"),
    [
        ("see v1.2 there", "v1.2", True),
        ("it is v1.2.", "v1.2", True),
        ("端口v1.2。", "v1.2", True),
        ("it is v1.23", "v1.2", False),
        ("it is v1.2.3", "v1.2", False),
        ("takes 1,347 ms", "347 ms", False),
        ("takes 347 ms", "347 ms", True),
        ("LIMIT_10 but LIMIT_1", "LIMIT_1", True),
        ("LIMIT_10", "LIMIT_1", False),
        ("from v1.23 to v1.2", "v1.2", True),
        ("call a.b() now", "a.b()", True),
        ("/srv/a/b.yaml", "/srv/a/b.yml", False),
    ],
)
def test_a_value_stands_only_by_itself(text: str, value: str, stands: bool) -> None:
    assert holds(text, value) is stands


def test_the_value_that_stands_last_is_found() -> None:
    assert standing_last("a is 10, then 20, and 10 again", ["10", "20"]) == "10"
    assert standing_last("a is 10, then 20, and 100", ["10", "20"]) == "20"
    assert standing_last("nothing", ["10", "20"]) is None


def test_arguments_of_calls_are_part_of_what_a_model_reads() -> None:
    call = {"name": "look", "args": {"path": "文档/a.md"}, "id": "c1"}
    text = joined([HumanMessage("one\n two"), AIMessage("", tool_calls=[call])])
    assert text == 'one two look {"path": "文档/a.md"}'


def test_a_thread_is_made_by_its_seed() -> None:
    again, other = (build(seed, 4, round_tokens=3_000, lead_tokens=500) for seed in (7, 8))
    assert again == THREAD
    assert {fact.value for fact in other.facts}.isdisjoint(fact.value for fact in THREAD.facts)


def test_a_thread_plants_every_kind_in_every_place() -> None:
    assert {fact.kind for fact in THREAD.facts} == set(KINDS)
    places = {(fact.kind, fact.place) for fact in THREAD.facts if fact.kind in REFERENCES}
    assert len(places) == 4 * len(REFERENCES)
    assert [fact.number for fact in THREAD.facts] == list(range(len(THREAD.facts)))


def test_every_value_stands_in_its_message_and_nowhere_before() -> None:
    texts = [joined([message]) for message in MESSAGES]
    for fact in THREAD.facts:
        found = [index for index, text in enumerate(texts) if holds(text, fact.value)]
        assert found[0] == THREAD.where[fact.number]
        assert fact.series or len(found) == 1


def test_rounds_have_the_tokens_that_were_asked_for() -> None:
    for number, messages in enumerate(THREAD.rounds):
        least = 3_000 + (500 if number == 0 else 0)
        assert least <= tokens(messages) < least + 1_000
        assert isinstance(messages[-1], ToolMessage)


def test_without_loss_the_summariser_keeps_everything_and_with_all_loss_nothing() -> None:
    kept = " ".join(summariser(0.0).answer(MESSAGES).split())
    assert [fact for fact in newest(THREAD.facts) if not holds(kept, fact.value)] == []
    lost = " ".join(summariser(1.0).answer(MESSAGES).split())
    assert [fact for fact in THREAD.facts if holds(lost, fact.value)] == []


def test_the_summariser_loses_by_seed_and_anew_each_time() -> None:
    one, same, other = summariser(0.5), summariser(0.5), summariser(0.5, seed=2)
    first = one.answer(MESSAGES)
    assert same.answer(MESSAGES) == first
    assert other.answer(MESSAGES) != first
    assert one.answer(MESSAGES) != first
    kept = sum(holds(" ".join(first.split()), fact.value) for fact in newest(THREAD.facts))
    assert 0.3 < kept / len(newest(THREAD.facts)) < 0.7


def test_what_is_lost_once_does_not_come_back() -> None:
    model = summariser(0.3)
    first = model.answer(MESSAGES)
    second = " ".join(model.answer([HumanMessage(f"Extend this:\n{first}")]).split())
    flat = " ".join(first.split())
    assert not [f for f in THREAD.facts if holds(second, f.value) and not holds(flat, f.value)]


@pytest.mark.parametrize("budget", [1, 10, 60, 200, 1_000])
@pytest.mark.parametrize("prompt", ["", SECTIONS])
def test_the_summariser_never_exceeds_its_budget(budget: int, prompt: str) -> None:
    asked = [HumanMessage(prompt), *MESSAGES]
    assert 0 < text_tokens(summariser(0.0, budget=budget).answer(asked)) <= budget
    asked.append(HumanMessage(f"Write it in at most {budget:,} tokens (about 9 words)."))
    assert text_tokens(summariser(0.0).answer(asked)) <= budget


def test_with_little_room_demands_of_the_user_come_first() -> None:
    text = " ".join(summariser(0.0, budget=200).answer(MESSAGES).split())
    lost = {fact.kind for fact in newest(THREAD.facts) if not holds(text, fact.value)}
    assert lost == set(KINDS) - set(USERS)


def test_what_is_shown_for_context_is_not_recorded_again() -> None:
    old, new = THREAD.facts[0], THREAD.facts[-1]
    prompt = (
        "The record so far, for context only. Do not repeat it:\n<earlier_digest>\n"
        f"{old.sentence}\n</earlier_digest>\n<transcript>\n{new.sentence}\n</transcript>"
    )
    text = summariser(0.0).answer([HumanMessage(prompt)])
    assert new.value in text
    assert old.value not in text


def test_the_summariser_uses_the_headings_of_its_prompt() -> None:
    text = summariser(0.0).answer([HumanMessage(SECTIONS), *MESSAGES])
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "## Goal",
        "## Findings",
        "## Next step",
    ]


def changing(*values: str) -> tuple[History, list[BaseMessage]]:
    """A thread in which one thing has these values in turn, a message each."""
    facts = tuple(
        Fact(n, "update", "user", value, value, value, "limit") for n, value in enumerate(values)
    )
    messages = [HumanMessage(value, id=f"m{n}") for n, value in enumerate(values)]
    history = History((tuple(messages),), facts, {n: n for n in range(len(values))})
    return history, [*messages, AIMessage("tail", id="tail")]


@pytest.mark.parametrize(
    ("digest", "kept", "newest_last", "stale_last"),
    [
        ("was 10 ms, is 20 ms", 1, 1, 0),
        ("is 20 ms, was 10 ms", 1, 0, 1),
        ("was 10 ms", 0, 0, 1),
        ("nothing", 0, 0, 0),
    ],
)
def test_the_newest_value_has_to_stand_last(
    digest: str, kept: int, newest_last: int, stale_last: int
) -> None:
    history, messages = changing("10 ms", "20 ms")
    tally = score(history, messages, [HumanMessage(digest), messages[-1]])
    assert tally.total == {"update": 1, NEWEST_LAST: 1, STALE_LAST: 1}
    assert tally.kept == {"update": kept, NEWEST_LAST: newest_last, STALE_LAST: stale_last}


def test_what_stands_in_the_tail_proves_nothing() -> None:
    history, messages = changing("10 ms", "20 ms")
    view = [HumanMessage("digest"), *messages[1:]]
    assert tail_start(messages, view) == 1
    assert score(history, messages, view).total == {}


def test_a_demand_has_to_survive_word_for_word() -> None:
    said = "Never touch the amber heron queue."
    fact = Fact(0, "constraint", "user", said, said, said)
    messages = [HumanMessage(f"Hello. {said}", id="m0"), AIMessage("tail", id="m1")]
    history = History((tuple(messages),), (fact,), {0: 0})
    for digest, kept in (("User:\n- Never touch the amber\n heron queue.", 1), ("amber heron", 0)):
        tally = score(history, messages, [HumanMessage(digest), messages[-1]])
        assert tally.kept["constraint"] == kept


def test_whoever_sees_everything_misses_nothing() -> None:
    tally = score(THREAD, MESSAGES, MESSAGES)
    assert tally.share("all types") == 1.0
    assert tally.share(STALE_LAST) == 0.0


def test_without_loss_this_package_folds_once_a_round_and_keeps_everything() -> None:
    model = summariser(0.0, budget=LIMITS.digest)
    system = systems("ours")["ours"](model, LIMITS)
    system.visit(THREAD.rounds[0])
    assert model.calls == 1
    view = system.visit(THREAD.rounds[1])
    assert model.calls == 2
    messages = [message for arrived in THREAD.rounds[:2] for message in arrived]
    assert tail_start(messages, view) > len(THREAD.rounds[0])
    assert score(THREAD, messages, view).share("all types") == 1.0
    assert system.refused == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See https://a.example/b/c.html, then.", ["https://a.example/b/c.html"]),
        ("in src/app/main.py:42 and ~/x.toml", ["src/app/main.py", "~/x.toml"]),
        ("either/or </div>, 12 of 34", []),
        ("took 1,234.5 and 007", ["1,234.5", "007"]),
        ("commit 4f5e6a7 of 2031-10-12", []),
    ],
)
def test_references_of_a_transcript(text: str, found: list[str]) -> None:
    assert references(text) == found


def test_reuse_counts_what_the_view_has_when_it_is_used() -> None:
    messages: list[BaseMessage] = [
        HumanMessage("Use /srv/a/b.yaml and /srv/c/d.yaml.", id="m0"),
        AIMessage("Reading.", id="m1"),
        HumanMessage("Go on.", id="m2"),
        AIMessage("I read /srv/a/b.yaml, /srv/c/d.yaml and /srv/e/f.yaml.", id="m3"),
    ]

    class Forgets(SeesEverything):
        def visit(self, arrived: Sequence[BaseMessage]) -> list[BaseMessage]:
            return [HumanMessage("Digest: /srv/a/b.yaml"), *super().visit(arrived)[-1:]]

    assert [fact.value for fact in facts_of(messages)][:2] == ["/srv/a/b.yaml", "/srv/c/d.yaml"]
    reuse = replay(messages, Forgets(None, LIMITS))
    assert (reuse.uses, reuse.seen, reuse.hidden, reuse.recalled, reuse.views) == (2, 1, 2, 1, 2)
    reuse = replay(messages, SeesEverything(None, LIMITS))
    assert (reuse.uses, reuse.seen, reuse.hidden) == (2, 2, 0)
