"""Numbers, dates and money in running text, and what each is the value of.

Two values of one subject are one thing that changed: the same words must give the same subject,
however they are put.
"""

import pytest

from langgraph_compaction.digest.facts.linking import SUBJECT_WORDS
from langgraph_compaction.digest.facts.mentions import mentions


def pairs(text: str, *, said: bool = True) -> list[tuple[str, str]]:
    """Subjects and values of a text."""
    return [(mention.subject, mention.name) for mention in mentions(text, said=said)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the upload timeout is 45 s", [("upload timeout", "45 s")]),
        ("The upload timeout should be 45 seconds now.", [("upload timeout", "45 seconds")]),
        ("We changed the batch size from 64 to 128.",
         [("batch size", "64"), ("batch size", "128")]),
        ("The port was 8080; it is 9090 now.", [("port", "8080"), ("port", "9090")]),
        ("The port was 8080. It is 9090 now.", [("port", "8080"), ("port", "9090")]),
        ("timeout: 45 s", [("timeout", "45 s")]),
        ('"timeout": "45 s"', [("timeout", "45 s")]),
        ("timeout = 45", [("timeout", "45")]),
        ("timeout → 45 s", [("timeout", "45 s")]),
        ("port=8080", [("port", "8080")]),
        ("MAX_RETRIES=5", [("max_retries", "5"), ("", "MAX_RETRIES")]),
        ("--timeout=30s", [("timeout", "30s"), ("", "--timeout")]),
        ("The budget is $1,200.50 and the fee is €45.", [("budget", "$1,200.50"), ("fee", "€45")]),
        ("Use 17 retries.", [("", "17 retries")]),
        ("the export folder was /a/b; it is /c/d now",
         [("export folder", "/a/b"), ("export folder", "/c/d")]),
        ("Correction: the pinned release is v2.4.1, nothing else.", [("pinned release", "v2.4.1")]),
        ("I set the reviewer address to DATA-1234.", [("reviewer address", "DATA-1234")]),
        ("Das Upload-Limit beträgt 25 MB.", [("upload-limit", "25 MB")]),
        ("La limite est de 300 lignes.", [("limite", "300 lignes")]),
        ("Le prix est 1 200 €.", [("prix", "1 200 €")]),
        ("El límite es 30 minutos.", [("límite", "30 minutos")]),
        ("Таймаут загрузки теперь 45 секунд.", [("таймаут загрузки", "45 секунд")]),
        ("上传超时改为 45 秒。", [("上传超时", "45 秒")]),
        ("上传超时改为45秒。", [("上传超时", "45秒")]),
        ("超时从30秒改为45秒。", [("超时", "30秒"), ("超时", "45秒")]),
        ("超时是30秒，它现在是45秒。", [("超时", "30秒"), ("超时", "45秒")]),
        ("导出目录改为 /srv/x.yaml。", [("导出目录", "/srv/x.yaml")]),
        ("タイムアウトは30秒です。", [("タイムアウト", "30秒")]),
        ("タイムアウトを30秒から45秒に変更しました。",
         [("タイムアウト", "30秒"), ("タイムアウト", "45秒")]),
        ("업로드 제한 시간은 30초입니다.", [("업로드 제한 시간", "30초")]),
        ("업로드 제한 시간을 30초에서 45초로 바꿨습니다.",
         [("업로드 제한 시간", "30초"), ("업로드 제한 시간", "45초")]),
    ],
)  # fmt: skip
def test_a_value_comes_with_what_it_is_the_value_of(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert pairs(text) == expected


@pytest.mark.parametrize(
    "value",
    ["45 s", "45 ms", "1.5 GB", "99.9 %", "300 lines", "20 °C", "100 km/h", "2 GHz", "14:30",
     "2034-05-12 13:45", "12 March 2034", "March 12, 2034", "12 March", "12. März 2034",
     "3. April", "1er janvier 2034", "12 mars 2034", "12 de marzo de 2034", "3 de abril",
     "12 марта 2034", "-5", "1e6", "1920x1080", "$45", "€1,200.50", "45 €"],
)  # fmt: skip
@pytest.mark.parametrize(
    "sentence",
    ["The limit is {}.", "The limit is {} now.", "The limit ({}) holds.", "The limit is {}"],
)
def test_a_value_stands_as_it_was_written(sentence: str, value: str) -> None:
    assert value in [name for _, name in pairs(sentence.format(value))]


@pytest.mark.parametrize("value", ["2034年5月12日", "45秒", "300行", "30分钟", "2万元", "45秒間"])
@pytest.mark.parametrize("sentence", ["上限是{}。", "上限改为{}，明天开始。", "上限は{}です。"])
def test_so_does_one_in_text_without_spaces(sentence: str, value: str) -> None:
    (mention,) = pairs(sentence.format(value))
    assert mention == ("上限", value.removesuffix("間"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("the upload timeout is {}", "The upload timeout: {}"),
        ("We set the upload timeout to {}.", "From now on the upload timeout is {}."),
        ('"upload timeout": "{}"', "upload timeout = {}"),
        ("上传超时改为 {}。", "上传超时是{}。"),
        ("업로드 시간은 {}입니다.", "업로드 시간이 {} 입니다."),
        ("アップロードの時間は{}です。", "アップロードの時間を{}に変更。"),
    ],
)
def test_the_same_words_give_the_same_subject(before: str, after: str) -> None:
    (first, _), *_ = pairs(before.format("45秒" if not before.isascii() else "45 s"))
    (second, _), *_ = pairs(after.format("60秒" if not after.isascii() else "60 s"))
    assert first == second != ""


@pytest.mark.parametrize(
    "text",
    [
        "See /a/b.md for it.",
        "Open /a/b.md and /c/d.md.",
        "commit 9f86d081884c",
        "PROJ-1234 is mine",
    ],
)
def test_a_verb_before_a_name_is_no_subject(text: str) -> None:
    """Or the next one "seen" would pass for its newer value."""
    assert {subject for subject, _ in pairs(text)} == {""}


def test_what_is_printed_has_a_subject_only_after_a_link() -> None:
    assert pairs("the timeout is 45 s", said=False) == []
    assert pairs("timeout: 45 s", said=False) == [("timeout", "45 s")]
    assert pairs("path: /a/b.py", said=False) == [("path", "/a/b.py")]
    assert pairs("wrote /a/b.py", said=False) == [("", "/a/b.py")]


def test_a_subject_ends_with_its_clause_and_has_few_words() -> None:
    assert pairs("All is well. The port is 8080")[0][0] == "port"
    assert pairs("All is well, the port is 8080")[0][0] == "port"
    assert pairs("one two three four five six seven: 8")[0][0].count(" ") == SUBJECT_WORDS - 1


def test_a_pronoun_takes_up_the_subject_before_it_on_its_line_only() -> None:
    assert pairs("The port was 8080. It is 9090.")[1] == ("port", "9090")
    assert pairs("The port was 8080.\nIt is 9090.") == [("port", "8080")]
