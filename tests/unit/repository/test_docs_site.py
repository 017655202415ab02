"""The site of the documentation: every page is in its navigation, nothing is lost in it, it needs no other server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from ruamel.yaml import YAML

from tests.built_site import ROOT, built_site

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SECTIONS = ["Start", "Use", "Learn", "Reference", "Trust", "Develop"]
COUNTED = ("h1", "h2", "h3", "ul", "ol", "li", "th", "td", "pre", "img", "blockquote", "em", "strong")
LOADED = re.compile(r'<(?:link|script|img|iframe|source)\b[^>]*?\b(?:src|href)="?((?:https?:)?//[^">\s]+)')


def config() -> dict[str, Any]:
    read: dict[str, Any] = YAML(typ="safe").load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return read


def in_navigation(item: Any) -> Iterator[str]:
    """Pages, with those of a folder."""
    if isinstance(item, str):
        yield from [str(page.relative_to(DOCS)) for page in (DOCS / item).glob("*.md")] if item[-1] == "/" else [item]
    for each in item.values() if isinstance(item, dict) else item if isinstance(item, list) else ():
        yield from in_navigation(each)


def test_every_page_is_in_the_navigation_once() -> None:
    nav = config()["nav"]
    assert [title for section in nav for title in section] == SECTIONS
    named = [page for page in in_navigation(nav) if not page.startswith(("index.md", "source/"))]
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory)


def counts(html: str) -> dict[str, int]:
    return {tag: len(re.findall(rf"<{tag}[ >]", html)) for tag in COUNTED}


@pytest.mark.slow
@pytest.mark.nightly
def test_a_page_has_what_its_markdown_has(site: Path) -> None:
    """Lists, cells and code blocks that another reader of Markdown sees."""
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    wrong = {}
    for page in [ROOT / "README.md", *PAGES]:
        text = page.read_text(encoding="utf-8")
        if "```mermaid" in text:
            continue  # becomes tables
        place = page.relative_to(DOCS) if page.is_relative_to(DOCS) else page.relative_to(ROOT)
        html = site.joinpath(place.with_name("index.html") if place.stem == "README" else place.with_suffix(".html"))
        article = html.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
        if (there := counts(article)) != (asked := counts(reader.render(text))):
            wrong[str(place)] = {tag: (asked[tag], there[tag]) for tag in COUNTED if asked[tag] != there[tag]}
    assert wrong == {}


@pytest.mark.slow
def test_no_page_loads_anything_from_another_server(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    loaded = {page.name: found for page in pages if (found := LOADED.findall(page.read_text(encoding="utf-8")))}
    assert loaded == {}
    styles = [sheet for sheet in site.rglob("*.css") if re.search(r"(?:@import|url\()\W*https?:", sheet.read_text())]
    assert styles == []
    assert not [page for page in pages if 'class="mermaid"' in page.read_text(encoding="utf-8")]


@pytest.mark.slow
def test_files_outside_docs_have_pages(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    assert "source/LICENSE.html" in home
    listing = (site / "source/scenarios/stories/slow-plane.yaml.html").read_text(encoding="utf-8")
    first = (ROOT / "scenarios/stories/slow-plane.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first in unescape(re.sub(r"<[^>]+>", "", listing))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [("[x](nowhere.md)", "nowhere.md"), ("[x](trust.md#no-such-heading)", "#no-such-heading")],
)
def test_a_broken_link_ends_the_build(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# Home\n\n{text}\n", encoding="utf-8")
    (tmp_path / "docs/trust.md").write_text("# Trust\n", encoding="utf-8")
    written = config() | {"hooks": [], "nav": ["index.md", "trust.md"], "extra_css": []}
    YAML(typ="safe").dump(written, tmp_path / "mkdocs.yml")
    command = [sys.executable, "-m", "mkdocs", "build"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert said in done.stderr
