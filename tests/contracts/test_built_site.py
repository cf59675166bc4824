"""The built site holds together without a server, without a network and without a browser's help.

What a browser shows was looked at by eye. What can be read off the files is checked here: nothing
is loaded from elsewhere, each link and anchor leads somewhere, and the search has every page, also
where a page is opened as a file.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

import langgraph_compaction

ROOT = Path(__file__).parents[2]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}
"""Elements that make a browser load something at once, and where they say what."""
NO_PAGE = {"404.html"}
"""Made for servers: its addresses begin at the root of one."""
ELSEWHERE = ("http://", "https://", "mailto:", "javascript:")


@dataclass
class Page(HTMLParser):
    """What a page loads, where its links lead, and what of it can be linked to.

    Attributes:
        loaded: addresses that the browser asks for when the page is opened.
        links: addresses that a reader may follow.
        ids: every id, as often as it is there.
        headings: how many of level one there are.
        tables: rows of each table, as the numbers of their cells.
        blind: pictures without words for those who do not see them.
    """

    loaded: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: Counter[str] = field(default_factory=Counter)
    headings: int = 0
    tables: list[list[int]] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag says."""
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.ids[values["id"]] += 1
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") in {"stylesheet", "icon", "preload", "preconnect"}:
            self.loaded.append(values["href"])
        if LOADED.get(tag) in values:
            self.loaded.append(values[LOADED[tag]])
        if tag == "img" and not values.get("alt"):
            self.blind.append(values.get("src", ""))
        self.headings += tag == "h1"
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append(0)
        elif tag in {"td", "th"}:
            self.tables[-1][-1] += 1


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    file = str(ROOT / "mkdocs.yml")
    # Nothing is watched: the sources need not be there, only an installed package.
    config = load_config(file, site_dir=str(folder), strict=True, watch=[])
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    config.plugins.on_shutdown()
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Every page of it, by its path."""
    found = {}
    for path in sorted(site.rglob("*.html")):
        page = Page()
        page.feed(path.read_text("utf-8"))
        found[path.relative_to(site).as_posix()] = page
    assert len(found) > 50
    return found


def test_a_page_loads_only_what_the_site_has(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        if name in NO_PAGE:
            continue
        assert page.loaded
        missing = [
            address
            for address in page.loaded
            if "//" in address or not (site / name).parent.joinpath(address).exists()
        ]
        assert missing == [], name


def test_no_style_sheet_loads_from_elsewhere(site: Path) -> None:
    styles = [path.read_text("utf-8") for path in site.rglob("*.css")]
    assert len(styles) > 2
    assert [text for text in styles if "url(http" in text or "@import" in text] == []


def test_every_link_leads_to_a_page_and_an_anchor(site: Path, pages: dict[str, Page]) -> None:
    broken = [
        (name, link)
        for name, page in pages.items()
        if name not in NO_PAGE
        for link in page.links
        if not link.startswith(ELSEWHERE) and not leads(site, pages, name, link)
    ]
    assert broken == []


def leads(site: Path, pages: dict[str, Page], name: str, link: str) -> bool:
    """Whether a link of a page leads to a page, and to an anchor in it."""
    path, anchor = urldefrag(link)
    target = site.joinpath(name).parent.joinpath(unquote(path)) if path else site / name
    if target.is_dir():
        target /= "index.html"
    page = pages.get(target.resolve().relative_to(site.resolve()).as_posix())
    return page is not None and (not anchor or unquote(anchor) in page.ids)


def test_a_page_has_one_title_and_no_id_twice(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert page.headings == 1, name
        assert [id_ for id_, times in page.ids.items() if times > 1] == [], name
        assert page.blind == [], name


def test_every_row_of_a_table_has_as_many_cells_as_its_head(pages: dict[str, Page]) -> None:
    assert sum(len(page.tables) for page in pages.values()) > 50
    for name, page in pages.items():
        for rows in page.tables:
            assert len(set(rows)) == 1, (name, rows)


def test_the_search_knows_every_page_and_needs_no_server(
    site: Path, pages: dict[str, Page]
) -> None:
    assigned = (site / "search" / "search_index.js").read_text("utf-8")
    index = json.loads(assigned.removeprefix("var __index = "))
    found = {urldefrag(entry["location"])[0] for entry in index["docs"]}
    assert found == set(pages) - NO_PAGE
    # Browsers refuse workers to pages that are opened as files; this stands in for them.
    assert all(any(a.endswith("assets/iframe-worker.js") for a in p.loaded) for p in pages.values())


def test_every_public_name_can_be_linked_to(pages: dict[str, Page]) -> None:
    ids = Counter[str]()
    for name, page in pages.items():
        if name.startswith("reference/api/"):
            ids += page.ids
    names = {f"langgraph_compaction.{name}" for name in langgraph_compaction.__all__}
    assert names - ids.keys() == set()
