"""Switch ports that mark, trim, prioritise and lose, on the real kernel with packets of plain sockets."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.batch import query
from mrc_testbed.testbed.fabric.commands import class_lines
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.switching.options import FabricOptions, level_bdp_bytes
from mrc_testbed.testbed.switching.port_counts import PortCounts
from mrc_testbed.testbed.switching.port_rules import PortRule
from tests.emu.port_stage import options as options
from tests.emu.port_stage import run
from tests.emu.runs import wait_for
from tests.emu.traffic import FRAME_BYTES, FRAME_HEADER_BYTES, Got, Sink, Source, flood_for
from tests.lateness import stolen_s
from tests.port_cases import (
    BURSTS,
    CORE,
    CORE_LINK,
    LAST_LINK,
    PAYLOAD,
    RULE_CASES,
    SMALL,
    STREAMS,
    Arrived,
    Burst,
    mrc_packet,
)

pytestmark = pytest.mark.timed

BARE_BYTES = FRAME_HEADER_BYTES + wire.DATA_HEADER_BYTES
ECT0, CE = 2, 3


def conserved(counts: PortCounts) -> bool:
    return counts.out_data == counts.out_passed + counts.out_trimmed + counts.out_dropped


def kinds(got: list[Got]) -> Counter[tuple[int, int, int]]:
    """How many datagrams of each (length, DSCP, ECN)."""
    return Counter((len(one.data), one.dscp, one.ecn) for one in got)


def test_every_path_carries_packets_and_every_port_counts_them(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        fabric.verify()
        h0, h3 = fabric.plan.hosts[0], fabric.plan.hosts[3]
        for src, dst in ((h0, h3), (h3, h0)):
            for path in fabric.plan.paths(src, dst):
                before = fabric.port_counts()
                answer = fabric.node(src.name).cmd(f"ping -c2 -i0.05 -W2 -q {path.inner}")
                assert ", 0% packet loss" in answer, path.outer
                after = fabric.port_counts()
                uplink = (f"p0-t0-{src.group}", f"up{path.id.uplink}")
                assert after[uplink].out_other - before[uplink].out_other >= 2

    run(body, options)


def test_a_link_that_was_down_and_a_switch_that_booted_keep_their_program(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        fabric.prepare_faults(["p0-t1-0"])
        end = fabric.plan.link_by_name[CORE_LINK].far
        fabric.ports_down([end])
        fabric.verify()
        fabric.ports_up([end])
        assert fabric.switch_off("p0-t1-1") == 0
        fabric.switch_on("p0-t1-1", [own for own, _ in fabric.plan.ports["p0-t1-1"]])
        fabric.verify()

    run(body, options)


def test_a_missing_program_and_a_shallow_queue_are_drift(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        node = fabric.node("p0-t0-1")
        node.cmd("tc filter del dev up0 ingress")
        with pytest.raises(FabricError, match=r"^p0-t0-1: read-back: p0-t0-1 lacks program up0 port_ingress id \d+$"):
            fabric.verify(["p0-t0-1"])
        node = fabric.node("p0-t0-0")
        node.cmd("tc qdisc change dev up1 parent 1:20 handle 20: bfifo limit 9000")
        with pytest.raises(FabricError, match="p0-t0-0 lacks queue up1 1:20"):
            fabric.verify(["p0-t0-0"])

    run(body, options)


@pytest.mark.parametrize("burst", BURSTS, ids=lambda burst: burst.name)
@pytest.mark.nightly(keep=2)
def test_a_port_marks_trims_and_drops_what_the_table_says(burst: Burst, options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        fabric.set_rate(burst.link, burst.rate_bps)
        sink, source = Sink(fabric, "h2"), Source(fabric, "h0", "h2", tclass=burst.traffic_class)
        for data in burst.sent():
            source.send(data)
        got = [Arrived(one.data, one.traffic_class) for one in sink.take(2.5)]
        burst.check(got, fabric.port_counts()[burst.port], slack=2)

    run(body, replace(options, trimming=burst.trimming, marks=burst.dscps))


def test_marks_stand_on_the_wire_in_outer_and_inner_header(options: FabricOptions, tmp_path: Path) -> None:
    capture = tmp_path / "t1.pcap"

    def body(fabric: Fabric) -> None:
        sink = Sink(fabric, "h2")
        t1 = fabric.node("p0-t1-0")
        t1.cmd(f"tcpdump -i down0 -Q in --immediate-mode -U -w {capture} udp or ip6 proto 41 2>/dev/null &")
        wait_for(lambda: capture.exists() and capture.stat().st_size >= 24, "tcpdump")
        flood_for(0.5, Source(fabric, "h0", "h2"), Source(fabric, "h1", "h2"))
        sink.take()
        t1.cmd("kill %1; wait")

    run(body, options)
    seen = Counter(traffic_classes(capture))
    assert {outer for outer, _ in seen} == {4 << 2 | ECT0, 4 << 2 | CE, 12 << 2 | ECT0}
    assert all(outer == inner for outer, inner in seen), seen


def traffic_classes(capture: Path) -> list[tuple[int, int]]:
    from scapy.utils import RawPcapReader

    frames = [bytes(frame) for frame, _ in RawPcapReader(str(capture))]
    words = [(int.from_bytes(frame[14:16], "big"), int.from_bytes(frame[54:56], "big")) for frame in frames]
    return [(outer >> 4 & 0xFF, inner >> 4 & 0xFF) for outer, inner in words]


@pytest.mark.nightly
def test_what_has_a_udp_checksum_is_not_trimmed(options: FabricOptions) -> None:
    """No shortened packet would pass it."""

    def body(fabric: Fabric) -> None:
        fabric.set_rate(CORE_LINK, 1_000_000)
        sink, source = Sink(fabric, "h2"), Source(fabric, "h0", "h2")
        source.socket.setsockopt(17, 101, 0)
        for number in range(60):
            source.send(mrc_packet(number))
        got = sink.take(2.5)
        counts = fabric.port_counts()[CORE]
        assert counts.out_trimmed == 0
        room = 3 * level_bdp_bytes(SMALL, SMALL.port_rate_bps) // FRAME_BYTES
        assert room <= len(got) <= room + 4
        assert counts.out_dropped == 60 - len(got)

    run(body, options)


def test_two_to_one_overload_keeps_the_real_queue_inside_the_virtual_one(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        sink = Sink(fabric, "h2")
        sources = [Source(fabric, "h0", "h2"), Source(fabric, "h1", "h2")]
        time.sleep(0.5)
        began_s = stolen_s()
        for source in sources:
            source.flood(mrc_packet(1))
        time.sleep(0.5)
        gaps = [real_less_virtual(fabric) for _ in range(20) if not time.sleep(0.1)]
        for source in sources:
            source.stop()
        got = sink.take()
        # A shaper is behind its link by no more than the time in which its CPU was away.
        away_s = stolen_s() - began_s
        away = away_s * SMALL.port_rate_bps / 8 / FRAME_BYTES
        # The shaper's burst of two packets and the one it is sending are out of the real queue already.
        assert -4.5 < statistics.median(gaps) < 0.5 + away, (gaps, away)
        drift = statistics.median(gaps[10:]) - statistics.median(gaps[:10])
        assert -2 - away < drift < 2 + away, "and it does not drift away"
        counts = fabric.port_counts()[CORE]
        assert conserved(counts)
        assert counts.out_dropped == 0
        assert counts.out_data == len(got) == sum(source.sent for source in sources), "no packet and no header lost"
        peer = fabric.port_counts()["p0-t1-0", "down0"]
        assert (peer.in_data, peer.in_trimmed) == (counts.out_passed, counts.out_trimmed)
        carried, busy_s = carried_bps(got) / SMALL.port_rate_bps, 2.5 * 0.7
        assert 0.98 - away_s / busy_s < carried < 1.02
        assert 0.4 < counts.out_trimmed / counts.out_data < 0.6
        assert counts.out_marked > 0.95 * counts.out_passed, "the queue stands above the ramp"

    run(body, options)


def real_less_virtual(fabric: Fabric) -> float:
    """HTB's backlog of data less the program's, in packets, when the latter is read before and after."""
    node, port = CORE
    before = fabric.backlog_ns(*CORE)
    answer = query(["tc", "-s", "-j", "qdisc", "show", "dev", port], {node: fabric.pids[node]})
    after = fabric.backlog_ns(*CORE)
    real = next(entry["backlog"] for entry in json.loads(answer[node]) if entry["handle"] == "20:")
    virtual = (before + after) / 2 * SMALL.port_rate_bps / 8e9
    return float((real - virtual) / FRAME_BYTES)


def carried_bps(got: list[Got]) -> float:
    """Rate of the frames that arrived while the port was full; the first fifth filled its queue."""
    busy = got[len(got) // 5 : -len(got) // 10]
    frame_bytes = sum(len(one.data) + FRAME_HEADER_BYTES for one in busy[1:])
    return frame_bytes * 8e9 / (busy[-1].at_ns - busy[0].at_ns)


def test_control_passes_a_full_data_queue(options: FabricOptions) -> None:
    """Time from socket to socket of control packets over an overloaded port, against what data waits in that port: at
    each of four ports they wait for the packet that is being sent, and for nothing else."""

    def body(fabric: Fabric) -> None:
        sink = Sink(fabric, "h2")
        sources = [Source(fabric, "h0", "h2"), Source(fabric, "h1", "h2")]
        control = Source(fabric, "h0", "h2", tclass=bth.CLASS_CONTROL, port=0xBFFF)
        for source in sources:
            source.flood(mrc_packet(1))
        time.sleep(0.5)
        sent_ns, waits_ns = {}, []
        for number in range(2, 62):
            waits_ns.append(fabric.backlog_ns(*CORE))
            sent_ns[number] = time.time_ns()
            control.send(bytes([wire.SACK]) + bytes(8) + number.to_bytes(3, "big") + bytes(40))
            time.sleep(0.02)
        for source in sources:
            source.stop()
        took_ns = [one.at_ns - sent_ns[one.number] for one in sink.take() if one.dscp == bth.CLASS_CONTROL >> 2]
        assert len(took_ns) == len(sent_ns)
        packet_ns = FRAME_BYTES * 8e9 / SMALL.port_rate_bps
        assert 4.5 * packet_ns < 0.4 * statistics.median(waits_ns)
        assert packet_ns < statistics.median(took_ns) < 4.5 * packet_ns, (took_ns, waits_ns)

    run(body, options)


LATE_MACHINE = 0.02
"""Share of a port's packets that a machine which keeps time may be late with (late_on_links.share, docs/results.md)."""


