"""The site says what the checkout says: its links lead somewhere, its pictures and names are true.

`make docs` itself fails for a link, an anchor, an object or a page of the navigation that is not
there.
"""

import re
import runpy
from pathlib import Path

import pytest

import langgraph_compaction
from langgraph_compaction import delta, middleware

ROOT = Path(__file__).parents[2]
HOOKS = runpy.run_path(str(ROOT / "docs" / "site_hooks.py"))
DIAGRAMS = runpy.run_path(str(ROOT / "docs" / "diagrams.py"))


@pytest.mark.parametrize("name", DIAGRAMS["PICTURES"])
def test_every_picture_is_the_one_that_the_code_of_today_comes_to(name: str) -> None:
    drawn = DIAGRAMS["PICTURES"][name]()
    assert (ROOT / "docs" / "assets" / name).read_text("utf-8") == drawn, (
        "python docs/diagrams.py draws it anew; look at it before it is committed"
    )


def test_the_pictures_load_nothing_and_show_something() -> None:
    for path in (ROOT / "docs" / "assets").glob("*.svg"):
        text = path.read_text("utf-8")
        links = set(re.findall(r"https?://[^\"\s<]+|url\([^)]*\)", text))
        assert links == {"http://www.w3.org/2000/svg", "url(#tip)"}
        assert "prefers-color-scheme: dark" in text
        assert text.count("<text") > 5


def test_every_public_name_stands_once_on_a_page_made_from_docstrings() -> None:
    pages = (ROOT / "docs" / "reference" / "api").glob("*.md")
    texts = [page.read_text("utf-8") for page in pages]
    shown = [path for text in texts for path in re.findall(r"^::: (\S+)$", text, re.MULTILINE)]
    public = {
        *(f"langgraph_compaction.{name}" for name in langgraph_compaction.__all__),
        *(f"langgraph_compaction.middleware.{name}" for name in middleware.__all__),
        *(f"langgraph_compaction.delta.{name}" for name in delta.__all__),
    }
    assert len(shown) == len(set(shown))
    # The shapes within the record, and of the middleware's arguments, are no names to import, and
    # yet a reader has to know them.
    shapes = ("langgraph_compaction.record.", "langgraph_compaction.arguments.")
    assert {name for name in shown if not name.startswith(shapes)} == public


def test_every_page_stands_once_in_the_navigation() -> None:
    _, _, nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")]
    named = re.findall(r": (\S+\.md)$", nav, re.MULTILINE)
    assert sorted(named) == sorted([*pages, *HOOKS["ADDED"].values()])


def test_the_index_has_the_pages_in_the_order_of_the_navigation() -> None:
    _, _, nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    named = re.findall(r": ((?:tutorial|how-to|explanation|reference)/\S+\.md)$", nav, re.MULTILINE)
    linked = re.findall(r"\]\(((?:tutorial|how-to|explanation|reference)/\S+\.md)\)", index)
    assert linked == named


def test_a_page_has_one_title_wherever_it_is_named() -> None:
    _, _, nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    links = re.findall(r"\[([^\]]+)\]\(((?!\.\.)\S+\.md)\)", index)
    titles = {page: title_of(page) for _, page in links}
    assert len(titles) > 40
    # Within a sentence of the index a title begins small.
    assert [(text, titles[page]) for text, page in links if text not in spellings(page)] == []
    named = [(text, page) for text, page in re.findall(r"- (.+): (\S+\.md)$", nav, re.MULTILINE)]
    shortened = [(text, titles[page]) for text, page in named if page in titles]
    assert len(shortened) == len(titles)
    assert [(text, title) for text, title in shortened if not shortens(text, title)] == []


def title_of(page: str) -> str:
    """The title of a page of the documentation."""
    return (ROOT / "docs" / page).read_text("utf-8").partition("\n")[0].removeprefix("# ")


def spellings(page: str) -> set[str]:
    """A page's title, as it is and with a small first letter."""
    title = title_of(page)
    return {title, title[0].lower() + title[1:]}


def shortens(text: str, title: str) -> bool:
    """Whether a text has words of a title alone, in their order."""
    words = iter(re.findall(r"\w+", title.lower()))
    return all(word in words for word in re.findall(r"\w+", text.lower()))


@pytest.mark.parametrize(
    ("page", "text", "adapted"),
    [
        ("index.md", "[README](../README.md#install)", "[README](overview.md#install)"),
        ("how-to/a.md", "[b](b.md), [c](../reference/c.md)", "[b](b.md), [c](../reference/c.md)"),
        ("how-to/a.md", "[there](#there) [out](https://a.b/c)", None),
        ("overview.md", "[index](docs/index.md)", "[index](index.md)"),
        ("overview.md", "[LICENSE](LICENSE)", '<span title="LICENSE">LICENSE</span>'),
        ("examples.md", "[pins](../docs/how-to/p.md#x)", "[pins](how-to/p.md#x)"),
        (
            "reference/g.md",
            "[`test_a`](../../tests/unit/test_a.py)",
            '<span title="tests/unit/test_a.py">`test_a`</span>',
        ),
        ("a.md", "```python notest\nf[0](x)\n```\n", "```python\nf[0](x)\n```\n"),
        ("a.md", "```text output\n1\n```", '```text title="Output"\n1\n```'),
        ("a.md", "```json\n{}\n```", None),
    ],
)
def test_links_and_fences_are_adapted(page: str, text: str, adapted: str | None) -> None:
    assert HOOKS["adapted"](text, page) == (adapted or text)


def test_public_names_in_docstrings_become_references() -> None:
    name = "<code>pin</code>"
    whole = f"<h2>{name}</h2><p>{name} <code>pins</code></p><pre>{name}</pre>"
    linked = f'<autoref identifier="langgraph_compaction.pin" optional>{name}</autoref>'
    assert HOOKS["linked_names"](whole) == whole.replace(f"<p>{name}", f"<p>{linked}")


def test_the_site_loads_nothing_from_elsewhere() -> None:
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "font: false" in settings
    assert "mermaid" not in settings  # the theme would load it from a server
    assert re.findall(r"https?://", settings) == []
