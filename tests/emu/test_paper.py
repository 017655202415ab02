"""Shapes of figures of P1 on the real kernel: the scenarios of scenarios/paper, shortened, as they expect them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.record import RunRecord
from tests.emu.figures import events, shipped_run

pytestmark = pytest.mark.timeout(120)


def run(figure: str, out: Path, *changes: str, moved: dict[str, str] | None = None) -> RunRecord:
    """The scenario of a figure."""
    return shipped_run(f"paper/{figure}", out, *changes, moved=moved)


def data_packets(record: RunRecord, host: str, peer: str) -> dict[str, int]:
    """Data packets of a host on each path (`plane/uplink`)."""
    counters = json.loads((record.folder / "counters.json").read_text(encoding="utf-8"))
    found: dict[str, int] = counters["hosts"][host]["paths"][peer]
    return found


@pytest.mark.alone
@pytest.mark.nightly
def test_fig_4_a_dead_link_at_the_start_costs_each_qp_a_few_packets(tmp_path: Path) -> None:
    changes = ("workload.0.train.steps=4", "faults.0.for=6s")
    # 16 to 19 as a rule; 31 to 33 in slow phases, when senders hear of the first loss two packets later.
    moved = {"from 2s to 12s": "from 2s to 6s", "packets_lost <= 32 ": "packets_lost <= 40 "}
    record = run("fig04", tmp_path, *changes, moved=moved)
    bad = [one for one in events(record, "ev_state") if one["to"] == "ASSUMED_BAD"]
    left = {(one["host"], one["plane"], one["uplink"]) for one in bad}
    assert left == {(f"h{host}", 0, 5) for host in range(8)}, "everyone finds the link"


@pytest.mark.alone
@pytest.mark.nightly
def test_fig_9b_half_the_nic_links_carry_half(tmp_path: Path) -> None:
    moved = {
        "from 4300ms to 8s": "from 3s to 4s",
        "from 3300ms to 4300ms": "from 2300ms to 3s",
        "from 3300ms to 8s": "from 2300ms to 4s",
        "from 8300ms to 9300ms": "from 4300ms to 5300ms",
        "from 9300ms to 12s": "from 5300ms to 6s",
        "from 1s to 3s": "from 1s to 2s",
    }
    record = run("fig09b", tmp_path, "workload.0.write.for=6s", "faults.0.at=2s", "faults.0.for=2s", moved=moved)
    assert not [one for one in events(record, "ev_state") if one["to"] == "ASSUMED_BAD"], "no path is blamed for a port"


@pytest.mark.timed
@pytest.mark.nightly
def test_fig_12_and_13_a_lossy_ev_is_replaced_in_its_plane(tmp_path: Path) -> None:
    changes = ("workload.0.write.for=7s", "faults.0.for=2s", "faults.1.at=2500ms", "faults.1.for=3s")
    record = run("fig12-13", tmp_path, *changes, moved={"from 5s to 6s": "from 2500ms to 3500ms"})
    bad = [one for one in events(record, "ev_state") if one["to"] == "ASSUMED_BAD" and one["from"] != "DENIED"]
    assert {(one["host"], one["plane"], one["uplink"]) for one in bad} == {("h0", 1, 0)}, "A and nothing else"
    planes = [0, 0, 0, 0]
    for path, packets in data_packets(record, "h0", "h1").items():
        planes[int(path[0])] += packets
    assert max(planes) - min(planes) <= 1, "the plane of A carries as much as the others"


@pytest.mark.alone
@pytest.mark.nightly
def test_fig_18c_an_incast_is_fair_and_the_victim_unaffected(tmp_path: Path) -> None:
    moved = {"to 20s": "to 10s"}
    record = run("fig18c", tmp_path, "workload.0.incast.for=10s", moved=moved)
    again = sum(counters["retransmitted"] for counters in record.counters.values())
    asked = sum(counters["retransmitted_trimmed_lasthop"] for counters in record.counters.values())
    assert asked > 100
    assert again - asked <= 4, "hardly anything but what the last hop trimmed is sent again"


@pytest.mark.timed
@pytest.mark.nightly
def test_fig_19b_goodput_tracks_the_capacity_that_is_left(tmp_path: Path) -> None:
    times = [("3s", "11250ms"), ("5250ms", "6750ms"), ("7500ms", "2250ms")]
    changes = [
        f"faults.{place + 1}.{key}={value}"
        for place, (at, lasts) in enumerate(times)
        for key, value in (("at", at), ("for", lasts))
    ]
    moved = {
        "from 1s to 5s": "from 1s to 3s",
        "from 6s to 8s": "from 3900ms to 5200ms",
        "from 9s to 11s": "from 6100ms to 7400ms",
        "from 12s to 17s": "from 8400ms to 9700ms",
        "from 18s to 20s": "from 10700ms to 12s",
        "from 21s to 23s": "from 12900ms to 14200ms",
        "from 24s to 26s": "from 15100ms to 16500ms",
    }
    run("fig19b", tmp_path, "workload.0.write.for=16500ms", "faults.0.for=16500ms", *changes, moved=moved)
