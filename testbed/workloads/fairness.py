"""Max-min fair shares of flows over the ports of their hosts and the links that their ways cross. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from mrc_testbed.topos.graph import Family, SwitchPlace
from mrc_testbed.topos.shape import Shape

Pair = tuple[int, int]
"""Two T0s, by number: where flows come from and where they go to."""
Crossing = tuple[SwitchPlace, SwitchPlace]
"""A link between switches in one of its directions."""


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


class Bundle(NamedTuple):
    """Links of a plane that the same ways cross, so they are loaded alike. `ways`: by pair of T0s, how often its ways
    cross any of them; `rate`: of all, at that of the slowest, in shares of the port rate."""

    ways: Mapping[Pair, int]
    rate: float


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
        parts = {
            name: ways / len(family.ways_of(*pair)) for pair, ways in bundle.ways.items() for name in between[pair]
        }
        yield Bottleneck(line * bundle.rate, parts)


def pair_of(shape: Shape, src: int, dst: int) -> Pair | None:
    """The T0s of two hosts; None with a host that the fabric does not have, as in files that are not valid."""
    family = shape.family
    return (family.t0_of(src), family.t0_of(dst)) if max(src, dst) < family.hosts else None


def bundles(family: Family, pairs: Collection[Pair]) -> Iterator[Bundle]:
    """The links that ways between these T0s cross, those together that the same ways cross."""
    crossed: dict[Crossing, Counter[Pair]] = {}
    for pair in pairs:
        for way in family.ways_of(*pair):
            for crossing in pairwise(way):
                crossed.setdefault(crossing, Counter())[pair] += 1
    alike: dict[frozenset[tuple[Pair, int]], list[Crossing]] = {}
    for crossing, ways in crossed.items():
        alike.setdefault(frozenset(ways.items()), []).append(crossing)
    for together in alike.values():
        counts = {pair: len(together) * ways for pair, ways in crossed[together[0]].items()}
        yield Bundle(counts, len(together) * min(family.rate_shares[crossing] for crossing in together))


def links_ns(shape: Shape, sent: Mapping[Pair, float]) -> float:
    """How long the busiest links between switches are with what hosts on one T0 send to those on another one, in bytes
    of payload; 0 without any."""
    family, line = shape.family, line_rate(shape)
    return max(
        (
            sum(sent[pair] * ways / len(family.ways_of(*pair)) for pair, ways in bundle.ways.items()) / bundle.rate
            for bundle in bundles(family, sent)
        ),
        default=0.0,
    ) * (1e9 / line)


def _weight(demands: Mapping[str, Demand], parts: Mapping[str, float], growing: Collection[str]) -> float:
    return sum(demands[name].weight * part for name, part in parts.items() if name in growing)
