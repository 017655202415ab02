"""Jobs that start into a broken network with an empty denylist (P1, figure 4)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.emu.runs import Run
from tests.emu.test_denylist import data_packets, events

DEAD_LINK = """
faults:
  - {at: cold-start, link-down: p0-t0-0:p0-t1-1, for: 1h, name: dead}
"""
HEALED = """
faults:
  - {at: cold-start, link-down: p0-t0-0:p0-t1-1, for: 1s, name: dead}
"""
DEAD_PORT = """
faults:
  - {at: cold-start, link-down: h0:p1-t0-0, for: 1s, name: port}
"""
PACKET_BITS = 8 * 4238
"""A full data packet on the wire."""
PATHS = 4
"""From one host to the other."""
EV_RATE_BPS = 12_500_000 / 2
"""Two EVs share each plane's port of 12.5 Mb/s."""


def most_lost(run: Run) -> int:
    """What one EV carries in 3 RTT at full rate, rounded up: no more may be sent into a dead link."""
    environment = json.loads((run.folder / "environment.json").read_text(encoding="utf-8"))
    return int(3 * environment["base_rtt_ns"] / 1e9 * EV_RATE_BPS / PACKET_BITS) + 1


@pytest.mark.nightly
def test_each_dead_path_is_found_out_by_few_packets(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=5, extra=DEAD_LINK)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    phases = [line["phase"] for line in run.history() if line["op"] == "phase" and line["type"] == "ok"]
    assert phases == ["build", "verify", "cold start", "warm up", "barrier", "run", "heal", "settle", "tear down"]
    (start_ns,) = [line["t_ns"] for line in run.history() if line["op"] == "workload" and line["type"] == "invoke"]
    for shot in events(run, "snapshot"):
        # Three rounds are usual; to wait for the dead path for all of 2 s takes 25.
        assert shot["t_ns"] > start_ns or shot["counters"]["probes_sent"] <= 10 * PATHS
    packets = data_packets(run)
    for host in ("h0", "h1"):
        changes = [one for one in events(run, "ev_state") if one["host"] == host]
        first = next(one for one in changes if (one["plane"], one["uplink"]) == (0, 1))
        assert (first["from"], first["to"]) == ("GOOD", "ASSUMED_BAD"), "nobody told the transport"
        assert 1 <= packets[host, "0/1"] <= most_lost(run)
        assert packets[host, "0/0"] > 10 * packets[host, "0/1"], "the other uplink carries the plane's share"


@pytest.mark.nightly
def test_a_link_that_is_healed_is_used_again(tmp_path: Path) -> None:
    # Bounds that a busy machine keeps too: what counts is that there is something to measure, and its clock.
    wanted = ("expect.3=recovery.p100 <= 60 rtt during dead", "expect.4=exposure.p100 <= 60 rtt during dead")
    run = Run(tmp_path, steps=20, extra=HEALED, options=tuple(word for line in wanted for word in ("--set", line)))
    run.finish()
    run.assert_passed_or_machine_was_busy()
    packets = data_packets(run)
    for host in ("h0", "h1"):
        states = [
            (one["from"], one["to"])
            for one in events(run, "ev_state")
            if (one["host"], one["plane"], one["uplink"]) == (host, 0, 1)
        ]
        assert states[:2] == [("GOOD", "ASSUMED_BAD"), ("ASSUMED_BAD", "GOOD")]
        assert packets[host, "0/1"] > 5 * most_lost(run)
    assert "cold start, 1" in " ".join(run.output.split())


@pytest.mark.nightly
def test_a_port_dead_at_the_start_carries_nothing_until_it_is_healed(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=20, extra=DEAD_PORT)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    done = {(line["op"], line["type"]): line["t_ns"] for line in run.history() if line.get("fault") == "port"}
    own = [one for one in events(run, "port_state") if (one["host"], one["peer"], one["plane"]) == ("h0", None, 1)]
    assert [one["state"] for one in own] == ["DOWN", "RISING", "UP"]
    assert done["inject", "ok"] < own[0]["t_ns"] < done["heal", "invoke"] < own[1]["t_ns"]
    lost = [one for one in events(run, "ev_state") if one["plane"] == 1 and one["t_ns"] < done["heal", "invoke"]]
    assert lost == [], "both ends knew: no packet was spent on the dead port"
    packets = data_packets(run)
    for host in ("h0", "h1"):
        assert packets[host, "1/0"] + packets[host, "1/1"] > 5 * most_lost(run)


@pytest.mark.nightly
def test_a_job_may_start_before_any_path_works(tmp_path: Path) -> None:
    cut = 'faults: [{at: cold-start, link-down: ["h0:p0-t0-0", "h1:p1-t0-1"], for: 500ms}]\n'
    run = Run(tmp_path, steps=5, extra=cut)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    environment = json.loads((run.folder / "environment.json").read_text(encoding="utf-8"))
    assert "base_rtt_ns" not in environment, "no probe was answered in warm-up"
