"""A scripted summariser: reads its prompt, writes a fair digest, and loses facts by chance.

One chat model for all systems, each of which asks it with its own prompt. It knows the planted
facts and so is a perfect judge of what matters; but it can only write what stands in the prompt,
it drops each fact with a given probability every time it writes, and it keeps to the length that
is asked for. What one call loses, the next one cannot bring back.
"""

import html
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from tests.benchmarks.survival.counting import message_text
from tests.benchmarks.survival.digest import Line, fitted, gist
from tests.benchmarks.survival.facts import Fact
from tests.benchmarks.survival.matching import holds

_CONTEXT = re.compile(
    r"^[^\n]*(?:for context only|[Dd]o not repeat)[^\n]*\n<([\w-]+)>\n.*?^</\1>",
    re.DOTALL | re.MULTILINE,
)
"""What a prompt shows "for context only" or asks not to repeat: not to be recorded again."""
_DATA = re.compile(r"^<(?:messages|transcript|earlier_digest)>", re.MULTILINE)
_HEADING = re.compile(r"^[ \t]*## ([^:\n]{3,60})", re.MULTILINE)
_LENGTH = re.compile(r"\bat most ([\d,]+) tokens")


class ScriptedSummariser(BaseChatModel):
    """The summariser as a chat model.

    Attributes:
        facts: what it recognises.
        loss: probability with which it drops a fact each time it could write it.
        seed: of what it drops. The n-th decision on a fact is the same in every system.
        budget: tokens that its answers never exceed; a prompt may ask for less.
        calls: answers written so far.
    """

    facts: Any
    loss: float
    seed: int
    budget: int
    calls: int = 0
    _looks: Counter[int] = PrivateAttr(default_factory=Counter)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> ChatResult:
        text = self.answer(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    def answer(self, messages: Sequence[BaseMessage]) -> str:
        """The digest for a prompt."""
        self.calls += 1
        prompt = "\n".join(message_text(message) for message in messages)
        asked = [int(number.replace(",", "")) for number in _LENGTH.findall(prompt)]
        source = html.unescape(_CONTEXT.sub("", prompt))
        flat = " ".join(source.split())
        lines = [self._line(fact, flat) for fact in self._kept(flat)]
        headings = _HEADING.findall(_DATA.split(prompt)[0])
        known = {fact.value for fact in self.facts}
        return fitted(
            [*sorted(lines, key=lambda line: line.rank), *gist(source, known)],
            list(dict.fromkeys(heading.strip() for heading in headings)),
            min([self.budget, *asked[-1:]]),
        )

    def _kept(self, flat: str) -> list[Fact]:
        """The facts that stand in a text and are not lost; of an updated value only the newest."""
        kept: dict[Any, Fact] = {}
        for fact in self.facts:
            if holds(flat, fact.value):
                look = self._looks[fact.number]
                self._looks[fact.number] += 1
                chance = random.Random(f"loss/{self.seed}/{fact.number}/{look}").random()
                if chance >= self.loss:
                    kept.pop(fact.series or fact.number, None)
                    kept[fact.series or fact.number] = fact
        return list(kept.values())

    @staticmethod
    def _line(fact: Fact, flat: str) -> Line:
        """The fact as a line; only its value where the prompt does not say what it is."""
        said = fact.sentence in flat or fact.note in flat
        text = fact.note if said else fact.value
        return Line(text, fact.kind, fact.number, flat.count(fact.value))
