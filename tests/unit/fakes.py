"""Stand-ins for what the runner acts on: a clock that moves only when somebody waits, a fabric that only listens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import pytest

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.delay import KernelDelay
from mrc_testbed.testbed.scenario import Occurrence
from mrc_testbed.testbed.switching.expected import Unplanned
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.port_counts import IpCounts, PortCounts, PortHits, SidCounts
from mrc_testbed.testbed.switching.port_rules import PortRule, RuleHandle
from mrc_testbed.testbed.switching.tables import Misled
from mrc_testbed.testbed.switching.thresholds import FLAWLESS, LevelFlaws
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan


class FakeClock:
    """CLOCK_MONOTONIC and a selector in one: waiting costs no time and comes out exact."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000_000

    def install(self, monkeypatch: pytest.MonkeyPatch) -> FakeClock:
        """Be the time of every module, and the selector of loops made from now on."""
        monkeypatch.setattr("time.monotonic_ns", lambda: self.now_ns)
        monkeypatch.setattr("selectors.DefaultSelector", lambda: self)
        return self

    def register(self, *_: Any) -> None:
        """Nothing is ever readable."""

    def unregister(self, *_: Any) -> None:
        """Nothing is ever readable."""

    def select(self, timeout_s: float) -> list[Any]:
        """Wait without waiting."""
        self.now_ns += round(timeout_s * 1e9)
        return []


