"""docs/notebook.md is true: its code runs, and prints what is shown below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from mrc_testbed.testbed.rundir.results import point_latest
from tests.unit.recorded import record_run

PAGE = Path(__file__).parents[3] / "docs" / "notebook.md"
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<printed>.*?)```\n)?", re.S)


def executed(page: str) -> str:
    """The page with what its blocks print now, one after the other in one namespace."""
    names: dict[str, object] = {}

    def run(block: re.Match[str]) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block["code"], str(PAGE), "exec"), names)
        printed = "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())
        return f"```python\n{block['code']}```\n\n```text\n{printed}```\n"

    return BLOCK.sub(run, page)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run that the page is about."""
    monkeypatch.chdir(tmp_path)
    point_latest(record_run(Path("results") / "20260101T120000Z-small"))
    return tmp_path


def test_the_page_prints_what_it_says(results: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(BLOCK.findall(page)) > 9
    assert executed(page) == page
