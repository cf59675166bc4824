"""Is a list of messages one that every provider accepts?

The rules are the strictest that OpenAI, Anthropic and Gemini document, stated once on LangChain
messages; `payloads` checks each provider's own rules on the request that its package builds. A view
is fair if it breaks no rule that the transcript kept: `new_violations(before, after)`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

WHOLE_LIST = -1
"""The index of a violation that belongs to no one message."""


class Rule(StrEnum):
    """Every rule of this module and of `payloads`, as "group.rule"."""

    ORPHAN_RESULT = "pairs.orphan_result"
    MISSING_ANSWER = "pairs.missing_answer"
    DUPLICATE_ANSWER = "pairs.duplicate_answer"
    DUPLICATE_CALL_ID = "pairs.duplicate_call_id"
    EMPTY_LIST = "order.empty_list"
    LATE_SYSTEM = "order.late_system"
    FIRST_NOT_HUMAN = "order.first_not_human"
    ENDS_WITH_AI = "order.ends_with_ai"
    RESULTS_NOT_FIRST = "order.results_not_first"
    CALLS_NOT_LAST = "order.calls_not_last"
    CALL_AFTER_MODEL = "order.call_after_model"
    REASONING_ALONE = "order.reasoning_alone"
    DUPLICATE_ITEM = "order.duplicate_item"
    REFUSED_STRUCTURE = "order.refused_by_builder"
    SERVER_CALL_OPEN = "server.open_call"
    SERVER_RESULT_ORPHAN = "server.orphan_result"
    EMPTY_HUMAN = "text.empty_human"
    EMPTY_TEXT = "text.empty_text"
    EMPTY_CONTENT = "text.empty_content"
    TRAILING_SPACE = "text.trailing_space"
    # What an author or another provider wrote, and this provider does not take.
    FOREIGN_BLOCK = "foreign.block_type"
    FOREIGN_CALL = "foreign.call_without_id_or_name"
    FOREIGN_REUSED_ID = "foreign.reused_call_id"
    REFUSED_CONTENT = "foreign.refused_by_builder"

    @property
    def group(self) -> str:
        """The part before the dot: pairs, order, server, text or foreign."""
        return self.value.partition(".")[0]


MESSAGE_RULES = frozenset(
    {
        Rule.ORPHAN_RESULT,
        Rule.MISSING_ANSWER,
        Rule.DUPLICATE_ANSWER,
        Rule.DUPLICATE_CALL_ID,
        Rule.EMPTY_LIST,
        Rule.LATE_SYSTEM,
        Rule.FIRST_NOT_HUMAN,
        Rule.ENDS_WITH_AI,
        Rule.SERVER_CALL_OPEN,
        Rule.SERVER_RESULT_ORPHAN,
        Rule.EMPTY_HUMAN,
    }
)
"""The rules that `violations` checks."""


@dataclass(frozen=True)
class Violation:
    """One broken rule: which, at which position, and what was seen there."""

    rule: Rule
    index: int
    detail: str


def violations(
    messages: Sequence[BaseMessage], *, state_ends_with_ai: bool = False
) -> list[Violation]:
    """The rules of `MESSAGE_RULES` that a list of messages breaks, in the order of its messages.

    Args:
        messages: The list as a model would be called with it.
        state_ends_with_ai: The state itself ends with an AI message, so the list may, too. Calls
            that are open at the very end are the state's own matter and break no rule.
    """
    if not messages:
        return [Violation(Rule.EMPTY_LIST, WHOLE_LIST, "no messages")]
    found = [
        *_pairs(messages),
        *_order(messages, state_ends_with_ai=state_ends_with_ai),
        *server_pairs(_server_turns(messages)),
        *(
            Violation(Rule.EMPTY_HUMAN, index, f"human content {message.content!r:.60}")
            for index, message in enumerate(messages)
            if isinstance(message, HumanMessage) and is_blank(message.content)
        ),
    ]
    return sorted(found, key=lambda violation: violation.index)


def new_violations(before: Sequence[Violation], after: Sequence[Violation]) -> list[Violation]:
    """The violations of `after` that `before` does not excuse.

    A rule broken n times before excuses n of its violations after, the first n; for a view may
    move a violation, but not add one. A result without its call becomes text in a view, and so ends
    the turn in which a server-side call before it was still open.
    """
    excused = Counter(violation.rule for violation in before)
    excused[Rule.SERVER_CALL_OPEN] += excused[Rule.ORPHAN_RESULT]
    fresh = []
    for violation in after:
        if excused[violation.rule] > 0:
            excused[violation.rule] -= 1
        else:
            fresh.append(violation)
    return fresh


def counts_by_rule(found: Iterable[Violation]) -> dict[Rule, int]:
    """How often each rule is broken, the most frequent first."""
    return dict(Counter(violation.rule for violation in found).most_common())


def match_answers(
    calls: Sequence[str | None],
    answers: Sequence[tuple[int, str | None]],
    *,
    at: int,
    may_be_open: bool = False,
) -> Iterator[Violation]:
    """The faults between one message's calls and the run of answers right after it.

    Args:
        calls: The ids of the calls, in order.
        answers: Position and call id of each answer.
        at: Position of the calls.
        may_be_open: Answers may still be missing.
    """
    expected, seen = Counter(calls), Counter[str | None]()
    for call_id, count in expected.items():
        if count > 1:
            yield Violation(Rule.DUPLICATE_CALL_ID, at, f"{count} calls have the id {call_id!r}")
    for index, call_id in answers:
        seen[call_id] += 1
        if call_id not in expected:
            yield Violation(Rule.ORPHAN_RESULT, index, f"no call {call_id!r} right before it")
        elif seen[call_id] > expected[call_id]:
            yield Violation(Rule.DUPLICATE_ANSWER, index, f"call {call_id!r} was answered before")
    for call_id in () if may_be_open else expected:
        if seen[call_id] < expected[call_id]:
            yield Violation(Rule.MISSING_ANSWER, at, f"call {call_id!r} has no answer after it")


def server_pairs(turns: Iterable[tuple[int, str, Sequence[Any]]]) -> Iterator[Violation]:
    """The halves of server-side tool pairs whose other half is not where it must be.

    A result follows its call in the same AI message; or in the next one, where the provider paused
    the turn (`pause_turn`) or waited for results of client tools called beside it. Between the two
    stand only such results. Calls of the newest AI message may be open. Documented at
    https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools

    Args:
        turns: Position, role ("ai", "tool" or another) and content blocks.
    """
    waiting: dict[str, int] = {}
    for index, role, blocks in turns:
        if role == "tool":
            continue
        asked: dict[str, int] = {}
        for block in blocks if role == "ai" else ():
            if (call_id := _server_call_id(block)) is not None:
                asked[call_id] = index
            elif (call_id := _server_result_id(block)) is not None and (
                asked.pop(call_id, None) is None and waiting.pop(call_id, None) is None
            ):
                yield Violation(Rule.SERVER_RESULT_ORPHAN, index, f"no server call {call_id!r}")
        for call_id, position in waiting.items():
            yield Violation(
                Rule.SERVER_CALL_OPEN, position, f"server call {call_id!r} has no result"
            )
        waiting = asked


def is_blank(content: Any) -> bool:
    """Whether content has nothing but white space in it: a string, or a list of blocks."""
    if isinstance(content, str):
        return not content.strip()
    if isinstance(content, Mapping):
        return content.get("type") == "text" and is_blank(content.get("text") or "")
    return all(is_blank(block) for block in content)


def _pairs(messages: Sequence[BaseMessage]) -> Iterator[Violation]:
    caller, calls, answers = WHOLE_LIST, list[str | None](), list[tuple[int, str | None]]()
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            answers.append((index, message.tool_call_id))
            continue
        yield from match_answers(calls, answers, at=caller)
        caller, calls, answers = index, _call_ids(message), []
    yield from match_answers(calls, answers, at=caller, may_be_open=True)


def _call_ids(message: BaseMessage) -> list[str | None]:
    if not isinstance(message, AIMessage):
        return []
    return [call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)]


def _order(messages: Sequence[BaseMessage], *, state_ends_with_ai: bool) -> Iterator[Violation]:
    first = next((i for i, m in enumerate(messages) if not isinstance(m, SystemMessage)), None)
    if first is None:
        yield Violation(Rule.FIRST_NOT_HUMAN, WHOLE_LIST, "system messages only")
        return
    if not isinstance(messages[first], HumanMessage):
        yield Violation(Rule.FIRST_NOT_HUMAN, first, f"opens with {messages[first].type!r}")
    for index in range(first, len(messages)):
        if isinstance(messages[index], SystemMessage):
            yield Violation(Rule.LATE_SYSTEM, index, "a system message after the leading run")
    if isinstance(messages[-1], AIMessage) and not state_ends_with_ai:
        yield Violation(Rule.ENDS_WITH_AI, len(messages) - 1, "ends with an AI message")


def _server_turns(messages: Sequence[BaseMessage]) -> Iterator[tuple[int, str, Sequence[Any]]]:
    for index, message in enumerate(messages):
        blocks = message.content if isinstance(message.content, list) else ()
        yield index, message.type.removesuffix("MessageChunk").lower(), blocks


def _server_call_id(block: Any) -> str | None:
    block = _unwrapped(block)
    if block.get("type") in {"server_tool_use", "mcp_tool_use", "server_tool_call"}:
        return str(block.get("id"))
    return None


def _server_result_id(block: Any) -> str | None:
    block = _unwrapped(block)
    kind = str(block.get("type", ""))
    if kind == "server_tool_result":
        return str(block.get("tool_call_id"))
    return str(block.get("tool_use_id")) if kind.endswith("_tool_result") else None


def _unwrapped(block: Any) -> Mapping[str, Any]:
    """The block itself; what LangChain v1 wraps as non-standard; {} for a plain string."""
    if not isinstance(block, Mapping):
        return {}
    wrapped = block.get("value") if block.get("type") == "non_standard" else None
    return wrapped if isinstance(wrapped, Mapping) else block
