"""Which browser the tests use: the system's Chromium or Chrome, or the one that playwright has downloaded."""

from __future__ import annotations

import shutil
from pathlib import Path

_NAMES = ("chromium", "google-chrome-stable", "google-chrome")
"""Not `chromium-browser`: on Ubuntu that only starts a snap."""


def browser_path() -> str:
    """Its executable; empty when there is none."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), "")
    return found or _downloaded()


def _downloaded() -> str:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else ""


if __name__ == "__main__":
    print(browser_path())  # noqa: T201
