"""Frames carried through a plan balance without the port program, and each that vanishes is known by its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.checks.frame_balance import FrameBooks, frame_gaps
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.nodes import Host, Interface
from mrc_testbed.topos.plan import Plan, build_plan

PLAN = build_plan(clos2_shape(planes=2, t0_groups=2, t1=2, hosts_per_t0=2, port_rate_bps=25_000_000, rtt_ns=20_000_000))
CORE = "p0-t0-0:p0-t1-1"
PORT_FIELDS = ("sent_packets", "drops", "rx_packets", "multicast")
HOST_FIELDS = ("packets_out", "packets_in", "send_errors", "strangers", "socket_drops")


class Carried:
    """Books after random frames: some refused by the host, some dropped by queues and sockets, some multicast."""

    def __init__(self, plan: Plan, seed: int, frames: int = 300) -> None:
        self.plan, self.random = plan, Random(seed)
        ports = [(node, own.name) for node, ends in plan.ports.items() for own, _ in ends]
        self.ports = {port: Counter(dict.fromkeys(PORT_FIELDS, 0)) for port in ports}
        self.nodes = {node: Counter(icmp_in=0, icmp_out=0) for node in plan.node_names}
        self.hosts = {host.name: Counter(dict.fromkeys(HOST_FIELDS, 0)) for host in plan.hosts}
        for _ in range(frames):
            self.frame(*self.random.sample(plan.hosts, 2))
        for link in plan.links:
            self.say(link.near, link.far, self.random.randint(0, 3))
            self.say(link.far, link.near, self.random.randint(0, 3))
            self.report(link.near.node, link.near.name, link.far.node, link.far.name)

    def frame(self, source: Host, sink: Host) -> None:
        self.hosts[source.name]["packets_out"] += 1
        if self.random.random() < 0.02:
            self.hosts[source.name]["send_errors"] += 1
            return
        node = source.name
        for name in self.plan.links_on_path(source, sink, self.random.choice(self.plan.paths(source, sink)).id):
            link = self.plan.link_by_name[name]
            out, into = (link.near, link.far) if link.near.node == node else (link.far, link.near)
            if self.random.random() < 0.02:
                self.ports[node, out.name]["drops"] += 1
                return
            self.ports[node, out.name]["sent_packets"] += 1
            self.ports[into.node, into.name]["rx_packets"] += 1
            node = into.node
        self.hosts[sink.name][self.random.choice(("packets_in", "packets_in", "strangers", "socket_drops"))] += 1

    def say(self, own: Interface, peer: Interface, frames: int) -> None:
        """ICMPv6 from one kernel to the other."""
        self.ports[own.node, own.name]["sent_packets"] += frames
        self.ports[peer.node, peer.name]["rx_packets"] += frames
        self.nodes[own.node]["icmp_out"] += frames
        self.nodes[peer.node]["icmp_in"] += frames

    def report(self, node: str, port: str, peer: str, its_port: str) -> None:
        """A multicast frame, which goes no further."""
        self.ports[node, port].update(sent_packets=1, multicast=1)
        self.ports[peer, its_port]["rx_packets"] += 1

    def unexplained(self, *broken: str) -> dict[str, int]:
        gaps = frame_gaps(self.plan, FrameBooks(self.ports, self.nodes, self.hosts), broken)
        return {gap.place: gap.missing for gap in gaps if not gap.excused}


@settings(max_examples=25)
@given(st.integers(0, 1 << 32))
def test_frames_that_only_queues_and_sockets_drop_balance(seed: int) -> None:
    assert Carried(PLAN, seed).unexplained() == {}


def switch(books: Carried) -> None:
    books.hosts["h0"]["packets_out"] += 3
    books.ports["h0", "port0"]["sent_packets"] += 3
    books.ports["p0-t0-0", "down0"]["rx_packets"] += 3


def cable(books: Carried) -> None:
    switch(books)
    books.ports["p0-t0-0", "up1"]["sent_packets"] += 3


def nic(books: Carried) -> None:
    books.hosts["h0"]["packets_out"] += 3


def socket(books: Carried) -> None:
    books.hosts["h0"]["packets_in"] -= 3


@pytest.mark.parametrize(
    ("steal", "place"),
    [
        (cable, f"link {CORE} from p0-t0-0"),
        (switch, "p0-t0-0"),
        (nic, "NIC of h0"),
        (socket, "sockets of h0"),
    ],
)
def test_a_loss_is_known_by_its_place(steal: Callable[[Carried], None], place: str) -> None:
    books = Carried(PLAN, 1)
    steal(books)
    (found,) = books.unexplained().items()
    assert found[0] == place
    assert found[1] > 0


def test_a_link_that_was_down_explains_a_loss_but_no_frame_too_many() -> None:
    books = Carried(PLAN, 1)
    cable(books)
    assert books.unexplained(CORE) == {}
    books.ports["p0-t1-1", "down0"]["rx_packets"] += 10
    assert books.unexplained(CORE)[f"link {CORE} from p0-t0-0"] == -7


def test_a_frame_that_a_cut_link_lost_or_a_fault_copied_is_excused() -> None:
    books = Carried(PLAN, 1)
    books.ports["p0-t1-1", "down0"]["rx_packets"] -= 1
    books.ports["p0-t1-1", "down1"]["sent_packets"] -= 1
    place = f"link {CORE} from p0-t0-0"
    told = FrameBooks(books.ports, books.nodes, books.hosts)
    assert {gap.missing for gap in frame_gaps(PLAN, told, (CORE,)) if gap.place == place and gap.excused} == {1}
    assert not any(gap.excused for gap in frame_gaps(PLAN, told, (), (CORE,)))
    books.ports["p0-t1-1", "down0"]["rx_packets"] += 2
    assert {gap.missing for gap in frame_gaps(PLAN, told, (), (CORE,)) if gap.place == place and gap.excused} == {-1}


def test_a_switch_that_says_no_way_has_lost_nothing() -> None:
    """The packet that it answers is one of a daemon; the answer is one of no daemon, and no daemon gets it."""
    books = Carried(PLAN, 1)
    books.ports["p0-t0-0", "down0"].update(sent_packets=1)
    books.nodes["p0-t0-0"]["icmp_out"] += 1
    books.ports["h0", "port0"].update(rx_packets=1)
    books.nodes["h0"]["icmp_in"] += 1
    assert books.unexplained() == {}


def test_hosts_that_count_no_packets_leave_the_books_of_cables_and_switches() -> None:
    books = Carried(PLAN, 1)
    nic(books)
    cable(books)
    gaps = frame_gaps(PLAN, FrameBooks(books.ports, books.nodes, None), ())
    assert [gap.place for gap in gaps] == [f"link {CORE} from p0-t0-0"]
