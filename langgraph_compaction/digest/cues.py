"""Words that mark directives, decisions, intentions, errors: signals for ranking, by language.

No sentence is lost for want of a cue; lists like these are never complete.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from langgraph_compaction.digest.sentences import Sentence


@dataclass(frozen=True, slots=True)
class Cue:
    """Words that mark a kind of sentence, in several languages.

    A word and a phrase count as wholes, a pattern for scripts without spaces wherever it matches.
    A list is a signal for ranking and sorting only: no sentence is lost for want of a cue.
    """

    words: frozenset[str]
    phrases: tuple[str, ...]
    unspaced: re.Pattern[str]

    def __call__(self, sentence: Sentence) -> bool:
        """Whether the sentence has the cue."""
        if not self.words.isdisjoint(sentence.words):
            return True
        joined = sentence.joined
        for phrase in self.phrases:
            if phrase in joined:
                return True
        return not sentence.text.isascii() and bool(self.unspaced.search(sentence.text))

    def strength(self, sentence: Sentence) -> int:
        """How many different words, phrases and matches of the cue the sentence has."""
        found = len(self.words.intersection(sentence.words))
        found += sum(phrase in sentence.joined for phrase in self.phrases)
        return found + len(set(self.unspaced.findall(sentence.text)))


def _cue(text: str, unspaced: str = "(?!)") -> Cue:
    """A cue from words divided by spaces, phrases divided by slashes, and a pattern."""
    single, *phrases = (part.strip() for part in text.split("/"))
    return Cue(
        frozenset(single.split()),
        tuple(f" {phrase} " for phrase in phrases),
        re.compile(unspaced),
    )


FIRM = _cue(
    "never must mustn't only don't dont always cannot avoid without except exactly required "
    "forbidden prohibited budget limit limited deadline shouldn't unless critical important "
    "nie niemals muss müssen nur immer kein keine höchstens mindestens ohne verboten "
    "jamais doit dois doivent seulement uniquement toujours évite évitez interdit obligatoire sans "
    "nunca debe debes deben solo sólo siempre evita evite prohibido obligatorio máximo mínimo sin "
    "apenas deve devem sempre sem mai solamente "
    "никогда должен должна должно должны только всегда нельзя обязательно запрещено избегай "
    "/do not/at most/at least/no more than/make sure/not use/not change/want only/would only",
    r"不要|必须|必須|只能|只要|不能|不可|不得|禁止|一定要|务必|請勿|请勿|总是|始终|永远|最多|至少|预算"
    r"|しないで|ないでください|必ず|だけ|のみ|なければ|いけない|以内|以下|以上|絶対"
    r"|반드시|항상|절대|금지|마세요|하지 마|이내|최대|최소|ห้าม|ต้อง",
)
"""Directives that bind: never, must, only, at most …"""

_LIMITS = _cue(
    "limit limited budget deadline required critical important exactly höchstens mindestens máximo "
    "mínimo /at most/at least/no more than",
    "最多|至少|预算|以内|以下|以上|이내|최대",
)
STRICT = Cue(
    FIRM.words - _LIMITS.words,
    tuple(phrase for phrase in FIRM.phrases if phrase not in _LIMITS.phrases),
    re.compile(
        "|".join(
            one for one in FIRM.unspaced.pattern.split("|") if one not in _LIMITS.unspaced.pattern
        )
    ),
)
"""Directives that hold whatever number they name: "the retry limit is 5" does not once it is 7."""

SOFT = _cue(
    "please want wants should prefer prefers preferred rather keep ensure need needs instead "
    "actually bitte soll sollte möchte bevorzuge préfère préférez veuillez voudrais prefiero "
    "quiero favor quero prefiro пожалуйста хочу предпочитаю нужно следует",
    r"请|請|希望|想要|应该|應該|优先|最好|ください|してほしい|べき|해주세요|싶|กรุณา",
)
"""Wishes: please, should, prefer …"""

REQUEST = _cue(
    "want need create make build fix implement write find add remove move change "
    "update research answer task goal objective help bitte kannst peux pouvez puedes quiero "
    "хочу пожалуйста /your task/i'd like/can you/could you/would you",
    r"请|請|帮|幫|想|要|吧|ください|お願い|たい|해줘|해주세요",
)
"""What asks for something."""

DECISION = _cue(
    "because decided decide chose chosen opted therefore instead weil deshalb stattdessen "
    "entschieden parce plutôt décidé porque decidí decidido потому решил решили вместо поэтому "
    "/i'll use/i will use/we'll use/we will use/let's use/go with/going with/rather than"
    "/root cause/the fix is/en lugar/por eso/so that/the best way",
    r"决定|決定|因为|因為|而不是|选择|選擇|采用|採用|所以|ため、|代わりに|理由|왜냐하면|결정",
)
"""Choices and their reasons."""

INTENT = _cue(
    "i'll we'll let's voy vamos буду давайте "
    "/i will/we will/let me/let us/i need to/we need to/going to/i should/we should/now i need"
    "/next step/next steps/ich werde/je vais/nous allons/vou",
    r"接下来|接下來|现在让我|让我|我将|我会|下一步|次に|これから|しましょう|하겠습니다|다음으로",
)
"""What someone is about to do."""

OPEN = _cue(
    "tbd remaining unresolved outstanding blocked fixme awaiting ausstehend pendiente restant "
    "осталось/not yet/still need/still needs/left to do/waiting for/will follow/follow up",
    r"待办|待辦|尚未|还需要|還需要|未完成|未対応|아직|남은",
)
"""What is still to be done."""

ERROR = _cue(
    "error errors exception traceback failed fails failure fatal denied refused invalid panic "
    "unable timeout segfault crash crashed declined rejected unauthorized unauthorised forbidden "
    "insufficient unsuccessful aborted abgelehnt verweigert refusé rechazado отклонено fehler "
    "fehlgeschlagen erreur échec échoué falló fallo "
    "erro ошибка/not found/no such/timed out/could not/couldn't/does not exist",
    r"错误|錯誤|失败|失敗|异常|エラー|例外|오류|실패",
)
"""What went wrong."""

REFUSAL = _cue(
    "exceeded exceeds exists locked blocked throttled unavailable unsupported unknown missing "
    "expired conflict conflicts wrong oops sorry must required überschritten gesperrt "
    "abgelaufen fehlt ungültig dépassé expiré invalide manquant bloqué excedido caducado inválido "
    "bloqueado expirado превышен недоступен "
    "/bad request/out of/try again/too many/too long/too large/dry run/rate limit",
    r"超过|超出|无效|無効|無效|过期|期限切れ|不足|拒绝|拒否|초과|만료|거부",
)
"""By which a tool turns down what it was asked, without a word for an error."""

NEGATION = _cue(
    "not never no nobody nothing none neither nor without cannot can't couldn't didn't doesn't "
    "don't wasn't weren't isn't aren't hasn't haven't hadn't won't wouldn't didnt wasnt hasnt "
    "unsent unpaid undone untouched nicht nie niemals nichts kein keine keinen keinem keiner "
    "keines ohne ne pas jamais aucun aucune sans n'a n'est n'ont n'ai nunca ningún ninguna jamás "
    "tampoco sin não nenhum nenhuma sem non mai nessun nessuna senza не нет никогда ничего без",
    r"不|没|沒|未|无|無|ない|ません|なかった|せず|안 |않|못|없|ไม่|มิได้",
)
"""What says that something is not so."""

UNDONE = _cue(
    "ask asked asking whether proposed suggested plan plans planned planning prepared preparing "
    "draft drafted drafting skip skipped skipping omitted postponed deferred pending would should "
    "may might cancelled canceled fragte gefragt ob geplant plane entworfen entwurf vorbereitet "
    "übersprungen ausgelassen verschoben demandé prévu sauté préparé brouillon reporté pregunté "
    "preguntó preguntado planeado omitido preparado borrador aplazado perguntei perguntou "
    "planejado rascunho adiado chiesto previsto saltato bozza rimandato спросил спросила "
    "запланировано пропущено черновик отложено",
    r"是否|询问|詢問|计划|計劃|跳过|跳過|草稿|推迟|かどうか|予定|スキップ|下書き|여부|예정|건너|초안|ถาม|ร่าง|ข้าม",
)
"""What was only asked, planned, prepared or left out."""

COURTESY = _cue(
    "/hold on/one moment/please wait/let me know/feel free/happy to help/glad to/anything else"
    "/assist you/help you/you're welcome/thank you",
    r"不客气|随时告诉我|お気軽に",
)
"""Sentences that say nothing for later."""
