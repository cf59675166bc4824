"""Answers that are something else than a text about the span: protocol, data, errors, refusals."""

from __future__ import annotations

import json
import re

from langgraph_compaction.digest.verifying.cleaning import body

LONGEST_ERROR = 300
"""Characters that an answer may have to count as nothing but an error message or a refusal."""

_TOOL_PROTOCOL = re.compile(
    r"^[ \t]*(?:</?tool_calls?>|</?tool_response>|<function_calls>|<invoke\s|<function=|<parameter="
    r"|\[TOOL_CALLS\]|<\|(?:python_tag|channel|im_start|im_end|start_header_id|tool_call[^|\n]*)\|>"
    r"|\[/?INST\]|<\uff5ctool)",
    re.MULTILINE,
)
_NOT_ABLE = (
    r"i'?m sorry|i am sorry|sorry,|i apologi[sz]e|"
    r"i can(?:'|no)t (?:help|assist|provide|comply|summari[sz]e|do that)|i cannot|"
    r"i(?:'| a)m (?:unable|not able)|as an ai\b|"
    r"tut mir leid|es tut mir leid|je suis désolé|désolé|lo siento|mi dispiace|desculpe|"
    r"извините|抱歉|对不起|很抱歉|申し訳|죄송"
)
_ASKS_BACK = (
    r"i don'?t (?:see|have) (?:any|the|a)\b|there is no (?:conversation|transcript)|"
    r"(?:could|can|would) you (?:please )?(?:provide|share|clarify|paste)|"
    r"please (?:provide|share|paste|send)|what would you like|how (?:can|may) i (?:help|assist)|"
    r"no conversation|it (?:looks|seems) like (?:you\b|there(?:'s| is) no|the (?:conv|transc))|"
    r"請提供|请提供"
)
_POLITELY = r"\A\W{0,10}(?:(?:sure|of course|certainly|okay|ok|hello|hi)\W{1,3}(?:there\W{1,3})?)?"
_REFUSAL = re.compile(f"{_POLITELY}(?:(?P<not_able>{_NOT_ABLE})|{_ASKS_BACK})", re.IGNORECASE)
_PAGE = re.compile(r"\A\s*(?:<!doctype\s+html|<html\b|<head>|<body\b|<\?xml\b)", re.IGNORECASE)
# What servers, gateways and clients say, at the beginning of the text.
_ERROR = re.compile(
    r"\A[\W_]{0,6}(?:"
    r"(?:(?:api|http|server|network|connection|provider|model|client|fatal|unexpected|internal"
    r"|openai|anthropic) ){0,3}(?:error|exception)\s?:"
    r"|(?:[a-z_]\w{0,40}\.){0,5}\w{1,40}(?:Error|Exception)\s?[:(]"
    r"|error (?:code|while|calling|generating|during|occurred)\b|traceback \(most recent"
    r"|(?:http(?:/\d(?:\.\d)?)?|error|status(?: code)?:?)\s[45]\d\d\b"
    r"|[45]\d\d:? (?:bad|unauthorized|forbidden|not found|internal|service|gateway|too many"
    r"|error)\b"
    r"|(?:internal server error|bad gateway|service (?:temporarily )?unavailable|gateway time-?out"
    r"|too many requests|unauthorized|forbidden)\b"
    r"|rate limit(?:ed)?\b.{0,40}(?:exceeded|reached|\bhit\b)|upstream (?:request|connect|error)"
    r"|(?:the )?(?:request|connection|operation)(?: was| has)? (?:timed? ?out|aborted|refused)"
    r"|an? (?:\w+ )?error (?:has )?occurr?ed|something went wrong"
    r"|(?:the |this )?(?:server|model|service|engine) is (?:currently |temporarily )?"
    r"(?:overloaded|busy|unavailable|down)\b|this model['\u2019]s maximum context"
    r"|you (?:have )?exceeded your|(?:quota|context length|token limit) exceeded"
    r"|failed to (?:generate|summari[sz]e|get a response|call the model))",
    re.IGNORECASE,
)
_ABOUT_WORK = re.compile(r"\b(?:the user|user'?s?|the agent)\b", re.IGNORECASE)


def kind_fault(text: str) -> str | None:
    """What the text is instead of a digest, one short phrase; None: nothing of the kind."""
    if _TOOL_PROTOCOL.search(text):
        return "contains tool-protocol text"
    if _is_json(text):
        return "JSON instead of text"
    if _refuses(text.replace("\u2019", "'")):
        return "a refusal or a question back"
    return _error(text)


def _refuses(text: str) -> bool:
    if _REFUSAL.match(text):
        return True
    # Below a heading, too; but there, a question back may be the user's own words.
    lines = body(text)
    said = " ".join(lines) if sum(map(len, lines)) <= LONGEST_ERROR else ""
    found = _REFUSAL.match(said)
    return found is not None and found["not_able"] is not None


def _error(text: str) -> str | None:
    if _PAGE.match(text):
        return "an error page"
    if len(text) > LONGEST_ERROR or _ABOUT_WORK.search(text):
        return None
    lines = body(text)
    below_headings = len(lines) < sum(1 for line in text.splitlines() if line.strip())
    if below_headings and len(lines) != 1:  # a finding may well begin with an error
        return None
    return "an error message" if _ERROR.match(lines[0] if below_headings else text) else None


def _is_json(text: str) -> bool:
    if text[0] not in "[{":
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True
