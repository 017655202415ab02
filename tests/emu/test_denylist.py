"""Denied paths on a whole testbed: from the start, and by a controller in mid-run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.rundir.snapshot_lines import SnapshotReader
from tests.emu.runs import Run

DENYLIST = """
endpoint: {denylist: [p0-t1-1, {path: p1-t1-0, hosts: [h1]}]}
"""
DENY = """
faults:
  - {at: 1s, deny: [p0-t1-0, p1], for: 1500ms, name: controller}
"""


def events(run: Run, name: str) -> list[dict[str, Any]]:
    """The events of this name, of all hosts."""
    lines = [json.loads(line) for line in (run.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line for line in map(SnapshotReader().whole, lines) if line["event"] == name]


def data_packets(run: Run) -> dict[tuple[str, str], int]:
    """Data packets of each host on each path (`plane/uplink`) to its one peer."""
    hosts = json.loads((run.folder / "counters.json").read_text(encoding="utf-8"))["hosts"]
    return {
        (host, path): packets
        for host, figures in hosts.items()
        for paths in figures["paths"].values()
        for path, packets in paths.items()
    }


@pytest.mark.nightly
def test_denied_from_the_start_a_path_carries_no_data_and_the_others_do(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=5, extra=DENYLIST)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    packets = data_packets(run)
    denied = {("h0", "0/1"), ("h1", "0/1"), ("h1", "1/0")}
    assert len(packets) == 8
    assert {path for path, count in packets.items() if count == 0} == denied
    changes = events(run, "ev_state")
    assert {(one["host"], f"{one['plane']}/{one['uplink']}") for one in changes if one["to"] == "DENIED"} == denied
    # Planes stay equal to within a packet per write: the plane with a denied path sends as much over the other.
    for host in ("h0", "h1"):
        planes = [sum(count for (of, path), count in packets.items() if of == host and path[0] == p) for p in "01"]
        assert abs(planes[0] - planes[1]) <= 0.02 * sum(planes), planes


@pytest.mark.nightly
def test_a_controller_denies_and_allows_in_mid_run(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=24, extra=DENY)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    done = {(line["op"], line["type"]): line["t_ns"] for line in run.history() if line.get("fault") == "controller"}
    assert set(done) == {(op, outcome) for op in ("inject", "heal") for outcome in ("invoke", "ok")}
    paths = {(host, plane, uplink) for host in ("h0", "h1") for plane, uplink in ((0, 0), (1, 0), (1, 1))}
    lives: dict[tuple[Any, ...], list[dict[str, Any]]] = {path: [] for path in paths}
    for change in events(run, "ev_state"):
        lives.setdefault((change["host"], change["plane"], change["uplink"]), []).append(change)
    for path in paths:
        states = [(one["from"], one["to"], one["trigger"]) for one in lives[path]]
        at = next(place for place, state in enumerate(states) if state[1] == "DENIED")
        leaving, allowed, restored = lives[path][at : at + 3]
        assert states[at + 1 : at + 3] == [
            ("DENIED", "ASSUMED_BAD", "allow"),
            ("ASSUMED_BAD", "GOOD", "probes_passed"),
        ], states
        # All that was sent on it left before the endpoint said that it was done.
        assert leaving["last_tx_ns"] == allowed["last_tx_ns"] == restored["last_tx_ns"]
        assert 0 < leaving["last_tx_ns"] <= done["inject", "ok"]
    assert "inject controller: deny p0-t1-0, p1" in run.output
