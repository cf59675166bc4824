"""What the user said, sentence by sentence: what is quoted, and which quote comes first."""

import time
from itertools import pairwise

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langgraph_compaction.digest.facts.completing import facts_of
from langgraph_compaction.digest.facts.quotes import (
    BINDING_SHARE,
    MESSAGE_CHARS,
    QUOTE_SHARE,
    SENTENCE_CHARS,
    WISHES_SHARE,
    ranked,
    user_sentences,
)
from langgraph_compaction.digest.sentences import words


def quoted(text: str) -> list[str]:
    return user_sentences([HumanMessage(text)])


def best(*texts: str) -> list[str]:
    return [quote.text for quote in sorted(ranked(texts), key=lambda one: one.rank, reverse=True)]


def fitting(*texts: str, cap: int) -> list[str]:
    messages = [HumanMessage(text) for text in texts]
    facts = facts_of((), messages, before=(), cap=cap, count=lambda text: len(text.split()))
    return list(facts.quotes)


@pytest.mark.parametrize(
    "sentence",
    [
        "Never touch the table `users_v2`, not even for v1.2.3!",
        "The report (see /srv/a.b/c.md) is due on 3 May.",
        "Bitte lösche niemals die Datei am 1. Januar.",
        "Il ne faut jamais toucher « la base ».",
        "¿Puedes hacerlo sin borrar nada?",
        "Никогда не трогай рабочую базу данных.",
        "不要删除任何文件，除非我说可以。",
        "本番のデータベースには絶対に触らないでください。",
        "절대 운영 데이터베이스를 건드리지 마세요.",
        "Use {braces}, %s and \\n as they are, please.",
    ],
)
def test_a_sentence_is_quoted_word_for_word(sentence: str) -> None:
    assert quoted(sentence) == [sentence]
    assert quoted(f"So here is what I want from you.\n\n{sentence}")[-1] == sentence


DIRECTIVES = {
    "English": ("Never restart the old server.", "We looked at the old server today."),
    "German": ("Starte den alten Server niemals neu.", "Wir sahen uns den alten Server an."),
    "French": ("Il est interdit de relancer le serveur.", "Nous avons regardé le serveur hier."),
    "Spanish": ("Nunca reinicies el servidor viejo.", "Ayer miramos el servidor viejo."),
    "Portuguese": ("Nunca reinicie o servidor velho.", "Ontem olhamos o servidor velho."),
    "Russian": ("Никогда не трогай старый сервер.", "Вчера мы смотрели старый сервер."),
    "Chinese": ("绝对不要重启旧的服务器。", "昨天我们看了旧的服务器。"),
    "Japanese": ("古いサーバーは必ず残しておく。", "昨日は古いサーバーを見ました。"),
    "Korean": ("오래된 서버는 절대 다시 시작하지 마세요.", "어제 우리는 오래된 서버를 보았습니다."),
}


@pytest.mark.parametrize("language", DIRECTIVES)
def test_a_directive_comes_before_newer_talk(language: str) -> None:
    directive, talk = DIRECTIVES[language]
    assert best(directive, talk) == [directive, talk]
    assert best(talk, directive) == [directive, talk]
    assert ranked([directive])[0].share == BINDING_SHARE


def test_what_binds_comes_before_wishes_before_requests_before_the_rest() -> None:
    rest, request, wish, binding = (
        "The weather was fine in town.",
        "Fix the parser in that module.",
        "I would rather have it in blue.",
        "Never write to that table.",
    )
    assert best(binding, wish, request, rest) == [binding, wish, request, rest]
    shares = {quote.text: quote.share for quote in ranked([rest, request, wish, binding])}
    assert shares == {
        binding: BINDING_SHARE, wish: WISHES_SHARE, request: QUOTE_SHARE, rest: QUOTE_SHARE
    }  # fmt: skip


