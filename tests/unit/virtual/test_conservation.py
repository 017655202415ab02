"""The virtual network under random traffic and faults: no packet goes missing, none overtakes its like, no port is
faster than its rate, and the same seed gives the same run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.rc import wire as rc
from mrc_testbed.testbed.switching.port_rules import PortRule, RuleHandle
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing
from tests.examples import examples
from tests.port_cases import mrc_packet, rc_packet
from tests.unit.virtual.virtual_stage import FIRST_PORT, Stage

SHAPE = clos2_shape(planes=2, t0_groups=2, t1=2, hosts_per_t0=2, port_rate_bps=1_000_000_000, rtt_ns=200_000)
PLAN = build_plan(SHAPE)
LINKS = [link.name for link in PLAN.links]
SWITCHES = [switch.name for switch in PLAN.switches]
US = 1000
SAMPLE_NS = 37 * US
MOST_BYTES = 4300
CLASSES = (wire.CLASS_TRIMMABLE, wire.CLASS_TRIMMABLE_RETX, wire.CLASS_NO_TRIM, bth.CLASS_CONTROL)

times = st.integers(0, 2000).map(lambda us: us * US)
pairs = st.permutations([host.name for host in PLAN.hosts]).map(lambda names: (names[0], names[1]))


@dataclass(frozen=True)
class Burst:
    """Packets at once from one host to another on one of its paths."""

    at_ns: int
    pair: tuple[str, str]
    path: int
    count: int
    payload: int
    traffic_class: int


@dataclass(frozen=True)
class Fault:
    """What breaks a link or a switch for a while."""

    kind: Literal["cut", "slow", "lossy", "spoilt", "reboot", "silence"]
    at_ns: int
    for_ns: int
    link: str
    switch: str
    toward: Literal["near", "far"]


bursts = st.builds(
    Burst,
    times,
    pairs,
    st.integers(0, 7),
    st.integers(1, 40),
    st.sampled_from([0, 200, 4096]),
    st.sampled_from(CLASSES),
)
faults = st.builds(
    Fault, st.sampled_from(["cut", "slow", "lossy", "spoilt", "reboot", "silence"]), times, times,
    st.sampled_from(LINKS), st.sampled_from(SWITCHES), st.sampled_from(["near", "far"]),
)  # fmt: skip


class Story:
    """A stage with random traffic and faults. `broken`: the links that they cut."""

    def __init__(self, bursts: list[Burst], faults: list[Fault], routing: Routing) -> None:
        self.stage = Stage(SHAPE, routing=routing)
        self.fabric = self.stage.fabric
        self.broken: set[str] = set()
        self._down: dict[Any, int] = defaultdict(int)
        self._serial = 0
        for burst in bursts:
            self.stage.at(burst.at_ns, self._send, burst)
        for fault in faults:
            self.stage.at(fault.at_ns, self._inject, fault)

    def _send(self, burst: Burst) -> None:
        source = burst.pair[0]
        for _ in range(burst.count):
            self._serial += 1
            if self.stage.plan.routing is Routing.SRV6:
                self.stage.give(source, self._mrc(burst), self._address(burst), burst.traffic_class)
            else:
                flow = self.stage.flow(*burst.pair, FIRST_PORT + burst.path, burst.path % SHAPE.planes)
                self.stage.give(source, self._roce(burst), self.stage.destination(flow), burst.traffic_class)

    def _mrc(self, burst: Burst) -> bytes:
        if burst.traffic_class == bth.CLASS_CONTROL:
            return bytes([wire.SACK]) + bytes(8) + self._serial.to_bytes(3, "big") + bytes(wire.SACK_BYTES - 12)
        return mrc_packet(self._serial, payload=burst.payload)

    def _roce(self, burst: Burst) -> bytes:
        control = burst.traffic_class == bth.CLASS_CONTROL
        return rc_packet(rc.ACKNOWLEDGE if control else rc.WRITE_MIDDLE, self._serial, 8 if control else burst.payload)

    def _address(self, burst: Burst) -> Any:
        hosts = self.stage.plan.host_by_name
        paths = self.stage.plan.paths(*(hosts[name] for name in burst.pair))
        return self.stage.to(*burst.pair, burst.path % len(paths))

    def _inject(self, fault: Fault) -> None:
        heal = getattr(self, f"_{fault.kind}")(fault)
        self.stage.at(self.stage.scheduler.now_ns + fault.for_ns, heal)

    def _cut(self, fault: Fault) -> Callable[[], None]:
        self.broken.add(fault.link)
        return self._take([getattr(self.stage.plan.link_by_name[fault.link], fault.toward)])

    def _reboot(self, fault: Fault) -> Callable[[], None]:
        self.broken.update(link.name for link in self.stage.plan.links_of(fault.switch))
        return self._take([own for own, _ in self.stage.plan.ports[fault.switch]])

    def _take(self, ends: list[Any]) -> Callable[[], None]:
        for end in ends:
            self._down[end] += 1
        self.fabric.ports_down(ends)

        def give_back() -> None:
            for end in ends:
                self._down[end] -= 1
            self.fabric.ports_up([end for end in ends if not self._down[end]])

        return give_back

    def _slow(self, fault: Fault) -> Callable[[], None]:
        self.fabric.set_rate(fault.link, SHAPE.port_rate_bps // 7)
        return lambda: self.fabric.set_rate(fault.link, SHAPE.port_rate_bps)

    def _lossy(self, fault: Fault) -> Callable[[], None]:
        return self._rules(fault, PortRule("drop", 0.3))

    def _spoilt(self, fault: Fault) -> Callable[[], None]:
        return self._rules(fault, PortRule("corrupt", 0.5))

    def _rules(self, fault: Fault, rule: PortRule) -> Callable[[], None]:
        handle = self.fabric.add_rule(fault.link, fault.toward, rule)
        return lambda: self._forget([handle])

    def _silence(self, fault: Fault) -> Callable[[], None]:
        handles = self.fabric.silence(fault.switch)
        return lambda: self._forget(handles)

    def _forget(self, handles: Iterable[RuleHandle]) -> None:
        for handle in handles:
            self.fabric.remove_rule(handle)

    def run(self) -> None:
        """To the end, with a look at every port now and then."""
        before = list(self.fabric.sample_ports())
        while self.stage.scheduler.next_ns is not None:
            self.stage.run(SAMPLE_NS)
            now = list(self.fabric.sample_ports())
            for old, new in zip(before, now, strict=True):
                sent = new[5] - old[5]
                assert (sent - MOST_BYTES) * 8 * 10**9 <= SHAPE.port_rate_bps * SAMPLE_NS, new
            before = now


def assert_in_order(stage: Stage) -> None:
    """What was not trimmed arrives in the order in which it was sent, on each path and in each class."""
    for got in stage.got.values():
        last: dict[tuple[int, ...], int] = {}
        for one in got:
            number = int.from_bytes(one.data[9:12], "big")
            kind = one.traffic_class >> 2
            lane = (one.source, one.source_port, one.flow_label, kind == bth.CLASS_CONTROL >> 2)
            if kind not in (wire.DSCP_TRIMMED, wire.DSCP_TRIMMED_LASTHOP):
                assert number > last.get(lane, 0)
                last[lane] = number


@pytest.mark.parametrize("routing", Routing)
@settings(max_examples=examples(60), deadline=None)
@given(bursts=st.lists(bursts, min_size=8, max_size=40), faults=st.lists(faults, max_size=4))
@pytest.mark.nightly(keep=1)
def test_every_packet_is_delivered_or_its_loss_is_counted(
    routing: Routing, bursts: list[Burst], faults: list[Fault]
) -> None:
    story = Story(bursts, faults, routing)
    story.run()
    stage, ledger = story.stage, story.stage.ledger(tuple(story.broken))
    assert not ledger.unexplained
    assert ledger.data.sent == ledger.data.arrived + ledger.trimmed + ledger.data.all_dropped
    assert ledger.high.sent + ledger.trimmed == ledger.high.arrived + ledger.high.all_dropped
    assert ledger.data.arrived + ledger.high.arrived == sum(map(len, stage.got.values()))
    if not story.broken:
        assert not ledger.data.dropped["fault"] + ledger.high.dropped["fault"]
    if routing is Routing.SRV6:
        assert_in_order(stage)
    stage.fabric.verify_rules([])
    assert stage.fabric.ports_held_down() == []


@settings(max_examples=20, deadline=None)
@given(bursts=st.lists(bursts, min_size=3, max_size=20), faults=st.lists(faults, min_size=1, max_size=3))
def test_the_same_seed_gives_the_same_run(bursts: list[Burst], faults: list[Fault]) -> None:
    first, again = (Story(bursts, faults, Routing.SRV6) for _ in range(2))
    first.run()
    again.run()
    assert first.stage.got == again.stage.got
    assert first.fabric.port_counts() == again.fabric.port_counts()
