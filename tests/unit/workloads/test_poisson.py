"""Distributions of sizes, and flows that begin at random."""

from __future__ import annotations

import random
import statistics
from itertools import pairwise

import pytest

from mrc_testbed.testbed.workloads.poisson import PoissonTerms, poisson_flows
from mrc_testbed.testbed.workloads.sizes import SIZES, SizeCdf, read_cdf
from mrc_testbed.testbed.workloads.trace import TraceMistake

S = 10**9


def test_sizes_lie_on_lines_between_the_points() -> None:
    cdf = read_cdf("# of a test\n0 0\n\n100 50\n100 60\n1000 100\n")
    assert [cdf.size(share) for share in (0, 0.25, 0.5, 0.55, 0.6, 0.8, 1)] == [1, 50, 100, 100, 100, 550, 1000]
    assert cdf.mean == pytest.approx(0.5 * 50 + 0.1 * 100 + 0.4 * 550)


def test_the_named_ones_have_the_means_of_their_points() -> None:
    assert SIZES["websearch"].mean == pytest.approx(1_711_250)
    assert SIZES["hadoop"].mean == pytest.approx(120_420.75)
    assert [cdf.size(1) for cdf in SIZES.values()] == [30_000_000, 10_000_000]


@pytest.mark.parametrize("name", SIZES)
def test_draws_have_the_mean(name: str) -> None:
    dice = random.Random(7)
    drawn = [SIZES[name].size(dice.random()) for _ in range(50_000)]
    assert statistics.fmean(drawn) == pytest.approx(SIZES[name].mean, rel=0.03)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "does not end at 100 %; the last line must have the largest size and 100"),
        ("0 0\n10 90\n", 2, "does not end at 100 %"),
        ("5 10\n10 100\n", 1, "begins at 10 %; the first line must have 0 %, such as 0 0"),
        ("0 0\n10\n", 2, "is no point of a distribution; write `bytes percent`, such as 10000 15"),
        ("0 0\n10 20 30\n", 2, "is no point of a distribution"),
        ("0 0\n10,20\n", 2, "is no point of a distribution"),
        ("0 0\n10 101\n", 2, "has 101 %, and must have 0 to 100"),
        ("0 0\nnan 50\n", 2, "has a size of nan"),
        ("0 0\n1e99 100\n", 2, "has a size of 1e99, and must have one from 0 to 1099511627776 bytes"),
        ("0 0\n10 60\n5 100\n", 3, "falls below the line before it; sizes and percentages must not fall"),
        ("0 0\n10 60\n20 50\n", 3, "falls below the line before it"),
    ],
)
def test_a_mistake_in_a_distribution_has_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(TraceMistake) as caught:
        read_cdf(text)
    assert caught.value.line == line
    assert str(caught.value).startswith(message)


def terms(hosts: int = 8, load: float = 0.5, for_ns: int = 100 * S, cdf: SizeCdf | None = None) -> PoissonTerms:
    names = tuple(f"h{number}" for number in range(hosts))
    return PoissonTerms(names, cdf or SizeCdf(((1000, 0), (1000, 100))), load, 1e5, 5 * S, for_ns, "poisson")


def test_flows_come_at_the_load_from_each_host_to_any_other() -> None:
    drawn = poisson_flows(terms(), 1)
    flows = [(src, dst, *flow) for (src, dst), each in drawn.items() for flow in each]
    assert terms().expected_flows == pytest.approx(8 * 100 * 50)
    assert len(flows) == pytest.approx(40_000, rel=0.03)
    assert all(5 * S <= start_ns < 105 * S and size == 1000 for _, _, start_ns, size in flows)
    assert len(drawn) == 56
    assert {len(each) for each in drawn.values()} <= {*range(600, 830)}
    assert all(list(each) == sorted(each) for each in drawn.values())
    begins = sorted(start_ns for src, _, start_ns, _ in flows if src == "h3")
    gaps = [later - earlier for earlier, later in pairwise(begins)]
    assert statistics.stdev(gaps) == pytest.approx(statistics.fmean(gaps), rel=0.05), "exponential"


def test_the_seed_decides_and_a_longer_time_only_adds() -> None:
    short, longer, other = (poisson_flows(terms(for_ns=t * S), seed) for t, seed in ((1, 1), (2, 1), (1, 2)))
    assert short != other
    assert all(longer[pair][: len(flows)] == flows for pair, flows in short.items())
