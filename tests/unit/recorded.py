"""A whole run folder as a run leaves it: the hand-made small run of checks/test_folder.py, with ports and verdict."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from mrc_testbed.testbed.app.judge import judge_folder
from mrc_testbed.testbed.rundir.planned import plan_document
from mrc_testbed.testbed.rundir.tables import FLOWS, MESSAGES, PORTS, SAMPLES, WAITS, Table
from mrc_testbed.testbed.scenario import load_scenario
from tests.unit.checks.test_folder import HOSTS, PLAN, RunFolder, at

EXPECT = ["step_time.p100 <= 1.5 x clean.median during faults", "qp_errors == 0", "recovery.p100 <= 10 rtt"]
RATE_BYTES = 2_000_000
"""What each NIC port sends in a second."""


def record_run(folder: Path, run: RunFolder | None = None) -> Path:
    """Write and judge it."""
    (folder / "logs").mkdir(parents=True)
    run = run or RunFolder(expect=EXPECT)
    run.history = [{"i": i, **line} for i, line in enumerate(run.history)]
    _complete(run.counters or {})
    run.write(folder)
    occurrences = load_scenario(folder / "scenario.yaml").occurrences
    (folder / "plan.json").write_text(json.dumps(plan_document(PLAN, occurrences)))
    waits = [(host, step, "h0", 3_000_000) for step in range(8) for host in HOSTS[1:]]
    for table, rows in ((SAMPLES, _samples()), (PORTS, _ports()), (WAITS, waits)):
        _write(folder, table, rows)
    judge_folder(folder, Console(quiet=True), quiet=True)
    return folder


def _complete(counters: dict[str, Any]) -> None:
    """Each rank writes to the next one, over both planes."""
    for index, host in enumerate(HOSTS):
        peer = HOSTS[(index + 1) % len(HOSTS)]
        uplinks = ("0",) if peer in ("h1", "h3") else ("0", "1")
        paths = {f"{plane}/{uplink}": 60 // len(uplinks) for plane in (0, 1) for uplink in uplinks}
        qps = {f"{index}>{peer[1:]}/allreduce/0": {"peer": peer, "sent": 120, "lost": 3}}
        lateness = {"wakeups": 900, "p50_ns": 70_000, "p99_ns": 300_000, "max_ns": 3_000_000}
        counters["hosts"][host] |= {"paths": {peer: paths}, "qps": qps, "lateness": lateness}
    for port in counters["queues"]["p0-t0-0"].values():
        port["control_drops"] = 0


def add_flows(folder: Path) -> None:
    """What flows would have left, a second of one with two QPs."""
    flows = [
        ("h2", "h0->h2", qp, at(n / 10), at((n + 1) / 10), 50_000, 5, 0, int(n == 9))
        for n in range(10)
        for qp in (0, 1)
    ]
    messages = [("h0", "h0->h2", n % 2, at(n / 10), 30_000_000 + n) for n in range(1, 11)]
    _write(folder, FLOWS, flows)
    _write(folder, MESSAGES, messages)


def _write(folder: Path, table: Table, rows: Sequence[tuple[int | str, ...]]) -> None:
    (folder / table.file).write_text("".join(",".join(map(str, row)) + "\n" for row in (table.names, *rows)))


def _samples() -> list[tuple[int | str, ...]]:
    """Five a second; plane 0 of h0 carries nothing while the link is down."""
    rows: list[tuple[int | str, ...]] = []
    for n in range(42):
        for node in HOSTS:
            for port in range(2):
                lost_s = min(max(n / 5 - 3.5, 0), 1) if (node, port) == ("h0", 0) else 0
                sent = int(RATE_BYTES * (n / 5 - lost_s))
                rows.append((at(n / 5), node, f"port{port}", sent, sent // 4238, 0, sent, sent // 4238, 0))
    return rows


def _ports() -> list[tuple[int | str, ...]]:
    """Trims at the port to h2 all the time, and marks at the uplink that had to take over."""
    at_host = [(at(n), "p0-t0-1", "down0", 0, n // 2, 0, 0, 0) for n in range(1, 9)]
    at_uplink = [(at(3.6 + n / 5), "p0-t0-0", "up0", 12 * n, 0, 0, 0, 0) for n in range(1, 6)]
    return sorted([*at_host, *at_uplink])
