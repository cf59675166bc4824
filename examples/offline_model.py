"""A chat model without a network: it decides every step from the messages it is given, alone.

It stands in for a real model in the demo and its tests, so it must have no better memory than one.
What to do, which files were read, what they contain: all of it comes out of the view, as text.
Where the view has lost the task, or a fact that the answer needs, the model says so and stops.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from answers import follow_up, report
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from notes import MOST_CONSTANTS, Constants, Notebook, constants_in, finding, tally, unfinished

BATCH_LINES = 250
"""Lines of the short files that are read in one step, by parallel calls."""
MOST_LOST = 0.5
"""Share of the findings that may be lost for the model to look for them in a second reading; with
more gaps it cannot trust its memory, and says so."""

_TASK = re.compile(r"\bsurvey the files\b", re.IGNORECASE)
_GREATEST = re.compile(r"\b(\w+) greatest constants\b")
_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_RECORD_END = re.compile(r"\[End of the record\b", re.IGNORECASE)
_ROW = re.compile(r"^(\d+)\. (.+) \((\d+) lines\)$", re.MULTILINE)
_LISTING = re.compile(r"\[Files (\d+) to \d+ of (\d+), ([\d,]+) lines in all\]")
_PAGE = re.compile(r"\[File (\d+) of (\d+): (.+), lines (\d+) to (\d+) of (\d+)")
_FOUND = re.compile(r"^'(\w+)' stands in \d+ lines of (\d+) files: (.+)$", re.MULTILINE)


class OfflineModel(BaseChatModel):
    """A deterministic agent model for the survey, usable wherever a chat model is."""

    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """The model with these tools at hand."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager, kwargs
        return ChatResult(generations=[ChatGeneration(message=_Reader(messages).reply())])


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    path: str
    lines: int


