"""What endpoints do when switches trim, mark or lose, on the real kernel: told by counters, events and packets, not by
times."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.utils import PcapReader

from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.fabric.capabilities import Capability
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.options import fabric_options
from mrc_testbed.testbed.runner.phases import Phases, RunJob
from mrc_testbed.testbed.runner.progress import Silent
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.emu.figures import events, run_that_kept_time
from tests.emu.test_wire import run_in_sandbox

pytestmark = pytest.mark.timed

FABRIC = "planes: 1, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms"
TRIMMING = f"""
name: trimming
# No marks, one path that is too slow, and trimming from three packets on, but not at the last hop: whatever happens,
# it is trims that did it.
fabric: {{{FABRIC}, switch: {{ecn: [3.0, 3.0], trim: 0.2, trim_last_hop: 3.0}}}}
workload:
  - write: {{pairs: [h0->h2, h1->h3], for: 3s}}
faults:
  - {{at: cold-start, link-rate: "p0-t0-0:p0-t1-0", rate: 6mbit, for: 1h}}
"""
MARKING = f"""
name: marking
# Both flows may use one path only, and two windows fit its queue.
fabric: {{{FABRIC}, switch: {{trim: 2.5}}}}
endpoint: {{denylist: [p0-t1-1]}}
workload:
  - write: {{pairs: [h0->h2, h1->h3], for: 4s}}
"""
INCAST = f"""
name: last-hop
fabric: {{{FABRIC}, switch: {{ecn: [3.0, 3.0], trim_last_hop: 1.0}}}}
workload:
  - incast: {{to: h2, from: [h0, h1], for: 3s}}
"""
LOSS = f"""
name: silent-loss
fabric: {{{FABRIC}}}
workload:
  - write: {{pairs: [h0->h2, h1->h3], for: 4s}}
faults:
  - {{at: 1s, ev-loss: p0-t1-1, from: h0, loss: 30%, for: 1s, name: lossy}}
"""


def kept_time(folder: Path, text: str, *changes: str) -> RunRecord:
    scenario = folder / "scenario.yaml"
    scenario.write_text(text, encoding="utf-8")
    return run_that_kept_time(scenario, folder / "results", *changes)


def total(record: RunRecord, name: str) -> int:
    """A counter, summed over all endpoints."""
    return sum(counters[name] for counters in record.counters.values())


def losses(record: RunRecord) -> dict[str, int]:
    """Packets that senders took for lost, by reason, where there were any."""
    found: Counter[str] = Counter()
    for counters in record.counters.values():
        found.update(
            {name.removeprefix("lost_"): count for name, count in counters.items() if name.startswith("lost_")}
        )
    return {name: count for name, count in found.items() if count}


def triggers(record: RunRecord, state: str) -> Counter[str]:
    """Why EVs entered a state."""
    return Counter(one["trigger"] for one in events(record, "ev_state") if one["to"] == state)


# --- trimmed by the core ---


@pytest.mark.timeout(120)
def test_every_trimmed_packet_is_asked_for_by_nack_and_no_timer_is_involved(tmp_path: Path) -> None:
    record = kept_time(tmp_path, TRIMMING)
    trimmed = total(record, "trimmed_received")
    assert trimmed > 50
    # A packet that others overtake may be guessed lost just before its NACK comes, when a host is late.
    reasons = losses(record)
    guessed = reasons.pop("overtaken", 0)
    assert guessed <= 2
    assert reasons == {"trimmed": trimmed - guessed}
    assert total(record, "nacks_sent") == total(record, "nacks_received") == trimmed
    assert total(record, "retransmitted") == total(record, "retransmitted_trimmed") + guessed == trimmed
    assert total(record, "timeouts") == 0
    assert set(triggers(record, "SKIP")) == {"trimmed"}, "the path is to blame for congestion"
    assert total(record, "evs_retired") == triggers(record, "ASSUMED_BAD").total() <= guessed, "and for nothing else"


class Seen(NamedTuple):
    """A packet of h0's port: a data packet, or a NACK that names one."""

    nack: bool
    again: bool
    psn: int
    ev: int


class CapturedRun(Phases):
    """A run with tcpdump on the port of h0, both ways, from the barrier on."""

    capture: Path

    def barrier(self) -> int:
        file = shlex.quote(str(self.capture))
        # At once: else the kernel keeps packets back for up to a second, and the last ones would be lost at the end.
        how = "--immediate-mode -s 200 -B 4096 -U"
        self.fabric.node("h0").cmd(f"tcpdump -i port0 {how} -w {file} not ip6 multicast 2>/dev/null &")
        while not (self.capture.exists() and self.capture.stat().st_size >= 24):
            time.sleep(0.01)
        return super().barrier()

    def tear_down(self) -> None:
        self.fabric.node("h0").cmd("kill %1; wait")
        super().tear_down()


def seen(capture: Path) -> Iterator[Seen]:
    for packet in PcapReader(str(capture)):
        if IPv6 not in packet or UDP not in packet:
            continue
        inner = packet.getlayer(IPv6, 2) or packet[IPv6]
        view = memoryview(bytes(packet[UDP].payload))
        dscp, psn = inner.tc >> 2, int.from_bytes(view[9:12], "big")
        if view[0] == wire.NACK:
            _, _, reason, ev, _ = wire.parse_nack(view)
            assert reason == wire.NACK_TRIMMED
            yield Seen(True, False, psn, ev)
        elif view[0] <= wire.LAST_DATA_OPCODE:
            yield Seen(False, dscp == wire.CLASS_TRIMMABLE_RETX >> 2, psn, inner.fl << 16 | packet[UDP].sport)