def test_a_cue_ranks_and_does_not_gate() -> None:
    assert quoted("The harbour froze over in winter.") == ["The harbour froze over in winter."]
    assert fitting("The harbour froze over in winter.", cap=400) == [
        "The harbour froze over in winter."
    ]


def test_the_newer_of_two_directives_comes_first() -> None:
    assert best("Never use port 1.", "Never use port 2.") == [
        "Never use port 2.",
        "Never use port 1.",
    ]


def test_what_was_said_again_counts_once_and_as_of_then() -> None:
    found = ranked(["Never use tabs.", "Never use spaces.", "Never use tabs."])
    assert [quote.text for quote in found] == ["Never use spaces.", "Never use tabs."]


def test_only_the_user_is_quoted() -> None:
    text = "Never restart the old server."
    others = [AIMessage(text), SystemMessage(text), ToolMessage(text, tool_call_id="1")]
    assert user_sentences(others) == []


@pytest.mark.parametrize(
    "text",
    [
        "```python\nNever let x be None in here.\n```",
        "~~~python\nassert x, 'you must never be here'\n~~~",
        "def never(x):\n    return only[x]",
        '{"must": "never", "only": [1, 2, 3]}',
        "<format_example>\nNever answer without a table here.\n</format_example>",
        "2034-05-12 | 200 | 0x3f | {} | ()",
        "",
    ],
)
def test_pasted_code_and_observations_are_no_quotes(text: str) -> None:
    assert quoted(text) == []


def test_prose_around_pasted_code_is_quoted() -> None:
    text = "This must never fail:\n```\na = 1\nb = 2\n```\nPlease keep it that way."
    assert quoted(text) == ["This must never fail:", "Please keep it that way."]


def test_a_command_after_a_colon_belongs_to_its_sentence() -> None:
    assert quoted("Always run exactly this:\n```\nmake all\n```") == [
        "Always run exactly this: make all"
    ]


def test_a_short_order_is_quoted_although_it_is_no_sentence() -> None:
    assert quoted("Only tests!") == ["Only tests!"]
    assert quoted("ok") == []


def test_a_long_sentence_is_cut_between_clauses_and_loses_nothing() -> None:
    text = "Never do this, " * 60 + "and never do that."
    found = quoted(text)
    assert max(map(len, found)) <= SENTENCE_CHARS
    assert " ".join(found) == text


def test_quotes_stand_oldest_first_and_within_their_share() -> None:
    texts = [f"Never restart server number {number}." for number in range(100)]
    found = fitting(*texts, cap=400)
    assert found == texts[-len(found) :]
    words = sum(len(f"- {text}".split()) for text in found)
    assert 0.3 * 400 < words <= BINDING_SHARE * 400


def test_small_talk_takes_less_room_than_directives() -> None:
    talk = [f"The weather in town {number} was fine." for number in range(100)]
    found = fitting(*talk, cap=400)
    assert sum(len(f"- {text}".split()) for text in found) <= QUOTE_SHARE * 400
    assert found == talk[-len(found) :]


def test_directives_are_not_pushed_out_by_newer_talk() -> None:
    talk = [f"The weather in town {number} was fine." for number in range(100)]
    assert "Never restart the old server." in fitting(
        "Never restart the old server.", *talk, cap=200
    )


def test_a_quote_that_does_not_fit_leaves_its_room_to_shorter_ones() -> None:
    long = "Never " + "ever " * 70 + "do it."
    assert fitting("Never do it.", long, cap=120) == ["Never do it."]


@pytest.mark.parametrize("cap", range(60))
def test_a_small_cap_leaves_room_for_the_text(cap: int) -> None:
    found = fitting(*[f"Never use port {port}." for port in range(50)], cap=cap)
    assert not found or cap > 40


