"""How a call came out, as far as its result says so.

A wrong "ok" hides a failure for good, and a wrong "error" has the call made again. So of a call
that had an effect neither is claimed unless the result is plain about it: else the line says what
was answered, and the reader judges.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_compaction.digest import cues
from langgraph_compaction.digest.sentences import Sentence, clean, sampled

FAILURE_CHARS = 2_000
"""Characters of a result in which an error is looked for: half at its head, half at its tail."""
JSON_CHARS = 20_000
"""Characters up to which a result is read as JSON."""
NOTE_CHARS = 200
"""Characters up to which what a look-up answers is taken for a word on the call itself, rather than
for what was looked up."""

_NAMES = (
    r"\w{0,20}(?:errors?|exceptions?|fail(?:ed|ures?|s)?|fatal|denied|rejected|declined|refused|invalid"
    r"|warnings?)"
)
_NOTHING_WRONG = re.compile(
    rf"[\"']?\b{_NAMES}\w{{0,20}}[\"']?\s*[:=]\s*(?:null|none|nil|false|no|0|\"\"|''|\[\s*\]|\{{\s*\}})"
    r"(?=\s*(?:\Z|[\n,;|}\])]|\.(?:\s|\Z)))"
    rf"|\b(?:no|0|zero|without|without any|not any|keine?|aucune?|sin|sem) {_NAMES}\b",
    re.IGNORECASE,
)
"""What names an error only to say that there was none: ``failed: 0``, ``"error": null``."""
_ERROR = re.compile(
    r"\A[\W_]*(?:[\w.]*(?:error|exception)|fatal|fail(?:ed|ure))(?: \d+)?"
    r"(?:[\"']?\s*[:>]|[.!]*\s*\Z)"
    r"|\A\W*traceback \(most recent call last\)|<returncode>\s*-?[1-9]"
    r"|^[^\w\n]*(?:\w+ )?exit(?:ed)?[ _](?:with )?(?:code|status):? *-?[1-9]\d*[^\w\n]*$"
    r"|^[\w.]*(?:error|exception): [^\n]*\s*\Z",
    re.IGNORECASE | re.MULTILINE,
)
"""What a result begins or ends with only where the call failed."""
_DOUBTFUL = re.compile(
    r"\bhttp\b[^\d\n]{0,12}(?:\d\.\d\s+)?[45]\d\d\b|\A\W*[45]\d\d\s+[a-z]"
    r"|\b(?:status\w*|code)[\"']?\s*[:=]\s*[\"']?[45]\d\d\b"
    r"|\b(?:is_?)?(?:ok|success\w*|succeeded)[\"']?\s*[:=]\s*[\"']?(?:false|no|0)\b"
    r"|\b(?:exit\w*[ _](?:with )?(?:code|status)|exit_?code|returncode)[\"']?[:=]?\s*-?[1-9]",
    re.IGNORECASE,
)
_DOUBTS = (cues.ERROR, cues.REFUSAL, cues.NEGATION, cues.UNDONE, cues.OPEN)
_WORKED = re.compile(
    r"<returncode>\s*0\b|\bexit(?:ed)?[ _](?:with )?(?:code|status):? *0\b", re.IGNORECASE
)
_SUCCEEDED = frozenset("ok success succeeded successful done completed complete true".split())
_FAILED = frozenset(
    "error errored fail failed failure fatal declined denied rejected refused unauthorized "
    "forbidden aborted false".split()
)
_STATES = ("status", "state", "result", "outcome", "ok", "success", "succeeded", "successful")
_ERRORS = ("error", "errors", "exception", "isError", "is_error")
_CODES = ("exit_code", "exitCode", "returncode", "return_code")
_MESSAGES = (
    "message error_message errorMessage msg error errors reason detail details description".split()
)
"""Where a result in JSON says in words what happened, the most telling first."""

Answered = Literal["ok", "error", "answered"]


class Answer(NamedTuple):
    """How a call came out.

    Attributes:
        outcome: "ok" only where the tool reports success and nothing in its result speaks against
            it, "error" only where it failed for certain; else "answered".
        message: what a result in JSON says of it in words; or "".
    """

    outcome: Answered
    message: str = ""


def answer_of(result: BaseMessage, text: str, *, effect: bool) -> Answer:
    """How the call that a message answers came out.

    Args:
        result: the message.
        text: what it says, of which no caller has to take a sample first: lists, extracts and
            prompts may show different parts of a result, but agree on how the call came out.
        effect: whether the call changed something. What is looked up may tell of anything that
            went wrong: unless it is as short as a mere message, that says nothing of the call.
    """
    found = _object(text)
    message = _message(found)
    status = getattr(result, "status", None)
    if status == "error":
        return Answer("error", message)
    shown = sampled(text, FAILURE_CHARS)
    wrong, right = _told(found)
    if (wrong and not right) or (not found and says_error(shown)):
        return Answer("error", message)
    if not effect and len(text) > NOTE_CHARS:
        return Answer("ok", message)
    reported = status == "success" or right or not effect or _WORKED.search(shown)
    doubted = wrong or not reported or speaks_against(shown)
    return Answer("answered" if doubted else "ok", message)


def says_error(text: str) -> bool:
    """Whether a text of a tool is plainly the report of an error."""
    return _ERROR.search(_NOTHING_WRONG.sub("", text)) is not None


def speaks_against(text: str) -> bool:
    """Whether anything in a text of a tool speaks against a success."""
    text = _NOTHING_WRONG.sub("", text)
    sentence = Sentence.of(text)
    return any(cue(sentence) for cue in _DOUBTS) or _DOUBTFUL.search(text) is not None


def telling(result: Sequence[Sentence], *, failed: bool) -> list[Sentence]:
    """The sentences of a result that say something; of a failed one the last that say what."""
    found = [part for part in result if any(map(str.isalpha, part.text))]
    return [part for part in found if cues.ERROR(part)][-2:] if failed else found


def said(result: Sequence[Sentence], answer: Answer) -> str:
    """What a result says of how the call came out, in one sentence; "" where it says nothing."""
    if answer.message:
        return answer.message
    found = telling(result, failed=False)
    shown = found[:1]
    if answer.outcome == "error":
        # The last line of a traceback has the error's own name, which is in no list of cues.
        wrong = [part for part in found if says_error(part.text)] or telling(found, failed=True)
        shown = wrong[-1:] or shown
    elif answer.outcome == "answered":
        shown = [part for part in found if speaks_against(part.text)][:1] or shown
    return shown[0].text if shown else ""


def _object(text: str) -> Mapping[str, Any]:
    """The object that a result in JSON is, also the only one of a list; else none."""
    if len(text) > JSON_CHARS or text.lstrip()[:1] not in ("{", "["):
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if isinstance(found, list) and len(found) == 1:
        (found,) = found
    return found if isinstance(found, dict) else {}


def _told(found: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether an object says of itself that something failed, and that something succeeded."""
    states = {str(found[key]).casefold() for key in _STATES if key in found}
    wrong = not _FAILED.isdisjoint(states) or str(found.get("type")).casefold() == "error"
    wrong = wrong or any(found.get(key) for key in _ERRORS)
    wrong = wrong or any(found.get(key) not in (None, 0, "0", "") for key in _CODES)
    return wrong, not _SUCCEEDED.isdisjoint(states)


def _message(found: Mapping[str, Any]) -> str:
    for key in _MESSAGES:
        value = found.get(key)
        if isinstance(value, Mapping):
            value = next((value[one] for one in _MESSAGES if value.get(one)), None)
        if isinstance(value, str) and (text := " ".join(clean(value).split())):
            return text
    return ""
