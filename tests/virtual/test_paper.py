"""Shapes of figures of P1 in virtual time: the scenarios of scenarios/paper, shortened, as they expect them.

tests/emu/test_paper.py has others on the real kernel; docs/worlds.md says how near the two worlds are.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.record import RunRecord
from tests.emu.figures import events, shipped_run

pytestmark = pytest.mark.slow


def run(figure: str, out: Path, *changes: str, moved: dict[str, str] | None = None) -> RunRecord:
    """The scenario of a figure."""
    return shipped_run(f"paper/{figure}", out, *changes, "world=virtual", moved=moved)


def data_packets(record: RunRecord, host: str, peer: str) -> dict[str, int]:
    """Data packets of a host on each path (`plane/uplink`)."""
    counters = json.loads((record.folder / "counters.json").read_text(encoding="utf-8"))
    found: dict[str, int] = counters["hosts"][host]["paths"][peer]
    return found


def test_fig_4_a_dead_link_at_the_start_costs_no_timer(tmp_path: Path) -> None:
    """A packet goes into the dead link just before its EV is left, at the end of what a QP has to send, and round trips
    of that burst are slow: only a probe tells that it is lost, and must not ask too early to tell."""
    changes = ("workload.0.train.steps=1", "faults.0.for=2500ms")
    moved = {"from 0s to 2s": "from 0s to 1s", "from 2s to 12s": "from 1s to 2s", "timeouts <= 1": "timeouts == 0"}
    run("fig04", tmp_path, *changes, moved=moved)


@pytest.mark.nightly
def test_fig_10_a_t0_that_both_hosts_share_costs_its_plane_and_comes_back(tmp_path: Path) -> None:
    moved = {
        "from 4300ms to 8s": "from 3s to 4s",
        "from 3300ms to 4300ms": "from 2300ms to 3s",
        "from 3300ms to 8s": "from 2300ms to 4s",
        "from 8300ms to 9300ms": "from 4300ms to 5300ms",
        "from 9300ms to 11s": "from 5300ms to 6s",
        "from 1s to 3s": "from 1s to 2s",
    }
    record = run("fig10", tmp_path, "workload.0.write.for=6s", "faults.0.at=2s", "faults.0.boot=2s", moved=moved)
    ports = [(one["host"], one["peer"], one["plane"], one["state"]) for one in events(record, "port_state")]
    for host, peer in (("h0", "h1"), ("h1", "h0")):
        for end in (None, peer):
            states = [state for where, whose, plane, state in ports if (where, whose, plane) == (host, end, 3)]
            assert (states[0], states[-1]) == ("DOWN", "UP"), "each host about both ends"


def test_fig_14_ecn_alone_parts_two_flows(tmp_path: Path) -> None:
    changes = ("workload.0.write.for=6s", "workload.1.write.for=3s", "workload.1.write.start=3s", "faults.0.for=500ms")
    moved = {"from 2s to 4s": "from 1s to 3s", "from 4400ms to 10s": "from 3400ms to 6s"}
    record = run("fig14", tmp_path, *changes, moved=moved)
    rests = [one for one in events(record, "ev_state") if one["host"] == "h0" and one["to"] == "SKIP"]
    assert (rests[0]["uplink"], rests[0]["trigger"]) == (0, "ecn")
    # Half of its packets were sent before the move, which is all that A may have carried, but for a try now and then.
    packets = data_packets(record, "h0", "h2")
    assert 0.4 < packets["0/0"] / sum(packets.values()) < 0.55


@pytest.mark.nightly
def test_fig_19a_capacity_that_is_left_is_enough(tmp_path: Path) -> None:
    changes = ("workload.0.write.for=9s", "faults.0.for=5s", "faults.1.for=3s", "faults.2.for=1s", "faults.0.at=2s")
    later = ("faults.1.at=4s", "faults.2.at=6s")
    moved = {
        "from 1s to 3s": "from 1s to 2s",
        "from 3s to 5s": "from 2s to 4s",
        "from 5s to 7s": "from 4s to 6s",
        "from 7s to 9s": "from 6s to 8s",
        # The same three removals within 5 s and not 10: each costs about 3 T.
        "95% of clean during faults": "94% of clean during faults",
    }
    record = run("fig19a", tmp_path, *changes, *later, moved=moved)
    assert len({one["uplink"] for one in events(record, "ev_state") if one["to"] == "ASSUMED_BAD"}) == 3


def test_fig_19c_goodput_tracks_the_capacity_when_two_links_go_at_once(tmp_path: Path) -> None:
    changes = ("workload.0.write.for=7s", "faults.0.for=7s", "faults.1.at=2s", "faults.1.for=2s")
    moved = {"from 1s to 5s": "from 1s to 2s", "from 6s to 10s": "from 3s to 4s", "from 11s to 15s": "from 5s to 7s"}
    run("fig19c", tmp_path, *changes, moved=moved)


@pytest.mark.nightly
def test_fig_20_a_full_permutation_gives_every_flow_line_rate(tmp_path: Path) -> None:
    record = run("fig20", tmp_path, "workload.0.permutation.for=6s")
    assert {one["trigger"] for one in events(record, "ev_state") if one["to"] == "SKIP"} <= {"ecn", "trimmed"}
    lost = sum(counters["retransmitted"] for counters in record.counters.values())
    assert lost < 0.01 * sum(counters["data_sent"] for counters in record.counters.values())