class FakeFabric:
    """Notes what is done to it in `calls`. `refuses` holds the calls that raise."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.calls: list[tuple[Any, ...]] = []
        self.refuses: set[tuple[Any, ...]] = set()
        self.routes_left = 0
        self.dropped = 0
        self.sent_bytes = 0
        self.options = FabricOptions("dummy", "netem", "port program")
        self.pids = {"h0": 1}
        self.rules: dict[RuleHandle, tuple[str, str, PortRule]] = {}
        self.hits: dict[tuple[str, str], PortHits] = {}
        self.rates: dict[str, int] = {}
        self.down: set[Interface] = set()
        self.off: set[str] = set()
        self.misled: dict[Interface, Interface | None] = {}
        self.flaws: dict[str, LevelFlaws] = {}
        self.burdens: dict[str, tuple[bool, int]] = {}
        self.unplanned: frozenset[Unplanned] = frozenset()
        self.kernel_delay: KernelDelay | None = None

    def _called(self, *call: Any) -> None:
        self.calls.append(call)
        if call in self.refuses:
            raise FabricError(call[1], call[0], "refused by the test")

    def ports_down(self, ports: Iterable[Interface]) -> None:
        for port in ports:
            self._called("port_down", port.node, port.name)
            assert port not in self.down, "it is down already"
            self.down.add(port)

    def ports_up(self, ports: Iterable[Interface]) -> None:
        for port in ports:
            self._called("port_up", port.node, port.name)
            self.down.remove(port)

    def ports_held_down(self) -> list[Interface]:
        return sorted(self.down, key=lambda port: port.ifindex)

    def switch_off(self, switch: str) -> int:
        self._called("switch_off", switch)
        assert switch not in self.off, "it is off already"
        self.down.update(own for own, _ in self.plan.ports[switch])
        self.off.add(switch)
        return self.routes_left

    def switch_on(self, switch: str, ports: Iterable[Interface]) -> None:
        self._called("switch_on", switch)
        self.off.remove(switch)
        for port in ports:
            assert port.node == switch
            self.down.remove(port)

    def update_denylists(self, command: str, occurrence: Occurrence) -> None:
        """What the endpoints are told, noted with the rest."""
        self._called(command, *occurrence.targets, occurrence.hosts)

    def add_rule(self, link: str, toward: str, rule: PortRule) -> RuleHandle:
        self._called("add_rule", link, toward)
        ends = self.plan.link_by_name[link]
        handle = RuleHandle(ends.near if toward == "near" else ends.far, 0, len(self.calls))
        self.rules[handle] = (link, toward, rule)
        return handle

    def remove_rule(self, handle: RuleHandle) -> int:
        link, toward, _ = self.rules.pop(handle)
        self._called("remove_rule", link, toward)
        return 0

    def silence(self, switch: str, of_hosts: bool = False) -> list[RuleHandle]:
        self._called("silence", switch)
        return [self.add_rule(link.name, "near", PortRule("drop")) for link in self.plan.links_of(switch)]

    def verify_rules(self, handles: Iterable[RuleHandle]) -> None:
        wanted = set(handles)
        self._called("verify_rules", len(wanted))
        if wanted != self.rules.keys():
            raise FabricError("p0-t0-0", "read-back of the rules", "refused by the test")

    def mislead(self, switch: str, entries: Misled) -> None:
        self._called("mislead", switch)
        assert all(own.node == switch for own in entries)
        self.misled = {own: by for own, by in self.misled.items() if own.node != switch} | dict(entries)

    def set_flaws(self, switch: str, flaws: LevelFlaws) -> None:
        self._called("set_flaws", switch)
        self.flaws[switch] = flaws
        if flaws == FLAWLESS:
            del self.flaws[switch]

    def verify_flaws(self, flaws: Mapping[str, LevelFlaws]) -> None:
        if {switch: each for switch, each in flaws.items() if each != FLAWLESS} != self.flaws:
            raise FabricError(next(iter({**flaws, **self.flaws})), "read-back of levels", "refused by the test")

    def hinder(self, host: str, held: bool, per_packet_ns: int) -> None:
        """What a host is told of faults that hold it or slow it down."""
        self._called("hinder", host)
        self.burdens[host] = held, per_packet_ns
        if not held and not per_packet_ns:
            del self.burdens[host]

    def set_rate(self, link: str, rate_bps: int) -> None:
        self._called("set_rate", link, rate_bps)
        self.rates[link] = rate_bps
        if rate_bps == self.plan.shape.port_rate_bps:
            del self.rates[link]

    def rate_bps(self, link: str) -> int:
        return self.rates.get(link, self.plan.shape.port_rate_bps)

    def verify(self, only: Iterable[str]) -> None:
        self._called("verify", *sorted(only))

    def receive_drops(self) -> int:
        return self.dropped

    def queues(self) -> dict[str, Any]:
        return {"h0": {"port0": {"sent_packets": 5, "drops": 3, "control_drops": 1}}}

    def port_counts(self) -> dict[tuple[str, str], PortCounts]:
        return {("h0", "port0"): PortCounts(*range(len(fields(PortCounts))))}

    def port_hits(self) -> Iterable[tuple[tuple[str, str], PortHits]]:
        return list(self.hits.items())

    def watermarks(self) -> dict[tuple[str, str], int]:
        return {("p0-t0-0", "up0"): 4321}

    def sid_counts(self) -> dict[str, dict[str, SidCounts]]:
        return {"p0-t0-0": {"fcbb:bb00:1000::/48": SidCounts(6, 700)}}

    def without_sid(self) -> dict[str, int]:
        return {"p0-t0-0": 2}

    def ip_counts(self) -> dict[str, IpCounts]:
        return {"h0": IpCounts(7, 8, {"port0": 9})}

    def socket_losses(self) -> dict[str, int]:
        return {"h0": 4}

    def route_updates(self) -> dict[str, dict[str, dict[str, int]]]:
        return {"p0-t0-0": {"p0-t1-0": {"updates_sent": 2, "updates_received": 1}}}

    def has_all_routes(self) -> bool:
        return True

    def freeze_routes(self) -> None:
        self._called("freeze_routes")

    def route_changes(self) -> list[Any]:
        return []

    def sample_ports(self) -> list[tuple[Any, ...]]:
        return [("h0", "port0", 1, 2, 3, self.sent_bytes, 5, 6)]
