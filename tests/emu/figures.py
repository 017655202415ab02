"""Runs whose times are to be believed, and what their interface counters say."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.checks.files import read_csv, read_lines
from testbed.checks.record import RunRecord, load_record
from tests.emu.runs import COMMAND

LESSONS = Path(__file__).parents[2] / "scenarios/lessons"
ATTEMPTS = 3
"""A machine that is busy for a moment gets another chance; one that always is fails the test: unknown is no pass."""


def run_that_kept_time(scenario: Path, out: Path, *changes: str) -> RunRecord:
    """Run a scenario, with `--set` changes, until the machine has kept time; all its checks must pass then."""
    options = [word for change in changes for word in ("--set", change)]
    late = []
    for attempt in range(ATTEMPTS):
        folder = out / str(attempt)
        command = [*COMMAND, "run", str(scenario), "--out", str(folder), *options]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode in (0, 1, 3), ran.stdout + ran.stderr
        (verdict_file,) = folder.glob("*/verdict.json")
        verdict = json.loads(verdict_file.read_text(encoding="utf-8"))
        failed = [check["name"] for check in verdict["checks"] if check["status"] == "fail"]
        assert not failed, f"{', '.join(failed)}\n{ran.stdout}"
        if verdict["fidelity"]["ok"]:
            assert ran.returncode == 0, ran.stdout + ran.stderr
            return load_record(verdict_file.parent)
        late.append(", ".join(_late(verdict["fidelity"])))
    pytest.fail(f"{scenario.name}: the machine kept time in none of {ATTEMPTS} runs, so nothing is known: {late}")


def _late(fidelity: dict[str, Any]) -> Iterator[str]:
    yield from (f"{row['name']} {row['observed']} {row['unit']}" for row in fidelity["figures"] if not row["ok"])
    if fidelity["caveat"]:
        yield fidelity["caveat"]


def events(record: RunRecord, name: str) -> list[dict[str, Any]]:
    """Lines of events.jsonl."""
    return [event for event in read_lines(record.folder / "events.jsonl") if event["event"] == name]


@dataclass(frozen=True)
class Sample:
    """The counters of one port at a time."""

    t_ns: int
    rx_bytes: int
    tx_bytes: int
    tx_packets: int


class Traffic:
    """What the ports of a run carried between two moments, from the samples nearest inside."""

    def __init__(self, record: RunRecord) -> None:
        self._ports: dict[tuple[str, str], list[Sample]] = {}
        for row in read_csv(record.folder / "samples.csv"):
            sample = Sample(*(int(row[key]) for key in ("t_ns", "rx_bytes", "tx_bytes", "tx_packets")))
            self._ports.setdefault((row["node"], row["port"]), []).append(sample)

    def _ends(self, node: str, port: str, begin_ns: float, end_ns: float) -> tuple[Sample, Sample]:
        inside = [sample for sample in self._ports[node, port] if begin_ns <= sample.t_ns <= end_ns]
        assert len(inside) > 3, f"{node} {port}: too few samples to say anything"
        return inside[0], inside[-1]

    def sent_packets(self, node: str, port: str, begin_ns: float, end_ns: float) -> int:
        """Packets of any kind."""
        first, last = self._ends(node, port, begin_ns, end_ns)
        return last.tx_packets - first.tx_packets

    def sent_bps(self, node: str, port: str, begin_ns: float, end_ns: float) -> float:
        """Bits a second."""
        first, last = self._ends(node, port, begin_ns, end_ns)
        return (last.tx_bytes - first.tx_bytes) * 8e9 / (last.t_ns - first.t_ns)

    def arrived_bps(self, node: str, port: str, begin_ns: float, end_ns: float) -> float:
        """Bits a second."""
        first, last = self._ends(node, port, begin_ns, end_ns)
        return (last.rx_bytes - first.rx_bytes) * 8e9 / (last.t_ns - first.t_ns)
