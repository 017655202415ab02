"""The column of docs/paper.md that comes from a pack (benchmarks/paper.py)."""

from __future__ import annotations

from typing import Any

from benchmarks.paper import DOCUMENT, HEADING, with_column

BEFORE = """# Figures

| figure | the paper reports | observed here (`run`) | verdict |
|---|---|---|---|
| table of 4.2 | 96 % | 96 \\| 97 | holds |
| 12, 13 | at once | soon | holds |
| 18a, b | RoCE | neither | not shown |

| figure | first |
|---|---|
| 12 | 1 |
"""


def ran(figure: str, *observed: str, verdict: str = "pass") -> dict[str, Any]:
    about = {"file": f"x/fig{figure.split()[-1]}.yaml", "reason": f"{verdict}ed: all"}
    return {"figure": figure, **about, "verdict": verdict, "observed": observed}


RUNS = [
    ran("table 4.2", "latency.median 5 us"),
    ran("12, 13 mrc", "packets_lost 1, run", "timeouts 0", verdict="fail"),
    ran("12, 13 roce-1", "timeouts 99"),
]


def test_each_figure_has_what_mrc_came_to_before_its_verdict() -> None:
    lines = with_column(BEFORE, RUNS).splitlines()
    assert lines[2] == f"| figure | the paper reports | observed here (`run`) | {HEADING} | verdict |"
    assert lines[3] == "|---|---|---|---|---|"
    assert lines[4] == "| table of 4.2 | 96 % | 96 \\| 97 | `fig4.2.yaml`: latency.median 5 us | holds |"
    assert lines[5].endswith("| soon | `figmrc.yaml`: packets_lost 1 run, timeouts 0 (**failed: all**) | holds |")
    assert lines[6].endswith("| neither | not shown | not shown |")
    assert lines[8:] == BEFORE.splitlines()[8:]


def test_another_pack_takes_the_place_of_the_first() -> None:
    once = with_column(BEFORE, RUNS)
    assert with_column(once, RUNS) == once


def test_the_document_has_the_table_that_is_looked_for() -> None:
    assert with_column(DOCUMENT.read_text(encoding="utf-8"), []).count(f"| {HEADING} |") == 1
