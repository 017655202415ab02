"""Commands that people are told to type work: nothing names a package that no index has, or a tag that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrc_testbed.testbed import version

ROOT = Path(__file__).parents[3]
READ = (
    *("README.md", "CONTRIBUTING.md", "docs/**/*.md", "changelog.d/*.md"),
    *("scenarios/**/*", "testbed/**/*.py", "action/*", ".github/**/*.yml", "tools/*"),
)
HISTORY = ROOT / "docs/decisions"
"""Says why things are so, and not what to type."""
INSTALLS = r"(?:pipx (?:run|install)|uvx|uv tool (?:run|install)|uv add|pip3? install)\b"
INDEX = re.compile(
    rf"{INSTALLS}(?! '?\.)(?![^\n]*(?:--spec|--from) \.)[^\n`&;]*?(?<![\w./-])'?{version.NAME}(?![\w/-])"
)
TAG = re.compile(rf"{version.NAME}(?:/action)?@v\d|action@v\d+\.\d+\.")


def unpublished(text: str) -> list[str]:
    """Commands that work only when a version is published."""
    return [line.strip() for line in text.splitlines() if INDEX.search(line) or TAG.search(line)]


def pages() -> Iterator[Path]:
    for pattern in READ:
        for path in ROOT.glob(pattern):
            if path.is_file() and HISTORY not in path.parents and path.suffix in ("", ".md", ".py", ".yml", ".yaml"):
                yield path


@pytest.mark.skipif(version.PUBLISHED, reason="a version is published")
def test_no_command_needs_what_is_not_published() -> None:
    found = {str(page.relative_to(ROOT)): unpublished(page.read_text(encoding="utf-8")) for page in pages()}
    found["testbed/version.py"] = []
    assert {page: lines for page, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("line", "works"),
    [
        ("pipx run mrc-testbed run quickstart", False),
        ("uvx mrc-testbed run quickstart", False),
        ("pip install 'mrc-testbed[otel]'", False),
        ("pip install --upgrade mrc-testbed", False),
        ("- uses: OWNER/mrc-testbed/action@v0.2.0", False),
        ("pip install git+https://example.org/mrc-testbed@v0.3.0", False),
        ("pipx run --spec . mrc-testbed run quickstart", True),
        ("uvx --from . mrc-testbed run quickstart", True),
        ("pip install '.[otel]' in a clone of mrc-testbed", True),
        ("pip install . && mrc-testbed run quickstart --virtual", True),
        ("pip install mrc_testbed-0.3.0-py3-none-any.whl", True),
        ("- uses: OWNER/mrc-testbed/action@main", True),
        ("- uses: actions/checkout@v4", True),
    ],
)
def test_what_needs_it_is_found(line: str, works: bool) -> None:
    assert (not unpublished(line)) is works
