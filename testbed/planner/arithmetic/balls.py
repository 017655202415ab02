"""Balls into buckets: how evenly flows load links, where a hash gives each flow one link and where senders spray.

A hash throws flows on links as balls into buckets. With more links each has fewer flows on average, and the busiest
comes down more slowly: the ratio of the two grows. Sprayed packets are many more balls, and load all links alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log

from mrc_testbed.testbed.arrays import np

PACKETS = 1000
"""Packets of a sprayed flow, each on a link of its own choice: taking turns, as senders do, is more even still."""
TRIALS = 1000
MOST = 16_384
"""Links and flows at most, so that a simulation takes seconds."""
_CELLS = 4_000_000
"""Loads simulated at a time."""


@dataclass(frozen=True, slots=True)
class Crowding:
    """Load of the busiest link over the mean. `expected`: by the closed form; `low`, `mean`, `high`: of a simulation,
    with its 5th and 95th percentile; `sprayed`: the mean of a simulation of sprayed packets."""

    flows: int
    links: int
    expected: float
    low: float
    mean: float
    high: float
    sprayed: float


def expected_worst(flows: int, links: int) -> float:
    """Expected load of the busiest link over the mean, flows hashed evenly and independently.

    E[max] = sum over k of P(max > k), with P(max <= k) = P(load of one <= k) ^ links: loads as if links did not know of
    each other, each binomial. That is low where flows are few: by 2 % for 64 on
    64 links, by a third for a single one.
    """
    if links == 1:
        return 1.0
    total, below = 0.0, 0.0
    for load in range(flows):
        below = min(1.0, below + exp(_log_binomial(flows, load, 1 / links)))
        total += 1 - below**links
    return total * links / flows


def _log_binomial(count: int, hits: int, chance: float) -> float:
    ways = lgamma(count + 1) - lgamma(hits + 1) - lgamma(count - hits + 1)
    return ways + hits * log(chance) + (count - hits) * log(1 - chance)


def simulated_worst(balls: int, links: int, seed: int) -> list[float]:
    """Load of the busiest link over the mean in each of TRIALS throws, sorted."""
    generator = np.random.default_rng(seed)
    chances = np.full(links, 1 / links)
    worst: list[float] = []
    while len(worst) < TRIALS:
        rows = min(max(1, _CELLS // links), TRIALS - len(worst))
        loads = generator.multinomial(balls, chances, size=rows)
        worst += [float(each) for each in loads.max(axis=1) * links / balls]
    return sorted(worst)


def crowding(flows: int, links: int, seed: int) -> Crowding:
    """All of it for one number of flows and of links, each MOST at most."""
    hashed = simulated_worst(flows, links, seed)
    sprayed = simulated_worst(flows * PACKETS, links, seed)
    return Crowding(
        flows=flows,
        links=links,
        expected=expected_worst(flows, links),
        low=hashed[TRIALS // 20],
        mean=sum(hashed) / TRIALS,
        high=hashed[-TRIALS // 20 - 1],
        sprayed=sum(sprayed) / TRIALS,
    )
