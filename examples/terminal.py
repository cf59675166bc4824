"""What the demo shows: a context meter for each step, the folds, and the balance at the end."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage
from rich import box
from rich.console import Console, Group
from rich.markdown import Markdown
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

MIN_METER, MAX_METER = 16, 40
"""Characters of the context meter, in a narrow and in a wide terminal."""
LEAST_LINES = 3
"""Lines shown of a segment in which no finding stands."""
_FOUND = re.compile(r"(?:Finding \d+: )?`[^`]*` (?:also )?defines .*?[.](?=\s|$)")
"""A sentence of the agent's with constants of a file."""
_FACT = re.compile(r"\bFinding \d|\bThe folder has\b")


class Screen:
    """Prints line by line, so that it reads the same in a terminal, a pipe and a CI log."""

    def __init__(self, window: int, trigger: int) -> None:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal that cannot show a character
        self.console = Console(highlight=False)
        self.window, self.trigger = window, trigger
        plain = self.console.options.ascii_only
        self.digest_tokens = 0
        self._digest, self._full, self._empty, self._mark = "=#.!" if plain else "▓█░│"
        self._to = "->" if plain else "→"
        self._box = box.ASCII if plain else box.ROUNDED

    def header(self, rows: Mapping[str, str]) -> None:
        """What is going to happen, in a panel."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, text in rows.items():
            grid.add_row(name, escape(text))
        self.console.print(Panel(grid, title="Compaction at work", box=self._box, expand=False))

    def say(self, text: str, style: str = "") -> None:
        """A line of text between the steps."""
        self.console.print(escape(text), style=style)

    def step(self, number: int, tokens: int, message: AIMessage) -> None:
        """One call of the agent: what it does next, and how full its view was."""
        width = self.console.width
        meter = self._meter(tokens, max(MIN_METER, min(MAX_METER, width // 4)))
        figures = Text(f"{tokens:>7,}", style=self._colour(tokens))
        room = width - 5 - 1 - len(meter) - len(figures)
        texts = [_call_text(call["name"], call["args"], room) for call in message.tool_calls]
        if len(texts) > 1 and len(", ".join(texts)) > room:
            texts = [f"{message.tool_calls[0]['name']}, {len(texts)} calls at once"]
        action = Text(", ".join(texts) or "the answer", style="" if texts else "bold green")
        action.truncate(room, overflow="ellipsis", pad=True)
        line = Text.assemble((f"{number:>4} ", "dim"), action, " ", meter, figures)
        self.console.print(line, soft_wrap=True)
        for sentence in _FOUND.findall(message.text if texts else ""):
            self.console.print(Padding(Text(sentence, "dim"), (0, 0, 0, 5)))

    def fold(self, number: int, event: Mapping[str, Any]) -> None:
        """A finished fold: tokens before and after, and what became of the messages."""
        self.digest_tokens = event["digest_tokens"]
        text = Text(f"     fold {number}  ", style="bold cyan")
        text.append(
            f"{event['tokens_before']:,} {self._to} {event['tokens_after']:,} tokens", "bold"
        )
        text.append(
            f"  messages {event['first_index']}-{event['last_index']}  digest now "
            f"{event['digest_tokens']:,}",
            "cyan",
        )
        if event["condensed"]:
            text.append(f"\n             {event['condensed']} old segments condensed", "cyan")
        self.console.print(text)

    def clear(self, event: Mapping[str, Any]) -> None:
        """Old results that made room without a summary."""
        text = Text("     clear   ", style="bold cyan")
        text.append(
            f"{event['tokens_before']:,} {self._to} {event['tokens_after']:,} tokens", "bold"
        )
        text.append(f"  {event['results']} old results, no model asked", "cyan")
        self.console.print(text)

    def trouble(self, event: Mapping[str, Any]) -> None:
        """A fold that did not go smoothly."""
        kind = str(event["type"]).partition(".")[2].replace("_", " ")
        tier = f" {event['tier']}:" if "tier" in event else ""
        self.console.print(
            Text(f"     {kind}{':' if not tier else ''}{tier} {event.get('reason', '')}", "yellow")
        )

    def digest(self, text: str) -> None:
        """The digest, shortened to what it kept of the agent's findings."""
        shown: list[Text] = []
        _, *segments = text.split("\n# ")
        for segment in segments:
            title, *lines = [line for line in segment.splitlines() if line.strip()]
            kept = [line for line in lines if _FACT.search(line)] or lines[:LEAST_LINES]
            shown.append(Text(title, "cyan"))
            shown += [Text(line, "dim", no_wrap=True, overflow="ellipsis") for line in kept]
            shown.append(Text(f"  and {len(lines) - len(kept)} more lines", "dim italic"))
        title = f"The digest the agent answered from, shortened ({len(text):,} characters)"
        self.console.print(Panel(Group(*shown), title=title, box=self._box))

    def answer(self, text: str, title: str = "Answer") -> None:
        """The agent's answer, rendered."""
        self.console.print(Panel(Markdown(text), title=title, box=self._box, border_style="green"))

    def balance(self, rows: Mapping[str, str]) -> None:
        """The figures of the run."""
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(style="dim")
        table.add_column(overflow="fold")
        for name, value in rows.items():
            table.add_row(name, escape(value))
        self.console.print(table)

    def _meter(self, tokens: int, width: int) -> Text:
        """The window as a bar: the digest, the rest of the view, what is free; the trigger."""
        full = min(width, round(width * tokens / self.window))
        digest = min(full, round(width * self.digest_tokens / self.window))
        mark = min(width - 1, round(width * self.trigger / self.window))
        free = self._empty * (width - full)
        if full <= mark:
            free = free[: mark - full] + self._mark + free[mark - full + 1 :]
        return Text.assemble(
            (self._digest * digest, "cyan"),
            (self._full * (full - digest), self._colour(tokens)),
            (free, "dim"),
        )

    def _colour(self, tokens: int) -> str:
        if tokens >= self.trigger:
            return "red"
        return "yellow" if tokens >= 0.75 * self.trigger else "green"


def _call_text(name: str, arguments: Mapping[str, Any], room: int) -> str:
    """A call in at most about ``room`` characters; of a long path the end is shown."""
    target, *more = [str(value) for value in arguments.values()] or [""]
    if name == "list_files" and target:
        more, target = [f"after {target}"], ""
    rest = "".join(f" from line {value}" if name == "read_file" else value for value in more)
    spare = room - len(name) - 1 - len(rest)
    parts = target.split("/")
    while len(target) > spare and len(parts) > 1:
        parts = parts[1:]
        target = "/".join(["…", *parts])
    return f"{name} {target}{rest}"