@pytest.mark.timeout(120)
@pytest.mark.nightly
def test_what_is_sent_again_was_asked_for_and_takes_another_ev(tmp_path: Path, machine: list[Capability]) -> None:
    capture = tmp_path / "h0.pcap"

    def make(job: RunJob, recorder: Recorder) -> Phases:
        run = CapturedRun(job, recorder, Silent())
        run.capture = capture
        return run

    options = fabric_options(load_scenario_text(TRIMMING), machine)
    run_in_sandbox(tmp_path, machine, options, make, TRIMMING)
    last: dict[int, Seen] = {}
    used: dict[int, int] = {}
    again = 0
    for one in seen(capture):
        if one.nack:
            assert one.ev == used[one.psn], "a NACK names the EV of the attempt that was trimmed"
        elif one.again:
            again += 1
            assert last[one.psn].nack, "nothing but its NACK lies between two attempts"
            assert one.ev != used[one.psn]
        if not one.nack:
            used[one.psn] = one.ev
        last[one.psn] = one
    assert again > 20
    assert not [one for one in last.values() if one.nack], "everything asked for went again"


# --- marked ---


@pytest.mark.timeout(120)
def test_marks_rest_the_ev_and_cut_the_window_and_nothing_is_lost(tmp_path: Path) -> None:
    record = kept_time(tmp_path, MARKING, "expect=[balance >= 0.8, goodput >= 0.95 line]")
    assert total(record, "sacks_with_ce") > 100
    assert losses(record) == {}
    assert total(record, "retransmitted") == total(record, "trimmed_received") == total(record, "timeouts") == 0
    assert set(triggers(record, "SKIP")) == {"ecn"}


@pytest.mark.timeout(180)
@pytest.mark.nightly
def test_it_is_nscc_that_keeps_two_marked_flows_below_the_trim_level(tmp_path: Path) -> None:
    """With trimming at 1 BDP: after the first round trips the windows fit but for a packet now and then, as they go on
    growing (0 to 11 trims in 2 s, seen in 10 runs); a fixed window never does (827 to 904)."""
    quiet = ("fabric.switch.trim=1.0", "expect=[nacks <= 60 from 2s to 4s]")
    (tmp_path / "nscc").mkdir()
    (tmp_path / "fixed").mkdir()
    kept_time(tmp_path / "nscc", MARKING, *quiet)
    loud = ("fabric.switch.trim=1.0", "endpoint.congestion_control=fixed", "expect=[nacks >= 400 from 2s to 4s]")
    kept_time(tmp_path / "fixed", MARKING, *loud)


@pytest.mark.timeout(120)
@pytest.mark.nightly
def test_a_mark_moves_a_flow_to_its_backup(tmp_path: Path) -> None:
    """h1 may use uplink 0 only; h0 has one EV in use and one in reserve, and begins on uplink 0."""
    changes = (
        "endpoint={ev_active: 1, denylist: [{path: p0-t1-1, hosts: [h1]}]}",
        "workload.0.write.pairs=[h0->h2]",
        "workload.1={write: {from: h1, to: h3, start: 1500ms, for: 2500ms, name: forced}}",
        "faults=[{at: 0s, deny: p0-t1-1, hosts: [h0], for: 500ms}]",
        "expect=[retransmissions == 0]",
    )
    record = kept_time(tmp_path, MARKING, *changes)
    moves = [one for one in events(record, "ev_state") if (one["host"], one["to"]) == ("h0", "SKIP")]
    assert (moves[0]["uplink"], moves[0]["trigger"]) == (0, "ecn")
    assert losses(record) == {}


# --- trimmed at the last hop ---


@pytest.mark.timeout(120)
@pytest.mark.nightly
def test_a_trim_at_the_last_hop_blames_no_path(tmp_path: Path) -> None:
    record = kept_time(tmp_path, INCAST)
    trimmed = total(record, "trimmed_received")
    assert trimmed > 5
    assert losses(record) == {"trimmed_lasthop": trimmed}
    assert total(record, "retransmitted_trimmed_lasthop") == total(record, "nacks_sent") == trimmed
    assert not events(record, "ev_state"), "no EV changed its state"
    assert total(record, "timeouts") == total(record, "evs_skipped") == 0


# --- lost without a word ---


@pytest.mark.timeout(120)
def test_a_loss_without_a_trim_blames_the_path_of_the_packet_and_no_other(tmp_path: Path) -> None:
    record = kept_time(tmp_path, LOSS)
    bad = {
        (one["host"], one["plane"], one["uplink"]) for one in events(record, "ev_state") if one["to"] == "ASSUMED_BAD"
    }
    assert bad == {("h0", 0, 1)}
    found = losses(record)
    lost = sum(count for reason, count in found.items() if reason != "trimmed")
    assert lost > 0
    assert total(record, "nacks_received") == found.get("trimmed", 0), "nobody asks for what nobody saw"
    assert set(triggers(record, "ASSUMED_BAD")) <= set(found) - {"trimmed"}
