"""A full port of the own host: passed over, or waited for."""

from __future__ import annotations

import pytest

from mrc_testbed.hosts.mrc.config import PASS, WAIT
from tests.sim.simnet import RATE, Net, T, pattern
from tests.sim.test_endpoint_keys import net
from tests.sim.test_transfer import PACKET

FRAME = PACKET + 142
"""Bytes on the wire of a full packet."""
RECORDED = 169226880, 455, 5
"""A transfer in strict turns: ns, packets sent, and sent again; before there was a choice."""


def sent(story: Net, ticks: int, host: int = 0) -> list[int]:
    """Data packets by plane in that many T, after some in which flows settle."""
    peers = [peer for peer in story.hosts if peer != host]
    story.run(within=20 * T, must=False)
    before = [sum(each) for each in zip(*(story.plane_packets(host, peer) for peer in peers), strict=True)]
    story.run(within=ticks * T, must=False)
    after = [sum(each) for each in zip(*(story.plane_packets(host, peer) for peer in peers), strict=True)]
    return [new - old for old, new in zip(before, after, strict=True)]


def share(packets: list[int], ticks: int) -> float:
    """The share of the line rate of all ports."""
    return sum(packets) * FRAME * 8e9 / (len(packets) * RATE * ticks * T)


def send_for_ever(story: Net, *peers: int) -> None:
    data = pattern(1 << 25)
    for peer in peers:
        story.join(0, peer, region_bytes=1 << 25).write(data)


@pytest.mark.parametrize(("does", "least", "most"), [("pass", 0.98, 1.01), ("wait", 0.80, 0.92)])
def test_key_busy_port_a_peer_without_a_port_leaves_no_port_idle(does, least, most):
    """Host 0 sends to two peers, and one has lost one port of four."""
    story = net(f"busy_port: {does}", hosts=3)
    story.port_down(2, 3)
    send_for_ever(story, 1, 2)
    packets = sent(story, 60)
    assert least < share(packets, 60) < most, packets
    if does == "pass":
        assert min(packets) > 0.97 * max(packets)


def test_a_full_port_is_passed_over():
    """A port that another QP has filled is not waited for; its plane has turns again when it has room."""
    for does, moved in ((PASS, True), (WAIT, False)):
        story = Net(busy_port=does)
        flow = story.join()
        sender = story.hosts[0]._qps[flow.qpn[0]].sender
        plane, pacer = sender.selection.turn, story.hosts[0]._context.pacer
        pacer.hold(plane, story.now)
        flow.write(pattern(40 * PACKET))
        story.run(within=2 * T, must=False)
        packets = story.plane_packets()
        assert packets[plane] == 0
        assert sum(packets) == (40 if moved else 0)


def test_without_a_full_port_planes_are_as_equal_as_with_strict_turns():
    counts = {}
    for does in (PASS, WAIT):
        story = Net(busy_port=does)
        send_for_ever(story, 1)
        counts[does] = sent(story, 100)
    assert max(counts[PASS]) - min(counts[PASS]) <= 0.01 * max(counts[PASS])
    assert sum(counts[PASS]) == pytest.approx(sum(counts[WAIT]), rel=0.01)


def test_what_waits_keeps_its_results():
    """To the last digit."""
    story = Net(busy_port=WAIT, seed=7)
    story.worsen(loss=0.01)
    flow = story.join()
    for number in range(3):
        flow.write(pattern(150 * PACKET), wr_id=number)
    taken = story.run(lambda: len(story.completed()) == 3, within=200 * T)
    counters = story.counters()
    assert (taken, counters["data_sent"], counters["retransmitted"]) == RECORDED
