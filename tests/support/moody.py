"""A summariser of which one never knows."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

RUBBISH = [
    "",
    "ok",
    "I'm sorry, but I can't help with that.",
    "<tool_call>{}</tool_call>",
    "x" * 99_999,
]
BAD = ["raises", *(f"rubbish{n}" for n in range(len(RUBBISH)))]
"""Moods in which nothing it says is accepted."""


class Moody(BaseChatModel):
    """A summariser of which one never knows; what it writes well is in the ledger."""

    sources: Any
    mood: str = "good"

    @property
    def _llm_type(self) -> str:
        return "moody"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._text(messages)))])

    def _text(self, messages: list[BaseMessage]) -> str:
        if self.mood == "raises":
            raise ConnectionError("The summariser is down.")
        if self.mood.startswith("rubbish"):
            return RUBBISH[int(self.mood.removeprefix("rubbish"))]
        return str(self.sources.ledger(messages))
