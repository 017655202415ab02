"""`fair_after` of runs in virtual time whose flows cannot be fair before a known moment."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.scenario import load_scenario
from tests.unit.virtual.test_run import quiet

SCENARIO = """\
name: fair
fabric: {planes: 2, t0_groups: 2, t1: 4, hosts_per_t0: 4}
world: virtual
workload:
  - write: {pairs: [h0->h4, h1->h5], for: 4s}
faults:
  - {at: 1s, link-down: "h0:p0-t0-0", for: 1s, name: cut}
expect: [qp_errors == 0]
"""
STRETCH_S = 0.1


@pytest.fixture(scope="module", params=[1, 8000])
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunRecord, int]:
    """The run, and how many times faster than written it is."""
    place = tmp_path_factory.mktemp("fair")
    path = place / "fair.yaml"
    path.write_text(SCENARIO)
    outcome = run_scenario(load_scenario(path, [f"scale={request.param}"]), place, True, quiet())
    assert outcome.folder is not None
    return load_record(outcome.folder), request.param


def seconds(finished: tuple[RunRecord, int], words: str) -> float:
    """A time as it is at the speed that is written."""
    record, speed = finished
    value = ask(record, words).value
    assert value is not None
    return value * speed


def test_flows_that_share_nothing_are_fair_from_the_second_stretch_on(finished: tuple[RunRecord, int]) -> None:
    """In the first one nothing has arrived for half a T."""
    assert seconds(finished, "fair_after.p100") == pytest.approx(STRETCH_S, abs=1e-6)


def test_a_host_with_half_of_its_ports_is_fair_when_they_are_back(finished: tuple[RunRecord, int]) -> None:
    """Not before the heal a second later, and some round trips of 40 ms after it."""
    assert 1 <= seconds(finished, "fair_after.p100 of h0->h4 during cut") <= 1 + 5 * STRETCH_S
    assert seconds(finished, "fair_after.p100 of h1->h5 during cut") == 0
