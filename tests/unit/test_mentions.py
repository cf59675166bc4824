"""Names and values in a text: what has a form of its own, and what must not be taken for a name.

The tables are by kind; every name has to come out exactly as it was written, whatever script
stands around it.
"""

import time

import pytest

from langgraph_compaction.digest.facts.mentions import (
    BETWEEN,
    LONG_WORD,
    NAME_CHARS,
    OF,
    READ_CHARS,
    mentions,
)


def said(text: str) -> list[str]:
    return [mention.name for mention in mentions(text, said=True)]


def printed(text: str) -> list[str]:
    return [mention.name for mention in mentions(text, said=False)]


AROUND = [
    "Look at {} first.",
    "We need ({}), I think!",
    "Die Datei ist {}, wie gesagt.",
    "Voir {} : c'est là.",
    "Está en {}; revísalo.",
    "Это лежит в {}, смотри.",
    "请看 {}。",
    "请看{}，然后继续。",
    "これは「{}」です。",
    "{} にあります。",
    "그것은 {} 에 있습니다.",
    "**{}**",
    "`{}`",
]
"""Sentences of eight languages around a name; CJK text has no spaces there."""

BY_FORM = [
    "/srv/app/main.py",
    "~/notes/todo.md",
    "../lib/x_1.c",
    "src/core/__init__.py",
    "docs/guide/index.html",
    r"C:\Users\me\report.docx",
    r"\\server\share\plan.xlsx",
    "docs/图/架构_v2.md",
    "README.md",
    "https://a.example/b?c=1&d=2#e",
    "postgres://db.internal:5432/main",
    "bob.smith+x@mail.example.com",
    "550e8400-e29b-41d4-a716-446655440000",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "PROJ-1234",
    "JG7FMM",
    "order_3817",
    "req_9f86d081884c",
    "i-0abc123def456",
    "sk-abc123DEF456",
    "v2.4.1",
    "3.12.0-rc.1",
    "10.0.0.17",
    "2034-05-12T13:45:00Z",
]


@pytest.mark.parametrize("name", BY_FORM)
@pytest.mark.parametrize("sentence", AROUND)
def test_a_name_is_known_by_its_form_whatever_stands_around_it(sentence: str, name: str) -> None:
    assert name in said(sentence.format(name))
    if not sentence.startswith(("**", "`")):
        assert name in printed(sentence.format(name))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The project is called “Blue Heron”.", "Blue Heron"),
        ("Das Projekt heißt „Blauer Reiter“.", "Blauer Reiter"),
        ("Le projet s'appelle « Héron bleu ».", "Héron bleu"),
        ("Проект называется «Северный ветер».", "Северный ветер"),
        ("项目叫「青森灯塔」。", "青森灯塔"),
        ("その名は『白鷺』です。", "白鷺"),
        ('It is the "amber queue" that fails.', "amber queue"),
        ("It is the 'amber queue' that fails.", "amber queue"),
        ("Run `make all` first.", "make all"),
        ("Set MAX_RETRIES first.", "MAX_RETRIES"),
        ("It is called parseHeader here.", "parseHeader"),
        ("It is called PayloadReader here.", "PayloadReader"),
        ("Call os.path.join() there.", "os.path.join()"),
        ("Call flush() there.", "flush()"),
        ("Pass --dry-run to it.", "--dry-run"),
    ],
)
def test_people_name_things_in_quotes_and_as_identifiers(text: str, name: str) -> None:
    assert said(text).count(name) == 1
    assert name not in printed(text)


@pytest.mark.parametrize(
    "text",
    [
        "I think it's fine, don't worry and let's go on as we planned it.",
        "Das ist in Ordnung, und wir machen so weiter wie bisher.",
        "C'est bien, et nous continuons comme prévu.",
        "Está bien, y seguimos como antes.",
        "Это хорошо, и мы продолжаем так же.",
        "很好，我们继续按计划进行。",
        "いいですね、このまま進めましょう。",
        "좋습니다. 계획대로 계속합시다.",
        "1. First do this",
        "2) Then do that",
        "- [ ] a point of a list",
        "if a > b && c == 3: x += 1",
        "a === 3 or b != 4 and c -= 5",
        "| --- | --- |",
        "... and so on, and/or not at all!",
        "$HOME and ${HOME}",
        "",
        "   \t  ",
        "````",
        "\"\" '' “” «» 「」",
    ],
)
def test_plain_prose_and_marks_of_code_and_lists_are_no_names(text: str) -> None:
    assert said(text) == []
    assert printed(text) == []


def test_numbers_in_output_are_no_values_without_the_name_of_a_setting() -> None:
    assert printed("12 34 5.6 7,800 99 45 s 300 MB\nshape (3, 4) 0.1 17 rows") == []
    assert printed("p95 = 45 ms\ntotal: 12\n  retries: 3 (of 5)") == ["45 ms", "12", "3"]


def test_data_is_no_name() -> None:
    data = "iVBORw0KGgoAAAANSUhEUgAA9aB3dE5fG7hI" * 30
    for text in (data, f"data:image/png;base64,{data}", f'{{"image":"{data}"}}', f"see {data} now"):
        assert not any(name in data for name in said(text))
        assert not any(name in data for name in printed(text))