@pytest.mark.parametrize("unit", ["Never. ", "a, ", "never ", "，", "。", "a", "\n", "`", "1. "])
def test_a_megabyte_of_anything_is_read_in_a_moment(unit: str) -> None:
    started = time.process_time()
    found = quoted(unit * (1_000_000 // len(unit)))
    assert time.process_time() - started < 2
    assert all(len(text) <= SENTENCE_CHARS for text in found)


def test_ranks_of_one_kind_grow_with_the_order() -> None:
    found = ranked([f"Never use port {port}." for port in range(30)])
    assert all(one.rank < other.rank for one, other in pairwise(found))


@pytest.mark.parametrize("filler", ["{} is a line of the document.\n", "{} words of it "])
def test_a_directive_in_the_middle_of_a_long_document_is_quoted(filler: str) -> None:
    half = "".join(filler.format(number) for number in range(20_000))
    order = "Never write to the production database."
    text = f"{half}\n{order}\n{half}"
    found = user_sentences([HumanMessage(text)])
    assert found.count(order) == 1
    assert len("".join(found)) <= 2 * MESSAGE_CHARS


def test_a_document_of_directives_is_read_up_to_a_limit() -> None:
    text = "You must never do it.\n" * 100_000
    assert len("".join(user_sentences([HumanMessage(text)]))) <= 2 * MESSAGE_CHARS


@pytest.mark.parametrize(
    "text",
    [
        "```see this``` first.\nNever touch the database.\n```and that```",
        "```\nreturn only[x]\n```\nNever touch the database.\n```\nmust = 1\n```",
        "````\n```\nreturn only[x]\n````\nNever touch the database.",
        "~~~ a ```b\nx must be 1\n~~~\nNever touch the database.",
        "```python\nreturn only[x]\n``` opens none\nmust = 1\n```\nNever touch the database.",
        "```python\nNever touch the database.",
    ],
)
def test_fences_are_read_as_markdown_has_them(text: str) -> None:
    found = user_sentences([HumanMessage(text)])
    assert "Never touch the database." in found
    assert not any("only[x]" in one or "must" in one for one in found)


def test_markers_of_media_are_no_words_of_the_user() -> None:
    image = {"type": "image", "base64": "aGk=" * 90, "mime_type": "image/png"}
    message = HumanMessage([{"type": "text", "text": "Never crop it."}, image, {"type": "x_block"}])
    assert user_sentences([message]) == ["Never crop it."]


@pytest.mark.parametrize(
    "text",
    [
        "You must never, under any circumstances, write to the\nproduction database.",
        "Whatever the tests say, never delete files without asking, except in\n/tmp/scratch.",
        "The service must always be restarted only through\nJenkins, by hand.",
        "The answers must never be given in English, only in\nFrench or German.",
    ],
)
def test_a_directive_that_was_wrapped_by_hand_is_quoted_whole(text: str) -> None:
    assert quoted(text) == [text.replace("\n", " ")]
    lines = "A line of it.\n" * 4_000
    document = f"{lines}\n{text}\n\n{lines}"
    assert text.replace("\n", " ") in quoted(document)


@pytest.mark.parametrize("mark", ["```", "~~~~~~", "```text", "````md"])
def test_rules_in_a_fence_are_quoted(mark: str) -> None:
    closing = mark.rstrip("abcdefghijklmnopqrstuvwxyz")
    rules = f"{mark}\n- Never touch the production database.\n- Only deploy on Mondays.\n{closing}"
    assert quoted(f"Follow these rules from now on:\n{rules}") == [
        "Follow these rules from now on:",
        "Never touch the production database.",
        "Only deploy on Mondays.",
    ]


def test_no_sentence_of_a_long_message_is_torn() -> None:
    order = "Delete the old files without asking only in /tmp/scratch and nowhere else."
    for before in range(0, 60, 7):
        text = f"{'Read this. ' * 1_820}{'x' * before}. {order} {'Read that. ' * 1_820}"
        assert order in quoted(text)


def test_quotation_marks_are_no_part_of_a_word() -> None:
    assert words("it's '+1200' in 'src/app.py', don't") == [
        "it's", "1200", "in", "src", "app", "py", "don't",
    ]  # fmt: skip
