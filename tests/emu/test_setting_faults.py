"""Wrong entries of tables, wrong levels of ports and hindered hosts on the kernel, in one whole run."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.emu.test_denylist import events
from tests.emu.test_switch_faults import fault, finished, history, ports, retired

LINK, OTHER = "p0-t0-0:p0-t1-1", "p0-t0-0:p0-t1-0"


@pytest.mark.nightly
def test_tables_levels_and_hosts(tmp_path: Path) -> None:
    lines = [
        fault(f"at: 300ms, entry-missing: '{LINK}', direction: up, for: 400ms", "missing"),
        fault(f"at: 1s, cables-swapped: '{LINK}', with: '{OTHER}', for: 400ms", "cables"),
        fault("at: 1600ms, ecn-stuck: p0-t0-0, marks: always, for: 300ms", "stuck"),
        fault("at: 1700ms, shallow-buffer: p0-t1-0, drop: 0.3, for: 300ms", "shallow"),
        fault("at: 1700ms, trim-off: p0-t0-1, for: 300ms", "untrimmed"),
        fault("at: 2100ms, host-pause: h1, for: 300ms", "pause"),
        fault("at: 2500ms, host-slow: h0, per_packet: 500us, for: 300ms", "slow"),
    ]
    run = finished(tmp_path, lines, steps=40)
    assert len(history(run, "read-back", "ok")) == 5, "hosts are no part of the fabric"
    no_routes = json.loads((run.folder / "fidelity.json").read_text(encoding="utf-8"))["no_routes"]
    assert {"p0-t0-0", "p0-t1-0", "p0-t1-1"} <= {node for node, count in no_routes.items() if count}
    assert {("h0", 0, 0), ("h0", 0, 1)} <= retired(run)
    assert ports(run)["p0-t0-0", "down0"]["out_marked"], "on the last hop too, and there alone by this fault"
    snapshots = [one["t_ns"] for one in events(run, "snapshot") if one["host"] == "h1"]
    assert max(after - before for before, after in pairwise(snapshots)) > 300_000_000
