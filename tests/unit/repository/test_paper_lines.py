"""The lines of docs/paper.md that come from a pack (benchmarks/paper.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.paper import DOCUMENT, HEADING, WIDTH, with_lines
from tests.unit.calls import Call

BEFORE = """# Figures

- **table of 4.2**: 96 %.
  - Here: 96 | 97,
    twice.
  - Verdict: holds.
- **12, 13**: at once.
  - Here: soon.
  - Verdict: holds.
- **18a, b**: RoCE.
  - Here: neither.
  - Verdict: not shown.

- **Bins**: of 1 s,
  without a verdict.
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
    lines = with_lines(BEFORE, RUNS).splitlines()
    assert lines[5:7] == ["  - At 100 Gb/s: `fig4.2.yaml`: latency.median 5 us.", "  - Verdict: holds."]
    assert lines[9] == "  - At 100 Gb/s: `figmrc.yaml`: packets_lost 1 run, timeouts 0 (**failed: all**)."
    assert lines[13] == "  - At 100 Gb/s: not shown."
    assert [line for line in lines if HEADING not in line] == BEFORE.splitlines()


def test_another_pack_takes_the_place_of_the_first() -> None:
    once = with_lines(BEFORE, [ran("12, 13 mrc", *(f"packets_lost {n}" for n in range(20))), *RUNS[:1]])
    assert max(map(len, once.splitlines())) <= WIDTH
    assert with_lines(once, RUNS) == with_lines(BEFORE, RUNS)


def test_the_document_has_the_line_for_every_figure() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    elsewhere = text.count(f"  - {HEADING} [")
    assert with_lines(text, []).count(f"  - {HEADING} not shown.") == text.count(f"  - {HEADING}") - elsewhere > 20


def test_a_figure_that_has_a_section_of_its_own_keeps_the_link_to_it() -> None:
    item = f"- **18a, b**: RoCE.\n  - {HEADING} [below](#below).\n  - Verdict: [below](#below).\n"
    assert with_lines(item, [ran("18a", "goodput 1 line")]) == item


def test_lines_of_the_document_are_what_runs_show(call: Call, tmp_path: Path) -> None:
    """Of the quick ones: a change that moves figures of the paper has to bring its lines up to date."""
    call("paper", "--only", "14,19c", "--virtual", "--scale", "real", "--out", str(tmp_path))
    runs = json.loads(next(tmp_path.glob("*-paper/paper.json")).read_text())["runs"]
    assert {run["figure"] for run in runs} == {"14", "19c"}
    shown = with_lines(DOCUMENT.read_text(encoding="utf-8"), runs)
    lines = {line for line in shown.splitlines() if "`fig14.yaml`:" in line or "`fig19c.yaml`: goodput" in line}
    assert len(lines) == 2
    assert lines <= set(DOCUMENT.read_text(encoding="utf-8").splitlines())
