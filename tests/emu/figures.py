"""Runs whose times are to be believed, and what their interface counters say."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.rundir.files import read_lines
from mrc_testbed.testbed.rundir.packed import read_rows
from mrc_testbed.testbed.rundir.snapshot_lines import SnapshotReader
from mrc_testbed.testbed.rundir.tables import SAMPLES, Sample
from mrc_testbed.testbed.scenario import load_scenario
from tests.emu.runs import COMMAND, lateness_of
from tests.retry import Inconclusive

LESSONS = Path(__file__).parents[2] / "scenarios/lessons"
Part = tuple[float, float]
"""A part of a run, from and to, ns."""


def shipped_run(name: str, out: Path, *changes: str, moved: dict[str, str] | None = None) -> RunRecord:
    """A shipped scenario, changed. `moved`: windows (and bounds) of its expectations that are others in the shortened
    run; each must occur, so that none is forgotten."""
    lines = [line.text for line in load_scenario(name).expect]
    for old, new in (moved or {}).items():
        assert any(old in line for line in lines), old
        lines = [line.replace(old, new) for line in lines]
    return run_that_kept_time(Path(name), out, *changes, "expect=" + json.dumps(lines))


def run_that_kept_time(scenario: Path, out: Path, *changes: str) -> RunRecord:
    """Run a scenario, with `--set` changes, of its variants MRC alone; all its checks must pass. Raises Inconclusive
    when the machine was late."""
    options = [word for change in changes for word in ("--set", change)]
    if load_scenario(scenario).variants:
        options += ["--variants", "mrc"]
    command = [*COMMAND, "run", str(scenario), "--out", str(out), *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1, 3), ran.stdout + ran.stderr
    verdict_file = out / "latest" / "verdict.json"
    verdict = json.loads(verdict_file.read_text(encoding="utf-8"))
    failed = [check["name"] for check in verdict["checks"] if check["status"] == "fail"]
    assert not failed, f"{', '.join(failed)}\n{ran.stdout}"
    late = ", ".join(lateness_of(verdict))
    if late:
        raise Inconclusive(f"{scenario.name}: {late}")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return load_record(verdict_file.parent)


def events(record: RunRecord, name: str) -> list[dict[str, Any]]:
    """Lines of events.jsonl."""
    lines = read_lines(record.folder / "events.jsonl")
    return [event for event in map(SnapshotReader().whole, lines) if event["event"] == name]


class Traffic:
    """What the ports of a run carried in a part of it, by its samples. Ports are numbered by their planes."""

    def __init__(self, record: RunRecord) -> None:
        self._samples: dict[tuple[str, int], list[Sample]] = {}
        for sample in read_rows(record.folder, SAMPLES):
            port = sample.port.removeprefix("port")
            if port.isdigit():
                self._samples.setdefault((sample.node, int(port)), []).append(sample)

    def _inside(self, node: str, plane: int, part: Part) -> list[Sample]:
        inside = [sample for sample in self._samples[node, plane] if part[0] <= sample.t_ns <= part[1]]
        assert len(inside) > 4, f"{node}: too few samples to say anything"
        return inside

    def packets_sent(self, node: str, plane: int, part: Part) -> int:
        """Packets of any kind."""
        inside = self._inside(node, plane, part)
        return inside[-1].tx_packets - inside[0].tx_packets

    def usual_bps(self, column: str, node: str, planes: Iterable[int], part: Part) -> float:
        """Bits a second over these ports, the median over the times between samples. Such a time holds the end of a
        phase or not, and how long hosts compute at that end is not the network's doing."""
        ports = [self._inside(node, plane, part) for plane in planes]
        totals = [(rows[0].t_ns, sum(getattr(row, column) for row in rows)) for rows in zip(*ports, strict=True)]
        rates = [(more - less) * 8e9 / (later - earlier) for (earlier, less), (later, more) in pairwise(totals)]
        return float(median(rates))