def test_no_name_is_longer_than_the_limit() -> None:
    fits = "/srv" + "/directory" * 19 + "/fours"
    assert said(fits) == [fits]
    assert len(fits) == NAME_CHARS
    assert said(fits + "b") == []
    assert said("https://a.example/" + "x/" * 200) == []


@pytest.mark.parametrize(
    "text",
    [
        'He said "a | b" to me.',
        'He said "a |" to me.',
        'He said "| b" to me.',
        'He said "key: value" to me.',
        "`a | b`",
        "`port: x`",
        "“Goal: win”",
    ],
)
def test_no_name_holds_a_mark_that_divides_a_list_of_names(text: str) -> None:
    for name in said(text):
        assert BETWEEN not in f" {name} "
        assert OF not in name


def test_json_without_spaces_is_read_like_any_other() -> None:
    row = '{"id":"req_9f86d081","path":"/srv/a/b.py","port":8080,"href":"https://a.example/b"}'
    long = "[" + ",".join([row] * 30) + "]"
    assert len(long) > LONG_WORD
    for text in (row, long):
        found = printed(text)
        for name in ("req_9f86d081", "/srv/a/b.py", "8080", "https://a.example/b"):
            assert name in found, (name, found)


def test_a_long_text_is_read_at_its_head_and_its_tail() -> None:
    filler = "nothing to see here\n" * (READ_CHARS // 10)
    found = said(f"/first/name\n{filler}/middle/name\n{filler}/last/name")
    assert found == ["/first/name", "/last/name"]


def test_mentions_come_in_order_and_repeated() -> None:
    assert said("v1.2.3 then /a/b then v1.2.3") == ["v1.2.3", "/a/b", "v1.2.3"]


def test_what_was_found_in_a_word_said_is_not_taken_for_a_word_printed() -> None:
    known: dict[tuple[str, bool], list[str]] = {}
    assert [one.name for one in mentions("parseHeader", said=True, known=known)] == ["parseHeader"]
    assert list(mentions("parseHeader", said=False, known=known)) == []


SIZE = 1_000_000
LOG = "\n".join(
    f"2034-05-12T13:{i % 60:02d}:01Z INFO worker-{i} /srv/app/{i}/main.py took {i} ms id={i:016x}f"
    for i in range(SIZE // 90)
)
UNITS = ["a-", "/", "a/", ".a", "_", "1", "1,", "-1", '"', "'", "`", "«", "图", "a@", "A1-", "../",
         "(", ":", "--a", "2034年", "**", "45秒", "\\", "x=1"]  # fmt: skip
HOSTILE = {
    "log": LOG,
    "no spaces": "x1" * (SIZE // 2),
    "a million spaces": "a1" + " " * SIZE + "b2",
    "numbers": "1 " * (SIZE // 2),
    "empty lines": "\n" * SIZE,
    **{f"a run of {unit}": unit * (SIZE // len(unit)) for unit in UNITS},
    **{
        f"words of {unit}": " ".join(unit * (600 // len(unit)) + str(i) for i in range(SIZE // 600))
        for unit in UNITS
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_megabyte_of_anything_is_read_in_a_moment(name: str) -> None:
    started = time.process_time()
    for _ in mentions(HOSTILE[name], said=True):
        pass
    assert time.process_time() - started < 3, name


@pytest.mark.parametrize(
    "unit", ["超时是45秒，", "時間は45秒、", "x=1,", '"a":1,', "```a\n", "/a/b/c ", "#1 "]
)
def test_a_line_takes_time_with_its_length_alone(unit: str) -> None:
    def seconds(times: int) -> float:
        started = time.process_time()
        list(mentions(unit * times, said=True))
        return time.process_time() - started

    def best(times: int) -> float:
        """Of several, since others work on the machine, too."""
        return min(seconds(times) for _ in range(5))

    # Eight times the length: 64 times, if it grew with its square.
    assert best(8_000) < 40 * max(best(1_000), 0.002)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The on-call number is +49 30 5550 118, ask for Kim.", "+49 30 5550 118"),
        ("Call +1 (415) 555-0132 at night.", "+1 (415) 555-0132"),
        ("Pay to DE89 3704 0044 0532 0130 00 today.", "DE89 3704 0044 0532 0130 00"),
        ("The card is 4111 1111 1111 1111.", "4111 1111 1111 1111"),
        ("Mail bob.o'neil@acme.example about it.", "bob.o'neil@acme.example"),
        ("It runs at ops@10.0.3.7:2222 now.", "ops@10.0.3.7:2222"),
    ],
)
def test_names_of_several_pieces_do_not_come_apart(text: str, name: str) -> None:
    found = [one.name for one in mentions(text, said=True)]
    assert name in found
    assert not [one for one in found if one != name and one in name]


def test_a_word_behind_a_labelled_number_is_no_unit_of_it() -> None:
    found = {one.name for one in mentions("pid: 41877 holds it", said=True)}
    assert "41877" in found
    assert {one.name for one in mentions("retries: 17 attempts", said=True)} == {"17 attempts"}
