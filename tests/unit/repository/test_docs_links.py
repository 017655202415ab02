"""Links of the documentation lead somewhere, and README.md stays a page that is read at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mrc_testbed.testbed.scenario import load_scenario

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = ("hosts", "testbed", "topos", "tests/emu", "tests/sim", "tools", "benchmarks")
THREE_SCREENS = 120
"""Lines."""


def anchors(page: Path) -> set[str]:
    """Of the headings of a Markdown page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page: Path) -> list[str]:
    """Targets of links and pictures, without those of other sites and those in code."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_to_a_heading(page: Path) -> None:
    for target in links(page):
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def named_by_code() -> set[tuple[str, str]]:
    """Pages that docstrings and comments name, each with the heading in quotes behind it ("" if none)."""
    code = [file for room in CODE for file in (ROOT / room).rglob("*") if file.suffix in {".py", ".c", ".h"}]
    texts = (re.sub(r"\s+", " ", file.read_text(encoding="utf-8")) for file in code)
    return {match for text in texts for match in re.findall(r'\b(docs/[\w./-]+\.md)\b(?:, "([^"]+)")?', text)}


def test_every_page_and_heading_that_code_names_is_there() -> None:
    named = named_by_code()
    assert {page for page, _ in named} >= {"docs/protocol.md", "docs/switch.md"}
    assert not {page for page, _ in named if not (ROOT / page).exists()}
    headings = {page: re.findall(r"^#+ (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.M) for page, _ in named}
    assert not {(page, title) for page, title in named if not any(it.startswith(title) for it in headings[page])}


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [README]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        pages = {(page.parent / target.partition("#")[0]).resolve() for target in links(page) if ".md" in target}
        waiting += pages - reached - set(waiting)
    assert set(PAGES) <= reached


def test_the_readme_has_three_screens_and_its_make_targets_are_there() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= THREE_SCREENS
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake ((?:demo|setup|test)[\w-]*)", text):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_scenario_of_the_readme_is_sound(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S)
    file = tmp_path / "my.yaml"
    file.write_text(text, encoding="utf-8")
    assert load_scenario(file).expect
