"""Every test that docs/trust.md names exists, and each promise names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| promise |")]
NAMED = re.compile(r"`(?:(tests(?:/\w+)+\.py)(?:::(\w+))?|(test_\w+))`")
"""A file of tests, one of its tests, or another test of the file named before it."""


@pytest.mark.parametrize("row", ROWS, ids=[row[2:40] for row in ROWS])
def test_each_promise_names_tests_that_exist(row: str) -> None:
    named = NAMED.findall(row.rpartition(" | ")[2])
    assert named, "no test"
    file = ""
    for path, test, sibling in named:
        file = path or file
        assert (ROOT / file).is_file(), file
        name = test or sibling
        assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no {name}"


def test_tests_outside_of_tables_exist_too() -> None:
    prose = "\n".join(line for line in TEXT.splitlines() if line not in ROWS)
    for path, test, sibling in NAMED.findall(prose):
        assert not sibling
        assert not test or f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")
