"""Hashed flows crowd: closed form, simulation and runs on the fabric agree; sprayed packets do not."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.planner.arithmetic.balls import crowding, expected_worst
from tests.unit.calls import Call

SEED = 1


@pytest.mark.parametrize(
    ("flows", "links", "worst"), [(256, 32, 1.8), (256, 256, 4.8), (256, 2048, 20.0), (2048, 256, 2.15)]
)
def test_closed_form_and_simulation_agree(flows: int, links: int, worst: float) -> None:
    found = crowding(flows, links, SEED)
    assert found.expected == pytest.approx(worst, rel=0.02)
    assert found.mean == pytest.approx(found.expected, rel=0.03)
    assert found.low <= found.mean <= found.high


@pytest.mark.parametrize(("links", "measured"), [(4, 1.3), (16, 1.75), (64, 3.0)])
def test_the_runs_of_the_story_lie_in_the_simulated_range(links: int, measured: float) -> None:
    """64 queue pairs over 4, 16 and 64 uplinks, as docs/stories.md has them."""
    found = crowding(64, links, SEED)
    assert found.low <= measured <= found.high
    assert found.sprayed < 1.1


def test_loads_that_do_not_know_of_each_other_are_too_few_by_a_little() -> None:
    """Two flows on two links: both on one in half of all throws, so 1.5; the closed form has 1.375."""
    assert expected_worst(2, 2) == pytest.approx(1.375)


def test_one_flow_is_all_of_the_load() -> None:
    assert expected_worst(1, 1) == 1
    assert crowding(1, 8, SEED).mean == 8


@given(st.integers(1, 300))
def test_more_links_make_the_tail_worse(flows: int) -> None:
    worst = [expected_worst(flows, links) for links in (1, 4, 16, 64, 256)]
    assert all(one < other for one, other in pairwise(worst))


def test_the_command_shows_it_and_repeats_itself(call: Call) -> None:
    ended = call("plan", "--balls", "--flows", "64", "--links", "4,64")
    assert ended.status == ExitCode.PASS
    assert "3.91" in ended.out
    rows = json.loads(call("plan", "--balls", "--flows", "64", "--links", "4,64", "--json", "-").out)["balls"]
    assert [row["links"] for row in rows] == [4, 64]
    assert call("plan", "--balls", "--flows", "64", "--links", "4,64").out == ended.out


@pytest.mark.parametrize("options", ["--flows 0", "--links 0", "--links many", "--flows 100000"])
def test_what_cannot_be_is_refused(call: Call, options: str) -> None:
    ended = call("plan", "--balls", *options.split())
    assert ended.status == ExitCode.USAGE
    assert options.split()[0] in ended.err
