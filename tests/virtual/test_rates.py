"""Rates and round trips of hardware as people write them, in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.timing import Timing
from mrc_testbed.hosts.rc.failover import FailoverTimes
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.report.frames.run import load_run
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.transports.registry import TRANSPORTS
from tests.virtual.test_predictions import STEPS_WITHIN, about, ended, holds

TRAIN = """
name: rates
world: virtual
fabric: {planes: 4, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 100gbit, rtt: 10us}
workload: [{train: {hosts: all, steps: 4, warm_up: 1, compute: 20us, allreduce: 256KiB}}]
"""
FAILOVER = ["transport=roce", "fabric.layout=as-written", "roce.failover=port"]
BALANCED = [
    *("transport=roce", "fabric.layout=as-written", "ecmp.choose=adaptive"),
    *("roce.recovery=lossless", "roce.planes=balanced", "roce.buffers=deep"),
]


def scenario_of(*changes: str) -> Scenario:
    return load_scenario_text(TRAIN, overrides=[*changes, "expect=[]"])


def bounds(*changes: str) -> list[str]:
    shape = (scenario := scenario_of(*changes)).shape()
    return about("step_time.median", scenario.jobs[0].steps(shape).step_ns(shape), STEPS_WITHIN)


@pytest.mark.parametrize("rtt", ["2us", "10us", "200us"])
@pytest.mark.parametrize("rate", ["1gbit", "100gbit", "400gbit"])
@pytest.mark.nightly(keep=3)
def test_a_step_takes_as_long_as_predicted_at_any_rate_and_round_trip(tmp_path: Path, rate: str, rtt: str) -> None:
    """Hosts turned every 50 us at most, whatever T was: a step of 100 us took 500."""
    changes = [f"fabric.port_rate={rate}", f"fabric.rtt={rtt}"]
    assert holds(TRAIN, bounds(*changes), tmp_path, *changes)


@pytest.mark.parametrize("changes", [["transport=mrc-hashed", "endpoint.entropies=32"], FAILOVER, BALANCED])
def test_so_it_does_over_every_transport(tmp_path: Path, changes: list[str]) -> None:
    assert holds(TRAIN, bounds(*changes), tmp_path, *changes)


def test_the_base_round_trip_is_the_one_that_was_written(tmp_path: Path) -> None:
    folder = ended(TRAIN, [], tmp_path).folder
    assert folder is not None
    assert load_run(folder).base_rtt_ns == pytest.approx(10_000, rel=0.05)


def test_planes_of_400_gigabits_may_be_folded_into_one() -> None:
    folded = scenario_of("fabric.port_rate=400gbit", "transport=roce").shape()
    assert (folded.planes, folded.port_rate_bps) == (1, 1_600_000_000_000)


def test_least_times_of_hosts_follow_a_short_round_trip_and_no_long_one() -> None:
    assert [scenario_of(f"fabric.rtt={rtt}").shape().swift for rtt in ("0s", "10us", "999us", "1ms", "40ms")] == [
        *(1, 2000, 21, 1, 1),
    ]
    scaled = scenario_of("fabric.rtt=40ms", "fabric.port_rate=12.5mbit", "scale=real").shape()
    assert scaled.swift == scaled.speed == 8000


def test_what_a_library_sets_in_seconds_stays_in_seconds() -> None:
    """NCCL's 5 s are 5 s at 100 Gb/s, too; MRC's least timeout is one of daemons."""
    swift = scenario_of().shape()
    assert FailoverTimes().faster(swift.speed) == FailoverTimes()
    config = EndpointConfig(0, 4, 0xC000, rtt_ns=10_000, port_rate_bps=10**11, swift=swift.swift)
    assert Timing(config).rto_ns() < 5 * 10_000


@pytest.mark.parametrize(
    ("rate", "rtt", "instead"),
    [
        ("100gbit", "10us", "`port_rate: 25mbit` and `rtt: 40ms`"),
        ("5mbit", "500us", "`port_rate: 125kbit` and `rtt: 20ms`"),
        ("100kbit", "999us", "`port_rate: 100kbit` and `rtt: 1ms`"),
    ],
)
def test_on_the_kernel_they_are_refused_with_the_line_to_write(rate: str, rtt: str, instead: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_of("world=kernel", f"fabric.port_rate={rate}", f"fabric.rtt={rtt}")
    (mistake,) = caught.value.problems
    assert "hosts of this machine need 1 ms" in mistake.message.replace("1ms", "1 ms")
    assert mistake.message.endswith(f"add `world: virtual`, or write {instead}")


def test_a_fabric_without_a_delay_is_one_of_the_kernel() -> None:
    assert scenario_of("world=kernel", "fabric.rtt=0s").transport is TRANSPORTS["mrc"]
