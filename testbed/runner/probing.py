"""What hosts are asked to probe for the mapper, and how often: no more than the machine has room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mrc_testbed.testbed.mapper.probing import ProbeRoute, probe_routes
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.mapper import TIMEOUT_RTTS
from mrc_testbed.testbed.scenario.text.units import format_duration
from mrc_testbed.topos.plan import Plan

PROBES_SHARE = 0.02
"""Of the packets a second that the machine carries, and of the rate of each link, at most."""
_FRAME_BITS = 8 * (14 + 40 + 40 + 8 + 24)
"""Of a probe on its way: Ethernet, both IPv6 headers, UDP and what it says (hosts/probe_socket.py)."""
OF_MACHINE, OF_LINK = "of the packets that this machine carries", "of what a link carries"


@dataclass(frozen=True, slots=True)
class Probing:
    """Of a run. `routes`: of each host; `period_ns`: every probe leaves once in it; `asked_ns`: the same, as the
    scenario has it; `limit`: what makes it longer."""

    routes: Mapping[str, tuple[ProbeRoute, ...]]
    period_ns: int
    asked_ns: int
    limit: str = OF_MACHINE

    @property
    def warning(self) -> str:
        """That it is less often than asked for; empty where it is not."""
        if self.period_ns == self.asked_ns:
            return ""
        many = sum(map(len, self.routes.values()))
        room = f"{many} probes each {format_duration(self.asked_ns)} are more than {PROBES_SHARE:.0%} {self.limit}"
        return f"mapper.period: {room}; it is {format_duration(self.period_ns)} instead"

    def record(self) -> dict[str, Any]:
        """What environment.json says of it."""
        return {"period_ns": self.period_ns, "probes": sum(map(len, self.routes.values()))}

    def request(self, scenario: Scenario, plan: Plan, host: str) -> dict[str, Any]:
        """The fields of the command `map` for a host."""
        own, rtt_ns = plan.host_by_name[host], plan.shape.rtt_ns
        return {
            "address": own.address,
            "dscp": scenario.dscp_marks.control,
            "period_ns": self.period_ns,
            "timeout_ns": TIMEOUT_RTTS * rtt_ns or max(self.period_ns // 2, 1),
            "seed": scenario.seed << 16 ^ own.index,
            "targets": [[route.plane, route.address] for route in self.routes[host]],
        }


def probing_of(scenario: Scenario, plan: Plan, most_pps: float | None) -> Probing | None:
    """None where there is no mapper, it hears no probes, or hosts choose no paths. `most_pps`: what the machine carries
    in packets a second; None: as many as are asked for."""
    settings = scenario.mapper
    if settings is None or not settings.probes or not scenario.transport.names_paths:
        return None
    routes = probe_routes(plan, SuspectTable(plan), settings.owners, scenario.host_names)
    asked_ns = settings.period_ns(plan.shape.rtt_ns)
    least_ns = {OF_LINK: _busiest_ns(plan, routes) / PROBES_SHARE}
    if most_pps is not None:
        least_ns[OF_MACHINE] = sum(map(len, routes.values())) * 1e9 / (PROBES_SHARE * most_pps)
    limit = max(least_ns, key=lambda one: least_ns[one])
    return Probing(routes, max(asked_ns, _whole_ms(least_ns[limit])), asked_ns, limit)


def _busiest_ns(plan: Plan, routes: Mapping[str, tuple[ProbeRoute, ...]]) -> float:
    """The longest that a link needs for all probes that cross it once, one way."""
    crossing = Counter(link for probes in routes.values() for probe in probes for link in probe.links)
    links = plan.link_by_name
    return max((count * _FRAME_BITS * 1e9 / links[name].rate_bps for name, count in crossing.items()), default=0.0)


def _whole_ms(value_ns: float) -> int:
    return -int(-value_ns // 1_000_000) * 1_000_000
