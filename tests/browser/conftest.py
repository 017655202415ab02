"""Pages as a person sees them: headless Chromium, with nothing but the page's own files to be had."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.find import browser_path

HERE = Path(__file__).parent
OpenPage = Callable[..., Page]

# Chromium's own traffic to its maker, its sandbox (refused to root) and shared memory (small in containers) are off.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is a browser test. Without a browser it is skipped for a person, a failure in CI."""
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    for item in ours:
        item.add_marker(pytest.mark.browser)
    if ours and not os.environ.get("CI") and not browser_path():
        for item in ours:
            item.add_marker(pytest.mark.skip(reason="needs Chromium: run `make test`, which installs it"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser_path(), args=list(_FLAGS))
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """`open_page(file_or_url, dark=False, width=1280, height=900)`: a page of its own, loaded.

    The test fails when a page says anything on its console, throws, or asks for what is neither a file nor on
    localhost.
    """
    wrong: list[str] = []
    contexts = []

    def opened(where: Path | str, dark: bool = False, width: int = 1280, height: int = 900) -> Page:
        scheme: Literal["dark", "light"] = "dark" if dark else "light"
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": height}, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"thrown: {error}"))
        page.on("request", lambda request: None if _is_local(request.url) else wrong.append(f"asked: {request.url}"))
        page.goto(where.resolve().as_uri() if isinstance(where, Path) else where)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


def _is_local(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:", "http://localhost:"))
