"""What the pages need on their way from a checkout to the site; MkDocs calls the `on_` functions.

In a checkout README and changelog stand outside the folder of the pages, and links lead to tests
and examples. The site takes the first as pages of its own, and names the path of what it has not.
"""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = "docs"
"""Folder of the pages, as a path from the root of the project."""
ADDED = {
    "README.md": "overview.md",
    "examples/README.md": "examples.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages from outside that folder, and their names in the site: a README would be an index there."""
BOOSTS = {"reference/settings.md": 4, "reference/events.md": 2, "changelog.md": 0.5}
"""How much higher or lower the search puts a page: who looks for a name wants its definition."""
GENERATED = "reference/api/"
"""Where the pages stand that are made from docstrings."""
FENCES = {"text output": 'text title="Output"', "python notest": "python"}
"""What stands behind a fence for tests/contracts/test_docs.py, and what the site has instead."""

_FENCED = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]\[]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
_SHOWN = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
_CODE = re.compile(
    # The first four stay as they are: headings, blocks of code, links, references.
    r"<h[1-6].*?</h[1-6]>|<pre.*?</pre>|<a .*?</a>|<autoref.*?</autoref>|<code>(\w+)</code>",
    re.DOTALL,
)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages from outside the folder of the pages."""
    for path, name in ADDED.items():
        files.append(File.generated(config, name, content=(ROOT / path).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Adapt the text of a page, and say how high the search puts it."""
    page.meta.setdefault("search", {"boost": BOOSTS.get(page.file.src_uri, 1)})
    return adapted(markdown, page.file.src_uri)


def on_page_content(html: str, *, page: Page, **_: object) -> str:
    """Link the public names that docstrings have as code."""
    return linked_names(html) if page.file.src_uri.startswith(GENERATED) else html


def adapted(markdown: str, name: str) -> str:
    """The text of a page as the site has it: links that lead somewhere, fences that MkDocs knows.

    Args:
        markdown: the text.
        name: the page's path in the site's sources, such as "how-to/pin-messages.md".
    """
    parts: list[str] = []
    end = 0
    for block in _FENCED.finditer(markdown):
        info = block[1].strip()
        parts.append(_linked(markdown[end : block.start()], name))
        parts.append(f"```{FENCES.get(info, info)}\n{block[2]}```")
        end = block.end()
    return "".join([*parts, _linked(markdown[end:], name)])


def _linked(text: str, name: str) -> str:
    """A text without blocks of code; the path of what the site has not becomes a tooltip."""
    own = next((path for path, added in ADDED.items() if added == name), f"{PAGES}/{name}")

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(own), found[2]))
        inside = ADDED.get(target) or target.removeprefix(f"{PAGES}/")
        if inside == target:
            return f'<span title="{target}">{found[1]}</span>'
        path = posixpath.relpath(inside, posixpath.dirname(name) or ".")
        return f"[{found[1]}]({path}{found[3] or ''})"

    return _LINK.sub(link, text)


def linked_names(html: str) -> str:
    """The HTML of a page in which public names lead to what their own docstrings say."""
    names = public_names()

    def link(found: re.Match[str]) -> str:
        path = names.get(found[1] or "")
        return f'<autoref identifier="{path}" optional>{found[0]}</autoref>' if path else found[0]

    return _CODE.sub(link, html)


@cache
def public_names() -> dict[str, str]:
    """What the generated pages show: the full name of each object by the last part of it."""
    pages = sorted((ROOT / PAGES / GENERATED).glob("*.md"))
    paths = [path for page in pages for path in _SHOWN.findall(page.read_text("utf-8"))]
    return {path.rpartition(".")[2]: path for path in paths}
