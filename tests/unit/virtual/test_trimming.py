"""How switches trim: what is refused, what waits with data, and what headers claim when switches leave them alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.runner.virtual_world import virtual_options
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.switching.classes import TrimRules
from mrc_testbed.testbed.switching.thresholds import PortThresholds
from mrc_testbed.testbed.virtual.tap import VirtualTap
from mrc_testbed.testbed.wireview.packet import Packet, parse
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.routes import Routing
from tests.port_cases import CORE, CORE_LINK, LAST, LAST_LINK, PAYLOAD, Arrived, mrc_packet
from tests.unit.virtual.test_tap import read, seen, tapped
from tests.unit.virtual.virtual_stage import OPTIONS, Stage

FILE = "name: x\nworkload: [{permutation: {for: 2s}}]\n"


def load(text: str) -> Scenario:
    return load_scenario_text(FILE + text)


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        ("trimming: {size: 120B}", "trimming.size", "would cut the PSN or the time stamp .*at byte 122.* least 124B"),
        ("trimming: {size: 126B}", "trimming.size", "multiple of 4 bytes up to 1024B"),
        ("trimming: {size: 2KiB}", "trimming.size", "multiple of 4 bytes up to 1024B"),
        ("trimming: {size: 0B}", "trimming.size", "multiple of 4 bytes up to 1024B"),
        ("trimming: {size: header}", "trimming.size", "did you mean 'headers'"),
        ("trimming: {size: 5}", "trimming.size", "must be `headers` or a size"),
        ("trimming: {size: 512B}\nendpoint: {payload: 256B}", "trimming.size", "398 bytes, so nothing would be"),
        ("trimming: {size: 80B}\ntransport: mrc-hashed", "trimming.size", "at byte 82.* least 84B"),
        ("trimming: {dscp: 64}", "trimming.dscp", "at most 63"),
        ("trimming: {dscp: 4}", "trimming.dscp", "is `endpoint.dscp.data`"),
        ("trimming: {dscp_last_hop: 46}", "trimming.dscp_last_hop", "is `endpoint.dscp.control`"),
        ("trimming: {queue: low}", "trimming.queue", "'first' or 'data'"),
        ("trimming: {rewrite_length: 1}", "trimming.rewrite_length", "true or false"),
        ("trimming: {rewrite_length: false}", "trimming.rewrite_length", "Linux drops .* --virtual"),
        ("trimming: {size: 128B}\nfabric: {switch: plain}", "trimming", "plain shapers trim nothing"),
        ("endpoint: {dscp: {control: 4}}", "endpoint.dscp.control", "is that of `data`"),
        ("endpoint: {dscp: {no_trim: 8}}", "endpoint.dscp.no_trim", "is that of `retransmission`"),
        ("endpoint: {dscp: {control: -1}}", "endpoint.dscp.control", "at least 0"),
    ],
)
def test_what_makes_no_sense_is_one_line_with_its_place(text: str, path: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why) as caught:
        load(text)
    (problem,) = caught.value.problems
    assert problem.path == path


def test_what_is_written_reaches_ports_and_needs_the_port_program() -> None:
    text = "endpoint: {dscp: {data: 1, control: 3}}\ntrimming: {size: 256B, dscp: 48, dscp_last_hop: 48, queue: data}"
    scenario = load(text)
    options = virtual_options(scenario)
    assert options.trimming == TrimRules(256, 48, 48, first=False)
    assert (options.marks.data, options.marks.control) == (1, 3)
    assert scenario.needs_port_program == "`trimming` as written"
    assert load("trimming: {size: headers}").needs_port_program == ""
    assert scenario.trimming.changed() == {"size": "256B", "dscp": 48, "dscp_last_hop": 48, "queue": "data"}


def test_a_transport_that_is_not_trimmed_ignores_both_groups() -> None:
    scenario = load("transport: roce\nendpoint: {dscp: {control: 3}}\ntrimming: {size: 4B, dscp: 3}")
    assert scenario.dscp_marks.control == 46
    assert "trimming" not in scenario.needs_port_program


def flooded(rules: TrimRules, packets: int = 400, thresholds: PortThresholds = OPTIONS.thresholds) -> Stage:
    """h0 fills the core link to h2, which is slow, and h2's link is slower still."""
    stage = Stage(options=replace(OPTIONS, trimming=rules, thresholds=thresholds))
    stage.fabric.set_rate(CORE_LINK, 1_000_000)
    stage.fabric.set_rate(LAST_LINK, 150_000)
    for number in range(packets):
        stage.give("h0", mrc_packet(number), stage.to("h0", "h2"), wire.CLASS_TRIMMABLE)
    stage.run()
    return stage


def test_trimmed_packets_go_before_data_or_wait_with_them() -> None:
    early = {}
    for first in (True, False):
        got = [Arrived(one.data, one.traffic_class) for one in flooded(TrimRules(first=first), 60).got["h2"]]
        cut = [place for place, one in enumerate(got) if len(one.data) < PAYLOAD]
        assert len(cut) >= 40
        early[first] = cut[-1] < len(got) - 5
    assert early == {True: True, False: False}