class _Reader:
    """One look at a view, and the reply that follows from it."""

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self._messages = messages
        humans = [m.text for m in messages if isinstance(m, HumanMessage)]
        self._task = next((text for text in humans if _TASK.search(text)), None)
        said = [m.text for m in messages if not isinstance(m, ToolMessage)]
        self._book = Notebook.read(text for text in said if text != self._task)
        self._rows: dict[int, _Row] = {}
        for message in messages:
            if isinstance(message, ToolMessage) and _LISTING.match(message.text):
                for number, path, lines in _ROW.findall(message.text):
                    self._rows[int(number)] = _Row(int(number), path, int(lines))
        self._place: tuple[int, int, str] | None = None
        replies = [m.text for m in messages if isinstance(m, AIMessage)]
        self._again = bool(replies) and "second reading" in replies[-1]
        self._said: list[str] = []

    def reply(self) -> AIMessage:
        if self._task is None:
            return _lost(["the task"])
        newest = self._messages[-1]
        if isinstance(newest, HumanMessage) and not _is_task_or_record(newest.text):
            return AIMessage(content=follow_up(newest.text, self._book))
        goes_on = self._take_results()
        if goes_on is not None:
            return self._read([goes_on])
        return self._next_files() or self._gaps() or self._search() or self._report()

    # ---- what the newest results say

    def _take_results(self) -> tuple[str, int] | None:
        """Note what the newest results say; a file that goes on: its path and next line."""
        goes_on = None
        for call, text in _newest_results(self._messages):
            if page := _PAGE.match(text):
                goes_on = self._take_page(page, text) or goes_on
            elif listing := _LISTING.match(text):
                first, total = int(listing.group(1)), int(listing.group(2))
                self._place = first - 1, total, ""
                if self._book.size is None:
                    self._note(f"The folder has {total} files with {listing.group(3)} lines.")
            elif found := _FOUND.match(text):
                files = ", ".join(f"`{path}`" for path in found.group(3).split(", "))
                many = "file" if found.group(2) == "1" else "files"
                self._note(f"{found.group(1)} is used in {found.group(2)} {many}: {files}.")
            elif call["name"] == "read_file":
                self._skip(str(call["args"].get("path")))
        return goes_on

    def _take_page(self, page: re.Match[str], text: str) -> tuple[str, int] | None:
        number, total, first, last, lines = (int(page.group(n)) for n in (1, 2, 4, 5, 6))
        path = page.group(3)
        constants: Constants = {}
        if first > 1:
            before = self._book.unfinished.get(path)
            if before is None or before.read_to != first - 1 or not before.is_whole:
                self._said.append(f"What I noted of the first lines of `{path}` is gone.")
                return path, 1
            constants.update(before.constants)
        for name, value in constants_in(text.partition("\n")[2]).items():
            if len(constants) < MOST_CONSTANTS:
                constants.setdefault(name, value)
        if last < lines:
            self._note(unfinished(path, last + 1, constants))
            return path, last + 1
        self._place = number, total, path
        known = self._book.files.get(path)
        if constants and not (known and known.is_whole):
            missing = self._book.missing() if self._again else []
            new = missing[0] if missing else self._book.findings + 1
            self._note(finding((known and known.number) or new, path, constants))
        return None

    def _skip(self, path: str) -> None:
        """Go on after a file that could not be read: it was moved or removed meanwhile."""
        self._said.append(f"`{path}` cannot be read any more.")
        row = next((row for row in self._rows.values() if row.path == path), None)
        if row and self._book.size:
            self._place = row.number, self._book.size[0], path

    def _note(self, sentences: str) -> None:
        self._said.append(sentences)
        self._book.take(sentences)

    # ---- what to do next

    def _next_files(self) -> AIMessage | None:
        """Read the next files, or list them; None where nothing is left to read."""
        if self._place is None:
            return None if _newest_results(self._messages) else self._list("")
        last, total, path = self._place
        if last >= total or (self._again and not self._book.missing()):
            return None
        batch: list[_Row] = []
        while (row := self._rows.get(last + len(batch) + 1)) is not None:
            if batch and sum(one.lines for one in [*batch, row]) > BATCH_LINES:
                break
            batch.append(row)
        return self._read([(row.path, 1) for row in batch]) if batch else self._list(path)

    def _gaps(self) -> AIMessage | None:
        """Deal with what the view has lost; None where it has all that the answer needs."""
        book, missing = self._book, self._book.missing()
        if not missing and book.size:
            return None
        lost = [f"finding {number} of {book.findings}" for number in missing]
        if self._again or len(missing) > MOST_LOST * book.findings:
            return _lost([*lost, *([] if book.size else ["how many files there are"])])
        self._again = True
        if missing:
            self._said.append(f"I cannot see {', '.join(lost)}.")
        before = [
            (note.number, path)
            for path, note in book.files.items()
            if missing and note.number and note.number < missing[0]
        ]
        return self._list(max(before)[1] if before else "")

    def _search(self) -> AIMessage | None:
        """Look up where the greatest constants are used; None where that is known."""
        names = [name for name, _, _ in self._greatest() if name not in self._book.uses]
        if not names:
            return None
        return self._call(("search_text", {"text": name}) for name in dict.fromkeys(names))

    def _report(self) -> AIMessage:
        return AIMessage(content=report(self._book, self._greatest()))

    def _greatest(self) -> list[tuple[str, str, str]]:
        asked = _GREATEST.search(self._task or "")
        return self._book.ranked()[: _WORDS.get(asked.group(1), 0) if asked else 0]

    # ---- calls

    def _list(self, after: str) -> AIMessage:
        return self._call([("list_files", {"after": after} if after else {})])

    def _read(self, pages: Sequence[tuple[str, int]]) -> AIMessage:
        return self._call(
            ("read_file", {"path": path, "start": at} if at > 1 else {"path": path})
            for path, at in pages
        )

    def _call(self, calls: Any) -> AIMessage:
        made = [
            ToolCall(name=name, args=args, id=_call_id(self._messages, name, args))
            for name, args in calls
        ]
        self._said.append(tally(self._book.findings, again=self._again))
        return AIMessage(content=" ".join(self._said), tool_calls=made)


def _is_task_or_record(text: str) -> bool:
    return bool(_TASK.search(text) or _RECORD_END.search(text))


def _lost(what: Sequence[str]) -> AIMessage:
    """The end of the run: what the view should hold and does not."""
    listed = "; ".join(what)
    return AIMessage(
        content=f"I cannot go on. What I need is no longer in what I can see: {listed}.",
        response_metadata={"lost": list(what)},
    )


def _newest_results(messages: Sequence[BaseMessage]) -> list[tuple[ToolCall, str]]:
    """The results at the end of the view, each with its call."""
    texts: dict[str, str] = {}
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            texts[message.tool_call_id] = message.text
        else:
            calls = message.tool_calls if isinstance(message, AIMessage) else []
            return [(call, texts[call["id"] or ""]) for call in calls if call["id"] in texts]
    return []


def _call_id(messages: Sequence[BaseMessage], name: str, args: dict[str, Any]) -> str:
    """An id that depends on the view and the call alone."""
    seed = json.dumps([len(messages), messages[-1].text, name, args], sort_keys=True)
    return f"call_{hashlib.sha256(seed.encode()).hexdigest()[:12]}"
