"""What random scenarios found (tests/generated), as small as it could be made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrc_testbed.testbed.scenario import load_scenario_text
from tests.generated.oracle import wrong_with

CORRUPTED = """
name: corrupted
world: virtual
fabric: {planes: 2, t0_groups: 1, t1: 0, hosts_per_t0: 2, port_rate: 5mbit, rtt: 500us}
transport: roce
endpoint: {icrc: true, payload: 2KiB}
workload: [{sendrecv: {size: 100KiB, iterations: 4}}]
faults: [{at: 100ms, corrupt: links, share: 50%, for: 200ms}]
expect: [retransmissions >= 1]
"""
SLOW_PORTS = """
name: slow-ports
world: virtual
fabric: {planes: 2, t0_groups: 3, t1: 4, hosts_per_t0: 3, port_rate: 1mbit, rtt: 0s}
workload: [{all-to-all: {size: 9KiB, iterations: 1}}]
"""


@pytest.mark.parametrize("recovery", ["go-back-n", "selective", "lossless"])
@pytest.mark.nightly(keep=1)
def test_over_roce_the_icrc_of_the_scenario_finds_corrupted_packets(tmp_path: Path, recovery: str) -> None:
    """It was on in the scenario and off at the endpoints, so flipped bits arrived and the run failed."""
    scenario = load_scenario_text(CORRUPTED, overrides=[f"roce.recovery={recovery}"])
    assert wrong_with(scenario, tmp_path) == []


def test_over_roce_the_payload_of_the_scenario_is_that_of_packets(tmp_path: Path) -> None:
    scenario = load_scenario_text(CORRUPTED, overrides=["capture=[{links: links, around: run, snap: 9014B}]"])
    assert wrong_with(scenario, tmp_path) == []
    captured = next(tmp_path.glob("*/pcap/*.pcapng")).stat().st_size
    assert captured > 100 * 2048
    assert max(map(len, _packets(next(tmp_path.glob("*/pcap/*.pcapng"))))) < 2048 + 160


def _packets(file: Path) -> list[bytes]:
    from scapy.utils import PcapNgReader

    with PcapNgReader(str(file)) as reader:
        return [bytes(packet) for packet in reader]


@pytest.mark.nightly
def test_slow_ports_have_the_time_that_probes_of_all_paths_need(tmp_path: Path) -> None:
    """Probes came every 10 ms whatever ports could carry, waited for each other, and the warm-up gave up."""
    assert wrong_with(load_scenario_text(SLOW_PORTS), tmp_path) == []


DEAD_PORT = """
name: dead-port
world: virtual
fabric: {planes: 2, t0_groups: 3, t1: 1, hosts_per_t0: 3, port_rate: 1mbit, rtt: 0us}
workload: [{all-to-all: {size: 3KiB, iterations: 1}}]
faults: [{at: cold-start, for: 200ms, link-down: "h7:p1-t0-2"}]
"""
FULL_OF_PROBES = """
name: full-of-probes
world: virtual
scale: 100
fabric: {planes: 4, t0_groups: 2, t1: 1, hosts_per_t0: 3, port_rate: 165kbit, rtt: 2ms}
endpoint: {payload: 256B}
workload: [{all-to-all: {size: 8KiB, iterations: 1}}, {permutation: {message: 8KiB, bytes: 92KiB}}]
faults: [{at: cold-start, for: 41902us, link-loss: T0-T1 links, loss: 100%}]
"""


@pytest.mark.parametrize("text", [DEAD_PORT, FULL_OF_PROBES])
@pytest.mark.nightly(keep=1)
def test_control_packets_leave_room_at_slow_ports(tmp_path: Path, text: str) -> None:
    """Probes of warm-up took all of a port, and those of an EV came by a T far below the time of a packet: each answer
    came after its probe was given up."""
    assert wrong_with(load_scenario_text(text), tmp_path) == []


FULL_AND_SLOW = """
name: full-and-slow
world: virtual
fabric: {planes: 2, t0_groups: 3, t1: 1, hosts_per_t0: 2, port_rate: 136kbit, rtt: 40ms}
transport: roce
endpoint: {payload: 512B}
roce: {congestion_control: none, buffers: pfc, xoff: 4}
workload: [{incast: {to: h0, from: [h2, h3, h4, h5], bytes: 280KiB, victims: [h3->h1]}}]
faults: [{at: cold-start, link-flap: "h1:p1-t0-*", period: 1779ms, count: 2}]
"""


@pytest.mark.nightly
def test_what_waits_in_slow_lossless_ports_is_counted_when_it_has_come(tmp_path: Path) -> None:
    """20 s were not enough for it, so packets were missing."""
    assert wrong_with(load_scenario_text(FULL_AND_SLOW), tmp_path) == []


SLOW_DATA = """
name: slow-data
world: virtual
fabric: {planes: 1, t0_groups: 2, t1: 1, hosts_per_t0: 1, port_rate: 1mbit, rtt: 10ms}
workload: [{sendrecv: {size: 40KiB, iterations: 1, warm_up: 0}}]
faults: [{at: 100ms, plane-loss: p0, loss: 100%, for: 1s}]
expect: [timeouts <= 20]
"""


def test_a_full_packet_through_slow_ports_is_no_timeout(tmp_path: Path) -> None:
    """After an outage only probes were measured; each packet then timed out while it was on its way."""
    assert wrong_with(load_scenario_text(SLOW_DATA), tmp_path) == []
    verdict = json.loads(next(tmp_path.glob("*/verdict.json")).read_text())
    assert verdict["verdict"] == "pass", verdict["checks"]


def test_what_holds_of_every_run_does_not_hold_with_wrong_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrc_testbed.testbed.transports.roce.OF_ALL_PACKETS", ("payload_bytes",))
    (wrong,) = wrong_with(load_scenario_text(CORRUPTED), tmp_path)
    assert wrong.startswith("all data arrived as sent: ")
