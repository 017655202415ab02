"""The benchmark that holds the budget against eleven fabrics."""

from __future__ import annotations

import pytest

from benchmarks.believed import Result
from benchmarks.budget import FABRICS, FITS, Fabric, at_share, chosen, share_of, try_fabric
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.topos.budget import Capacity

MACHINE = Capacity(30_000, "calibrated")


def test_there_are_eleven() -> None:
    assert len({(fabric.name, fabric.trains) for fabric in FABRICS}) == 11


@pytest.mark.parametrize("fabric", FABRICS, ids=lambda fabric: f"{fabric.name}-{fabric.trains}")
def test_a_fabric_is_run_at_the_share_that_is_asked_for(fabric: Fabric) -> None:
    scenario = at_share(fabric, FITS, MACHINE)
    assert share_of(scenario, MACHINE) == pytest.approx(FITS, rel=0.01)
    assert offered_load(scenario).congested_pps == 0
    assert scenario.shape().plane_bdp_packets >= 14


@pytest.mark.parametrize(
    ("carries", "said"),
    [
        (1.0, ""),
        (0.8, "promises too much: 90% were not carried, 75% were"),
        (0.6, "promises too much: 90% were not carried, 75% neither"),
        (1.2, "allows too little: 110% were carried, 132% were not"),
        (1.4, "allows too little: 110% were carried, 132% too"),
    ],
)
def test_what_is_wrong_is_said(carries: float, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    def measure(scenario: Scenario) -> Result:
        return Result("" if share_of(scenario, MACHINE) <= carries else "timers late", {})

    assert try_fabric(FABRICS[-1], MACHINE, measure) == said
    told = capsys.readouterr().out
    assert told.startswith(" 64x4 permutation")
    assert ("timers late" in told) == (carries < 1.32)


def test_a_fabric_that_there_is_not_is_told() -> None:
    assert [fabric.name for fabric in chosen(["64x2"])] == ["64x2"]
    with pytest.raises(UsageError, match="9x9: no such fabric; there are 16x2"):
        chosen(["9x9"])
