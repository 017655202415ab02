"""Max-min fair shares of flows over the ports of their hosts and the links that their ways cross. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from mrc_testbed.topos.bundles import Pair, bundles, busiest
from mrc_testbed.topos.shape import Shape


class Demand(NamedTuple):
    """A flow that takes all it can get. `weight`: its QPs, each with its own share."""

    src: int
    dst: int
    weight: int


class Bottleneck(NamedTuple):
    """What can be full: the ports of a host in one direction, or links that the same ways cross. `room`: bytes of
    payload per second; `parts`: by flow, which part of its rate passes here."""

    room: float
    parts: Mapping[str, float]


def line_rate(shape: Shape) -> float:
    """What one host can send or receive, in bytes of payload per second: full packets over all its ports."""
    return shape.planes * shape.port_rate_bps / 8 * shape.payload_bytes / shape.wire_bytes


def max_min_shares(shape: Shape, demands: Mapping[str, Demand]) -> dict[str, float]:
    """The rate of each flow, in bytes of payload per second, under max-min fairness without faults. Each flow spreads
    its packets evenly over the ways of its pair.

    Rates grow together, by weight, until a bottleneck is full; its flows keep their rate, the others go on (progressive
    filling: Bertsekas and Gallager, Data Networks, 6.5.2).
    """
    line = line_rate(shape)
    bottlenecks = [*_of_hosts(line, demands), *_of_links(shape, line, demands)]
    room = [one.room for one in bottlenecks]
    shares = dict.fromkeys(demands, 0.0)
    growing = set(demands)
    while growing:
        weights = [_weight(demands, one.parts, growing) for one in bottlenecks]
        step = min(left / weight for left, weight in zip(room, weights, strict=True) if weight)
        for name in growing:
            shares[name] += step * demands[name].weight
        room = [left - step * weight for left, weight in zip(room, weights, strict=True)]
        full = [one.parts for one, left in zip(bottlenecks, room, strict=True) if left <= line * 1e-9]
        growing = growing.difference(*full)
    return shares


def _of_hosts(line: float, demands: Mapping[str, Demand]) -> Iterator[Bottleneck]:
    sending: dict[int, dict[str, float]] = {}
    receiving: dict[int, dict[str, float]] = {}
    for name, demand in demands.items():
        sending.setdefault(demand.src, {})[name] = 1
        receiving.setdefault(demand.dst, {})[name] = 1
    for parts in (*sending.values(), *receiving.values()):
        yield Bottleneck(line, parts)


def _of_links(shape: Shape, line: float, demands: Mapping[str, Demand]) -> Iterator[Bottleneck]:
    family = shape.family
    between: dict[Pair, list[str]] = {}
    for name, demand in demands.items():
        if pair := pair_of(shape, demand.src, demand.dst):
            between.setdefault(pair, []).append(name)
    for bundle in bundles(family, between):
        parts = {name: part for pair, part in bundle.parts.items() for name in between[pair]}
        yield Bottleneck(line * bundle.rate, parts)


def pair_of(shape: Shape, src: int, dst: int) -> Pair | None:
    """The T0s of two hosts; None with a host that the fabric does not have, as in files that are not valid."""
    family = shape.family
    return (family.t0_of(src), family.t0_of(dst)) if max(src, dst) < family.hosts else None


def links_ns(shape: Shape, sent: Mapping[Pair, float]) -> float:
    """How long the busiest links between switches are with what hosts on one T0 send to those on another one, in bytes
    of payload; 0 without any."""
    return busiest(shape.family, sent) * (1e9 / line_rate(shape))


def _weight(demands: Mapping[str, Demand], parts: Mapping[str, float], growing: Collection[str]) -> float:
    return sum(demands[name].weight * part for name, part in parts.items() if name in growing)
