"""Ports that pause each other: nothing is dropped, times as a closed form has them, nobody waits for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.rc import wire as rc
from mrc_testbed.testbed.switching.thresholds import MarkingCurve, PauseThresholds
from mrc_testbed.testbed.virtual.lossless import FRAME_BYTES, REACTIONS_PER_T, LosslessPort
from mrc_testbed.testbed.virtual.port_row import BYTES_AT
from mrc_testbed.topos import names
from mrc_testbed.topos.families.clos2 import Clos2, clos2_shape
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import Shape
from tests.examples import examples
from tests.port_cases import rc_packet
from tests.unit.virtual.test_port import RATES, Link, Offered, departures, packets
from tests.unit.virtual.virtual_stage import FIRST_PORT, OPTIONS, Stage

RATE_BPS, T_NS = 100_000_000_000, 13_000
GROUPS = clos2_shape(planes=1, t0_groups=2, t1=2, hosts_per_t0=3, port_rate_bps=RATE_BPS, rtt_ns=T_NS)
ONE_RACK = replace(GROUPS, family=Clos2(1, 0, 2))
BDP_BYTES = RATE_BPS * T_NS // (8 * 10**9)
NIC = names.port_of_plane(0)
WAY_BYTES = 14 + 40 + 8
"""Of a frame, before the UDP payload."""
DATA_BYTES = len(rc_packet(rc.WRITE_MIDDLE, 0, 4096)) + WAY_BYTES


def stage(shape: Shape = GROUPS, seed: int = 1, **levels: object) -> Stage:
    return Stage(shape, replace(OPTIONS, pause=PauseThresholds(**levels)), seed, Routing.ECMP_STATIC)  # type: ignore[arg-type]


def ports(there: Stage) -> dict[tuple[str, str], LosslessPort]:
    found = {(own.node, own.name): port for own, port in there.fabric._ports.items()}
    return {key: port for key, port in found.items() if isinstance(port, LosslessPort)}


def write(there: Stage, source: str, destination: str, number: int, payload: int = 4096) -> None:
    flow = there.flow(source, destination, FIRST_PORT + int(source[1:]))
    there.give(source, rc_packet(rc.WRITE_MIDDLE, number, payload), there.destination(flow), rc.CLASS_DATA)


def nobody_waits(there: Stage) -> bool:
    return not any(port.held_bytes or port.paused or port.queued_bytes() for port in ports(there).values())


def dropped(there: Stage) -> int:
    return sum(hits.dropped for _, hits in there.fabric.port_hits())


@given(packets, st.sampled_from(RATES))
def test_a_lossless_port_that_nobody_pauses_sends_as_any_port(offered: list[Offered], rate_bps: int) -> None:
    rules = stage().fabric.pause_rules
    assert rules
    link = Link(rate_bps, kind=LosslessPort, limits=rules)
    for number, packet in enumerate(offered):
        link.offer(number, packet)
    link.run()
    assert link.came == departures(offered, rate_bps)


writes = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(16, 4116), st.integers(0, 20_000))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(writes, min_size=1, max_size=400),
    st.integers(1, 5),
    st.floats(0.02, 2),
    st.floats(0.05, 1),
    st.integers(1, 99),
)
def test_nothing_is_ever_dropped(
    sent: list[tuple[int, int, int, int]], most_hosts: int, xoff: float, xon: float, seed: int
) -> None:
    """Incasts and mixtures of all kinds: everything arrives, no room is ever too small, and nobody waits for ever."""
    there = stage(seed=seed, xoff=xoff, xon=xoff * xon)
    real = [(f"h{a}", f"h{b % most_hosts}", size, at) for a, b, size, at in sent if a != b % most_hosts]
    for number, (source, destination, size, at_ns) in enumerate(real):
        there.at(at_ns, write, there, source, destination, number, size)
    there.run()
    assert sum(map(len, there.got.values())) == len(real)
    assert dropped(there) == 0
    assert nobody_waits(there)


def test_the_headroom_is_not_larger_than_it_has_to_be() -> None:
    """A port that hardly sends, and frames that wait for packets of the other way: some phase of the two fills it."""
    most, room = 0, 0
    twelve = 12 * DATA_BYTES / BDP_BYTES  # so that the one that passes it passes it by all of itself
    for late_ns in range(0, 340, 20):
        there = stage(replace(ONE_RACK, family=Clos2(1, 0, 3)), xoff=twelve, xon=0.1)
        there.fabric.set_rate("h1:p0-t0-0", RATE_BPS // 1000)
        for number in range(60):
            write(there, "h0", "h1", number)
            there.at(late_ns, write, there, "h2", "h0", number)
        there.run(100_000)
        assert dropped(there) == 0
        assert there.fabric.pause_rules is not None
        room = there.fabric.pause_rules.room_bytes
        most = max(most, *(port.most_held_bytes for port in ports(there).values()))
    assert room - DATA_BYTES < most <= room


def test_room_that_is_too_small_drops_and_counts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrc_testbed.testbed.virtual.fabric.headroom_bytes", lambda *_: 3000)
    there = stage(xoff=0.1, xon=0.05)
    for number in range(200):
        for source in ("h0", "h1", "h2", "h4", "h5"):
            write(there, source, "h3", number)
    there.run()
    assert dropped(there) == 1000 - len(there.got["h3"]) > 10


def test_one_overloaded_port_pauses_and_resumes_as_the_closed_form_has_it() -> None:
    """A port sends at half the rate at which packets come: between XON and XOFF its queue rises and falls at the same
    half rate, and passes both by what comes or leaves while a frame is sent and obeyed."""
    there = stage(ONE_RACK, xoff=1.0, xon=0.4)
    there.fabric.set_rate("h1:p0-t0-0", RATE_BPS // 2)
    count = 3000
    for number in range(count):
        write(there, "h0", "h1", number)
    there.run()
    nic = ports(there)["h0", NIC]
    slope = RATE_BPS / 2 / 8e9
    late_ns = FRAME_BYTES * 8e9 / RATE_BPS + T_NS // REACTIONS_PER_T
    swing_ns = 0.6 * BDP_BYTES / slope + 2 * late_ns
    all_ns = count * DATA_BYTES * 8e9 / (RATE_BPS / 2)
    # The packet that passes a level, and that which has begun: one more or less of the 25 of a swing.
    assert nic.pauses == pytest.approx(all_ns / (2 * swing_ns), rel=0.08)
    assert nic.paused_ns() / nic.pauses == pytest.approx(swing_ns, rel=0.08)
    # The slow port is never idle: the last packet leaves when as much has been sent at its rate.
    assert there.got["h1"][-1].at_ns == pytest.approx(all_ns, rel=0.002)


def test_packets_that_go_before_data_are_not_paused() -> None:
    there = stage(ONE_RACK, xoff=0.2, xon=0.1)
    there.fabric.set_rate("h1:p0-t0-0", RATE_BPS // 100)
    for number in range(100):
        write(there, "h0", "h1", number)
    there.run(20_000)
    assert ports(there)["h0", NIC].paused
    flow = there.destination(there.flow("h0", "h1"))
    there.give("h0", rc_packet(rc.ACKNOWLEDGE, 7, 4), flow, bth.CLASS_CONTROL)
    before = len(there.got["h1"])
    there.run(40_000)
    assert [got.data[0] for got in there.got["h1"][before:]].count(rc.ACKNOWLEDGE) == 1


def test_a_link_that_goes_down_takes_its_pauses_with_it() -> None:
    there = stage(xoff=0.2, xon=0.1)
    for number in range(300):
        for source in ("h0", "h1", "h2"):
            write(there, source, "h3", number)
    nic = ports(there)["h0", NIC]
    assert there.scheduler.run_until(lambda: nic.paused, 100_000)
    own = there.plan.link_by_name["h0:p0-t0-0"].near
    there.fabric.ports_down([own])
    assert not nic.paused
    there.run(5_000)
    there.fabric.ports_up([own])
    for number in range(50):
        write(there, "h0", "h3", number)
    there.run()
    assert nobody_waits(there)
    assert len(there.got["h3"]) > 650
    assert dropped(there) == 0


def test_marks_follow_the_curve_of_dcqcn_at_every_port_also_towards_hosts() -> None:
    """Between its levels a queue marks a share that grows to `most`, and above them everything."""
    there = stage(ONE_RACK, xoff=100, xon=99, marking=MarkingCurve(0.5, 20, 0.2))
    there.fabric.set_rate("h1:p0-t0-0", RATE_BPS // 1000)
    count = 1500
    for number in range(count):
        write(there, "h0", "h1", number)
    there.run(count * 400)
    marked = ports(there)["p0-t0-0", "down1"].out.row()
    rising, above = 19.5 * BDP_BYTES / DATA_BYTES, count - 20 * BDP_BYTES / DATA_BYTES
    assert marked[1] == pytest.approx(above + rising * 0.1, abs=3 * (rising * 0.1) ** 0.5 + 3)
    assert marked[BYTES_AT + 1] == marked[1] * DATA_BYTES


def test_the_books_balance() -> None:
    there = stage(xoff=0.1, xon=0.05)
    for number in range(100):
        for source in ("h0", "h1", "h2"):
            write(there, source, "h3", number)
    there.run()
    assert not there.ledger().unexplained


@pytest.mark.parametrize(("xoff", "xon"), [(1.0, 1.1), (0, 0), (1.0, 0)])
def test_levels_out_of_order_are_refused(xoff: float, xon: float) -> None:
    with pytest.raises(ValueError, match="xon must be above 0 and at most xoff"):
        PauseThresholds(xoff, xon)
