"""Every test that docs/trust.md names exists, and each promise names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
ITEMS = re.findall(r"^- .*\n(?:  .*\n)*", TEXT, re.MULTILINE)
NAMED = re.compile(r"`(?:(tests(?:/\w+)+\.py)(?:::(\w+))?|(test_\w+))`")
"""A file of tests, one of its tests, or another test of the file named before it."""


@pytest.mark.parametrize("item", ITEMS, ids=[item[2:40] for item in ITEMS])
def test_each_promise_names_tests_that_exist(item: str) -> None:
    named = NAMED.findall(item)
    assert named, "no test"
    file = ""
    for path, test, sibling in named:
        file = path or file
        assert (ROOT / file).is_file(), file
        name = test or sibling
        assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no {name}"


def test_tests_outside_of_tables_exist_too() -> None:
    prose = re.sub("|".join(map(re.escape, ITEMS)), "", TEXT)
    for path, test, sibling in NAMED.findall(prose):
        assert not sibling
        assert not test or f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")
