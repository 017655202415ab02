"""Flows that begin at random: each host has a Poisson process of its own, and a flow goes to any other host. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from mrc_testbed.testbed.workloads.sizes import SizeCdf

_NS = 1e9


class PoissonTerms(NamedTuple):
    """`load`: of the line rate `line` of a host, in bytes of payload per second; times in ns after the workload's
    start."""

    hosts: tuple[str, ...]
    sizes: SizeCdf
    load: float
    line: float
    start_ns: int
    for_ns: int
    name: str

    @property
    def mean_gap_ns(self) -> float:
        """Between two flows of a host."""
        return self.sizes.mean / (self.load * self.line) * _NS

    @property
    def expected_flows(self) -> float:
        """Of all hosts, in the mean."""
        return len(self.hosts) * self.for_ns / self.mean_gap_ns


@lru_cache(maxsize=8)
def poisson_flows(terms: PoissonTerms, seed: int) -> Mapping[tuple[str, str], tuple[tuple[int, int], ...]]:
    """Begin (ns) and bytes of each flow, by pair. The draws of a host depend on the seed, the entry and its name alone,
    so more hosts or a longer time leave what was before as it was, but for where flows go."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    gap_ns = terms.mean_gap_ns
    for place, host in enumerate(terms.hosts):
        dice = random.Random(f"{seed}/{terms.name}/{host}")
        at_ns = dice.expovariate(1) * gap_ns
        while at_ns < terms.for_ns:
            size, to = terms.sizes.size(dice.random()), dice.randrange(len(terms.hosts) - 1)
            pair = host, terms.hosts[to + (to >= place)]
            found.setdefault(pair, []).append((terms.start_ns + round(at_ns), size))
            at_ns += dice.expovariate(1) * gap_ns
    return {pair: tuple(flows) for pair, flows in found.items()}