def test_trimmed_packets_that_wait_with_data_are_dropped_with_them_and_the_books_balance() -> None:
    stage = flooded(TrimRules(size_bytes=1024, first=False), 400, PortThresholds(drop=1.5))
    counts = stage.fabric.port_counts()
    assert counts[LAST].out_trimmed_dropped > 20
    assert counts[CORE].out_trimmed > counts[LAST].out_trimmed_dropped
    ledger = stage.ledger()
    assert not ledger.unexplained
    assert ledger.high.sent + ledger.trimmed == ledger.high.arrived + ledger.high.all_dropped


def test_one_dscp_for_all_is_what_both_kinds_of_ports_write() -> None:
    got = flooded(TrimRules(dscp=48, dscp_last_hop=48)).got["h2"]
    assert {one.traffic_class >> 2 for one in got if len(one.data) < PAYLOAD} == {48}


def cut_frames(rules: TrimRules, routing: Routing = Routing.SRV6) -> tuple[VirtualTap, Stage]:
    stage = Stage(options=replace(OPTIONS, trimming=rules), routing=routing)
    stage.fabric.set_rate(LAST_LINK, 1_000_000)
    tap = tapped(stage, LAST_LINK)
    plain = routing is not Routing.SRV6
    for number in range(30):
        way = stage.plain_to("h0", "h2", 0) if plain else stage.to("h0", "h2")
        stage.give("h0", mrc_packet(number), way, wire.CLASS_TRIMMABLE)
    stage.run()
    return tap, stage


@pytest.mark.parametrize(("size", "kept"), [(0, wire.DATA_HEADER_BYTES), (128, 26), (256, 154)])
@pytest.mark.parametrize("rewrite", [True, False])
def test_headers_say_what_is_left_or_what_was_sent(size: int, kept: int, rewrite: bool) -> None:
    """Byte for byte: these frames are the test vectors of switches that rewrite no length, which no kernel forwards."""
    tap, _ = cut_frames(TrimRules(size, rewrite_length=rewrite))
    frames = [packet for packet in seen(tap) if packet.wire_bytes < PAYLOAD]
    assert len(frames) == 6
    whole = len(mrc_packet(0))
    for packet in frames:
        frame = bytes(packet.frame)
        claimed = kept if rewrite else whole
        assert packet.wire_bytes == len(frame) == 102 + kept
        lengths = [int.from_bytes(frame[at : at + 2], "big") for at in (18, 58, 98)]
        assert lengths == [claimed + 48, claimed + 8, claimed + 8]
        classes = [int.from_bytes(frame[at : at + 2], "big") >> 4 & 0xFF for at in (14, 54)]
        outer = wire.DSCP_TRIMMED_LASTHOP << 2 | bth.ECN_ECT0
        assert classes == [outer, outer if rewrite else wire.CLASS_TRIMMABLE]
        found = parse(read(packet))
        assert isinstance(found, Packet)
        assert found.values["trimmed"]
        assert found.frame.trimmed == (0 if rewrite else whole - kept)
        assert ("address" in found.values) is (kept >= wire.DATA_HEADER_BYTES)
        assert not found.marks


def test_without_a_second_header_the_only_length_stays_too() -> None:
    tap, _ = cut_frames(TrimRules(128, rewrite_length=False), Routing.ECMP_STATIC)
    frames = [bytes(packet.frame) for packet in seen(tap) if packet.wire_bytes < PAYLOAD]
    assert len(frames) == 6
    for frame in frames:
        assert len(frame) == 128
        whole = len(mrc_packet(0)) + 8
        assert [int.from_bytes(frame[at : at + 2], "big") for at in (18, 58)] == [whole, whole]


@pytest.mark.parametrize("senders", [7, 15])
@pytest.mark.parametrize("size", [0, 128, 256])
def test_headers_take_the_share_of_the_last_hop_that_the_closed_form_has(senders: int, size: int) -> None:
    """N senders at line rate: of N packets in the time of one, p leave whole and N - p as s bytes, so that all of it
    fills the wire: (N - p) s / 4238 = (N - 1) s / (4238 - s)."""
    shape = clos2_shape(1, 1, 0, senders + 1, 25_000_000, 20_000_000)
    stage = Stage(shape, replace(OPTIONS, trimming=TrimRules(size)))
    tap = tapped(stage, "h0:p0-t0-0", snap_bytes=64)
    whole, each = 102 + len(mrc_packet(0)), 120
    for sender in range(1, senders + 1):
        for number in range(each):
            stage.give(f"h{sender}", mrc_packet(number), stage.to(f"h{sender}", "h0"), wire.CLASS_TRIMMABLE)
    stage.run()
    packets = [packet for packet in seen(tap) if not packet.outgoing]
    first = next(packet.wall_ns for packet in packets if packet.wire_bytes < whole)
    last = packets[0].wall_ns + each * whole * 8 * 1000 // 25
    steady = [packet.wire_bytes for packet in packets if first < packet.wall_ns < last]
    left = size or 138
    share = sum(each for each in steady if each < whole) / sum(steady)
    assert share == pytest.approx((senders - 1) * left / (4238 - left), rel=0.05)
