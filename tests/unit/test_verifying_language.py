"""When a digest is in another language than the conversation, and when nothing is said about it.

An agent goes on in the language of its digest. But a digest is full of English names, many agents
think in English while the user writes something else, and a language that is not known must pass.
"""

import time
from collections.abc import Sequence

import pytest

from langgraph_compaction.digest.verifying.language import mismatch, names_language
from langgraph_compaction.digest.verifying.stopwords import STOP_WORDS
from tests.support.bad_answers import SAID, written_in

OTHERS = {
    "Dutch": "De gebruiker wil dat de build van de parser voor vrijdag weer groen is. De test "
    "faalt omdat het bestand met de verkeerde codering wordt gelezen. Het was niet duidelijk of "
    "die wijziging van gisteren is, maar ik zal het aanpassen en dan de tests opnieuw draaien.",
    "Polish": "Użytkownik chce, aby budowa parsera była naprawiona przed piątkiem. Test nie "
    "przechodzi, ponieważ plik jest czytany z błędnym kodowaniem. Zmienię to teraz i ponownie "
    "uruchomię testy, zanim otworzę prośbę o włączenie zmian do gałęzi głównej.",
    "Catalan": "L'usuari vol que la compilació de l'analitzador estigui arreglada abans de "
    "divendres. La prova falla perquè el fitxer es llegeix amb una codificació que no és la seva. "
    "Ho canvio ara i després torno a executar les proves, abans d'obrir la petició.",
    "Vietnamese": "Người dùng muốn bản dựng của trình phân tích được sửa trước thứ Sáu. Bài kiểm "
    "tra thất bại vì tệp được đọc với mã hóa sai. Tôi sẽ thay đổi điều đó ngay bây giờ rồi chạy.",
}
PAIRS = [
    (one, other)
    for one in SAID
    for other in SAID
    if one != other and {one, other} != {"Chinese", "Japanese"}  # they share their characters
]


@pytest.mark.parametrize(("written", "spoken"), PAIRS)
def test_every_two_languages_are_told_apart(written: str, spoken: str) -> None:
    assert mismatch(written_in(written), SAID[spoken]) == (written, spoken)


@pytest.mark.parametrize("language", SAID)
def test_its_own_language_is_right(language: str) -> None:
    assert mismatch(written_in(language), SAID[language]) is None
    # Condensing: the conversation is the segments then, with headings of their own.
    segment = f"# Messages 0 to 9 (folded after step 4)\n{written_in(language)}"
    assert mismatch(written_in(language), [segment]) is None


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("language", ["English", "German", "Spanish"])
def test_a_language_that_is_not_known_is_no_fault(language: str, other: str) -> None:
    assert mismatch(written_in(language), [OTHERS[other]]) is None
    assert mismatch(OTHERS[other], SAID[language]) is None


@pytest.mark.parametrize(
    "conversation", [(), ("",), ("Fix it.",), ("修好它。",), ("Mach das.",) * 3]
)
def test_of_a_short_conversation_nothing_is_said(conversation: Sequence[str]) -> None:
    for language in SAID:
        assert mismatch(written_in(language), conversation) is None


def test_of_a_short_digest_nothing_is_said() -> None:
    assert mismatch("## Goal\nFix the build.\n## State now\nIt is fixed.", SAID["German"]) is None


@pytest.mark.parametrize(
    ("user", "language", "agent"),
    [
        ("Bitte behebe das, und zwar heute.", "German", "English"),
        ("Repariere bitte den Build.", "German", "English"),
        ("Corrige la compilación, por favor.", "Spanish", "English"),
        ("请修复构建错误", "Chinese", "English"),
        ("Почини сборку.", "Cyrillic script", "English"),
        ("Please fix it and push it, with all of the tests in order.", "English", "Chinese"),
        ("Please fix it and push it, with all of the tests in order.", "English", "German"),
    ],
)
def test_where_user_and_agent_differ_either_language_will_do(
    user: str, language: str, agent: str
) -> None:
    # Agents that think in English say much more in it than the user does in another language.
    for either in (language, agent):
        assert mismatch(written_in(either), [user, *SAID[agent] * 10]) is None
    assert mismatch(written_in("Greek"), [user, *SAID[agent] * 10]) is not None


@pytest.mark.parametrize("language", ["German", "Chinese", "Cyrillic script"])
def test_names_code_and_quotes_are_of_no_language(language: str) -> None:
    names = (
        "\n- src/lexer.py: `the reader of the file that is to be replaced`\n"
        '- the message "the file should be read with the encoding that it was written in"\n'
        "- PARSER_MAX_DEPTH, readUtf8, utf8_reader.py:42, https://example.org/the/and/of\n"
        "```\nwhile the_and_of: this.is_not_that(for_it)\n```\n"
    )
    assert mismatch(written_in(language) + names * 4, SAID[language]) is None


@pytest.mark.parametrize(
    ("instructions", "named"),
    [
        (None, False), ("", False), ("Keep the SQL.", False), ("Keep every polished name.", False),
        ("Write it in English.", True), ("Antworte auf Deutsch.", True), ("用中文写", True),
        ("Use the user's language.", True), ("Translate it.", True), ("日本語で", True),
    ],
)  # fmt: skip
def test_instructions_about_language_are_noticed(instructions: str | None, named: bool) -> None:
    assert names_language(instructions) is named


def test_every_language_has_words_enough_of_its_own() -> None:
    for language, words in STOP_WORDS.items():
        others = frozenset().union(*(w for name, w in STOP_WORDS.items() if name != language))
        assert len(words) >= 25
        assert len(words - others) >= 20, language
        assert all(len(word) > 1 and word == word.casefold() for word in words)


def test_a_long_conversation_costs_no_more_than_a_short_one() -> None:
    conversation = [text * 50 for text in SAID["German"]] * 5_000
    started = time.process_time()
    assert mismatch(written_in("English"), conversation) == ("English", "German")
    assert time.process_time() - started < 0.2
