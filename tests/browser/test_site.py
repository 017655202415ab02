"""The site of the documentation, opened from its folder: fits a telephone, and finds words without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.built_site import built_site

pytestmark = pytest.mark.slow

PAGES = ["index", "commands", "scenario", "results", "stories", "glossary", "api", "protocol", "decisions/index"]
HEIGHT = 844


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.nightly
def test_no_page_is_wider_than_the_screen(site: Path, open_page: OpenPage, width: int) -> None:
    page = open_page(site / "index.html", width=width, height=HEIGHT)
    for name in PAGES:
        page.goto((site / f"{name}.html").as_uri())
        expect(page.locator("article h1")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == width, name


def test_words_are_found_in_a_folder(site: Path, open_page: OpenPage) -> None:
    page = open_page(site / "index.html")
    asked = page.locator("input.md-search__input")
    asked.press_sequentially("uSID")
    expect(page.locator(".md-search-result__item").first).to_be_visible()
    asked.press_sequentially("qwertyuiop")
    expect(page.locator(".md-search-result__meta")).to_have_text("No matching documents")
