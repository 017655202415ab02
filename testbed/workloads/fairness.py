"""Max-min fair shares of flows over the ports of their hosts and the uplinks of their groups. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mrc_testbed.topos.shape import Shape

Resource = tuple[str, int]
"""A resource that can be full: a direction of a host or a group, and its number."""


class Demand(NamedTuple):
    """A flow that takes all it can get. `weight`: its QPs, each with its own share."""

    src: int
    dst: int
    weight: int


def line_rate(shape: Shape) -> float:
    """What one host can send or receive, in bytes of payload per second: full packets over all its ports."""
    return shape.planes * shape.port_rate_bps / 8 * shape.payload_bytes / shape.wire_bytes


def max_min_shares(shape: Shape, demands: Mapping[str, Demand]) -> dict[str, float]:
    """The rate of each flow, in bytes of payload per second, under max-min fairness without faults.

    Rates grow together, by weight, until a resource is full; its flows keep their rate, the others go on (progressive
    filling: Bertsekas and Gallager, Data Networks, 6.5.2).
    """
    line = line_rate(shape)
    users: dict[Resource, set[str]] = {}
    for name, demand in demands.items():
        for resource in _resources(shape, demand):
            users.setdefault(resource, set()).add(name)
    room = {resource: line * (shape.t1 if _is_uplink(resource) else 1) for resource in users}
    shares = dict.fromkeys(demands, 0.0)
    growing = set(demands)
    while growing:
        weights = {resource: _weight(demands, names & growing) for resource, names in users.items()}
        step = min(room[resource] / weight for resource, weight in weights.items() if weight)
        for name in growing:
            shares[name] += step * demands[name].weight
        for resource, weight in weights.items():
            room[resource] -= step * weight
        full = [names for resource, names in users.items() if room[resource] <= line * 1e-9]
        growing = growing.difference(*full)
    return shares


def _resources(shape: Shape, demand: Demand) -> list[Resource]:
    """Ports of both hosts, and the links of both groups to the T1s where the flow leaves its group."""
    source, target = demand.src // shape.hosts_per_t0, demand.dst // shape.hosts_per_t0
    ports = [("sends", demand.src), ("receives", demand.dst)]
    return ports if source == target else [*ports, ("up", source), ("down", target)]


def _is_uplink(resource: Resource) -> bool:
    return resource[0] in ("up", "down")


def _weight(demands: Mapping[str, Demand], names: Iterable[str]) -> int:
    return sum(demands[name].weight for name in names)