def late_shares(fabric: Fabric, packets: int) -> dict[tuple[str, str], float]:
    """Of as many packets, by (node, port)."""
    return {where: count.packets / packets for where, count in fabric.late_arrivals().items()}


def test_what_comes_late_is_counted_where_it_comes_in(options: FabricOptions) -> None:
    """A shaper that is slower than its link, as one is whose CPU is taken away."""

    def body(fabric: Fabric) -> None:
        sink, source = Sink(fabric, "h2"), Source(fabric, "h0", "h2")
        node, port = CORE
        far = "p0-t1-0", "down0"
        flood_for(1, source)
        sent = len(sink.take())
        assert sent
        assert late_shares(fabric, sent)[far] <= LATE_MACHINE
        fabric.node(node).cmd(
            "; ".join(f"tc {line}" for line in class_lines("change", port, SMALL.port_rate_bps * 9 // 10))
        )
        flood_for(1, source_again(fabric, source))
        came = len(sink.take())
        shares = late_shares(fabric, sent + came)
        assert {where for where, share in shares.items() if share > LATE_MACHINE} == {far}
        # After a second it is a tenth behind, and T/4 late from a twentieth of a second on.
        late = fabric.late_arrivals()[far]
        assert 0.7 < late.packets / came < 1
        assert 0.05e9 < late.most_ns < 0.2e9

    run(body, options)


@pytest.mark.nightly
def test_a_slower_link_drains_slower_and_is_not_drift(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        link = CORE_LINK
        sink, source = Sink(fabric, "h2"), Source(fabric, "h0", "h2")
        fabric.set_rate(link, 5_000_000)
        fabric.verify()
        flood_for(1.5, source)
        got = sink.take()
        assert abs(carried_bps(got) / 5_000_000 - 1) < 0.02
        fabric.set_rate(link, SMALL.port_rate_bps)
        fabric.verify()
        flood_for(0.7, source_again(fabric, source))
        whole = [one for one in sink.take() if len(one.data) > PAYLOAD]
        assert abs(carried_bps(whole) / SMALL.port_rate_bps - 1) < 0.03

    run(body, options)


def source_again(fabric: Fabric, old: Source) -> Source:
    old.socket.close()
    return Source(fabric, "h0", "h2")


def arrivals(fabric: Fabric) -> int:
    """How many packets of MRC came over the last link, taken by a rule or not."""
    counts = fabric.port_counts()["h2", "port0"]
    return counts.in_data + counts.in_control


def wait_until_arrived(fabric: Fabric, packets: int) -> None:
    wait_for(lambda: arrivals(fabric) >= packets, f"{packets} packets on the last link")


def test_a_rule_takes_the_packets_that_it_is_about(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        sink = Sink(fabric, "h2")
        classes = {True: wire.CLASS_TRIMMABLE, False: bth.CLASS_CONTROL}
        sources = [
            Source(fabric, one.source, "h2", one.uplink, classes[one.data], 0xC000 + number)
            for number, one in enumerate(STREAMS)
        ]
        for case in RULE_CASES:
            handle = fabric.add_rule(LAST_LINK, "near", case.rule)
            before = arrivals(fabric)
            for number, source in enumerate(sources):
                source.send(mrc_packet(number, payload=256))
            wait_until_arrived(fabric, before + len(sources))
            left = {one.number for one in sink.take(0.2)}
            assert left == {number for number, one in enumerate(STREAMS) if one not in case.taken}, case.name
            # The kernel's own multicast reports, two a port, may meet a rule about everything.
            assert 0 <= fabric.remove_rule(handle) - len(case.taken) <= 2

    run(body, options)


@pytest.mark.nightly
def test_loss_on_one_ev_takes_its_share_and_nothing_else(options: FabricOptions) -> None:
    """20 % of what takes uplink 1 from h0: within five sigma of the binomial, and no packet of the rest."""

    def body(fabric: Fabric) -> None:
        # Where both uplinks and both senders come by.
        handle = fabric.add_rule(LAST_LINK, "near", PortRule("drop", 0.2, uplink=1, source=0, data_only=True))
        small = mrc_packet(1, payload=256)
        sent = 4000
        ways = [("h0", 0, 0xC000), ("h0", 1, 0xC100), ("h1", 1, 0xC001)]
        senders = {way[:2]: Source(fabric, *way[:1], "h2", way[1], port=way[2]) for way in ways}
        sink = Sink(fabric, "h2")
        for _ in range(sent // 100):
            for source in senders.values():
                for _ in range(100):
                    source.send(small)
                time.sleep(0.012)
        got = len(sink.take())
        control = Source(fabric, "h0", "h2", 1, tclass=bth.CLASS_CONTROL, port=0xC200)
        for _ in range(100):
            control.send(small)
        assert len(sink.take()) == 100, "data only"
        counts = fabric.port_counts()["h2", "port0"]
        assert (counts.in_data, counts.in_control) == (3 * sent, 100)
        lost = counts.in_data_dropped
        assert abs(lost - 0.2 * sent) < 5 * math.sqrt(sent * 0.2 * 0.8)
        assert got == 3 * sent - lost
        assert fabric.remove_rule(handle) == lost
        for _ in range(100):
            senders["h0", 1].send(small)
        assert len(sink.take()) == 100
        with pytest.raises(ValueError, match="gone already"):
            fabric.remove_rule(handle)

    run(body, options)


def test_corruption_flips_exactly_one_bit_of_the_payload(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        sink, source = Sink(fabric, "h2"), Source(fabric, "h0", "h2")
        handle = fabric.add_rule(LAST_LINK, "near", PortRule("corrupt"))
        sent = [mrc_packet(number, bth.WRITE_LAST_IMM, payload=16) for number in range(40)]
        for data in sent:
            source.send(data)
        got = sink.take()
        assert len(got) == 40
        places = set()
        for one in got:
            changed = int.from_bytes(one.data, "big") ^ int.from_bytes(sent[one.number], "big")
            assert changed.bit_count() == 1
            place = len(one.data) - 1 - (changed.bit_length() - 1) // 8
            assert 40 <= place < 40 + 16
            places.add((place, changed))
            assert wire.check(memoryview(one.data), with_icrc=True) is bth.Refusal.BAD_ICRC
        assert len(places) > 20, "at random places"
        assert fabric.port_counts()["h2", "port0"].in_corrupted == fabric.remove_rule(handle) == 40

    run(body, options)


def test_a_silent_switch_keeps_its_ports_and_passes_nothing(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        sink = Sink(fabric, "h2")
        sources = [Source(fabric, "h0", "h2", path, port=0xC000 + path) for path in (0, 1)]

        def arrive() -> list[int]:
            for path, source in enumerate(sources):
                for _ in range(5):
                    source.send(mrc_packet(path))
            got = Counter(one.number for one in sink.take(0.2))
            return [got[path] for path in (0, 1)]

        own = fabric.add_rule(CORE_LINK, "far", PortRule("drop", source=1))
        handles = fabric.silence("p0-t1-0")
        assert arrive() == [0, 5]
        fabric.verify()
        assert sum(fabric.remove_rule(handle) for handle in handles) >= 5
        assert arrive() == [5, 5], "the rule that was there before takes packets of h1 only"
        assert fabric.remove_rule(own) == 0

    run(body, options)


def test_a_rule_is_set_in_well_under_five_milliseconds(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        times = []
        for _ in range(200):
            start = time.perf_counter_ns()
            handles = fabric.silence("p0-t1-0")
            times.append(time.perf_counter_ns() - start)
            for handle in handles:
                fabric.remove_rule(handle)
        assert statistics.median(times) < 5_000_000 / 10
        handles = [fabric.add_rule(LAST_LINK, "near", PortRule("drop")) for _ in range(8)]
        with pytest.raises(FabricError, match="h2: add a rule at port0: it holds 8 rules already"):
            fabric.add_rule(LAST_LINK, "near", PortRule("drop"))

    run(body, options)
