"""What MkDocs asks while it builds the site: pages from outside docs/, links to them, and folders in the navigation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diagrams import tabled
from indents import ShortIndents
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from places import HOME, ROOT, linked, relinked, site_path
from pymdownx.slugs import slugify

_LISTED = {".c": "c", ".h": "c", ".json": "json", ".py": "python", ".yaml": "yaml", ".yml": "yaml"}
_UNSEARCHED = "---\nsearch: {exclude: true}\n---\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A folder in the navigation becomes its pages, README.md first. Anchors and lists are those that GitHub makes."""
    # First, for it makes the parser again.
    config.markdown_extensions.insert(0, ShortIndents())
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    config.nav = [_with_folders(item) for item in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds README.md as the home page and, under source/, what pages link to."""
    for page in files.documentation_pages():
        page.content_string = relinked(tabled(page.content_string), f"docs/{page.src_uri}")
    for place in sorted(_outside()):
        files.append(File.generated(config, site_path(place), content=_page(place)))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """The index of the search, as a script too: a page from a folder may not fetch files."""
    index = Path(config.site_dir, "search/search_index.json")
    index.with_suffix(".js").write_text(f"var __index = {index.read_text(encoding='utf-8')}", encoding="utf-8")


def _with_folders(item: Any) -> Any:
    if isinstance(item, dict):
        return {title: _with_folders(value) for title, value in item.items()}
    if isinstance(item, list):
        return [_with_folders(each) for each in item]
    if not item.endswith("/"):
        return item
    pages = sorted((ROOT / "docs" / item).glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
    return [f"{item}{page.name}" for page in pages]


def _outside() -> set[str]:
    """README.md, and every file and folder outside the pages of docs/ that a page leads to."""
    found = set[str]()
    waiting = [HOME, *(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
    seen = set(waiting)
    while waiting:
        place = waiting.pop()
        if site_path(place).startswith("source/") or place == HOME:
            found.add(place)
        new = set(_next(place)) - seen
        seen |= new
        waiting += new
    return found


def _next(place: str) -> Iterator[str]:
    if (ROOT / place).is_dir():
        yield from (f"{place}/{name}" for name in _entries(place))
    elif place.endswith(".md"):
        yield from linked((ROOT / place).read_text(encoding="utf-8"), place)


def _entries(folder: str) -> list[str]:
    """Names in a folder that have a page, in order."""
    paths = sorted((ROOT / folder).iterdir())
    return [
        path.name for path in paths if path.suffix in {".md", *_LISTED} or (path.is_dir() and path.name[0] not in "._")
    ]


def _page(place: str) -> str:
    """The Markdown of the page for a file or folder."""
    path = ROOT / place
    if path.is_dir():
        rows = [f"- [{name}]({name})" for name in _entries(place)]
        return _UNSEARCHED + relinked("\n".join([f"# {place}", "", *rows, ""]), f"{place}/index")
    text = path.read_text(encoding="utf-8")
    if place.endswith(".md"):
        return relinked(text, place)
    return f"{_UNSEARCHED}# {place}\n\n~~~~~{_LISTED.get(path.suffix, '')}\n{text}\n~~~~~\n"
