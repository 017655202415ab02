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
workload: [{train: {hosts: [h0, h2, h1, h3], steps: 4, warm_up: 1, compute: 20us, allreduce: 2MiB}}]
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


@pytest.mark.parametrize(
    ("rate", "rtt"),
    [
        *(("100gbit", "2us"), ("400gbit", "10us"), ("10gbit", "100us"), ("400gbit", "1ms"), ("1gbit", "1ms")),
        *(("100gbit", "10us"), ("400gbit", "2us"), ("100gbit", "100ms"), ("1gbit", "100ms")),
    ],
)
@pytest.mark.nightly(keep=5)
def test_a_step_takes_as_long_as_predicted_at_any_rate_and_round_trip(tmp_path: Path, rate: str, rtt: str) -> None:
    """Hosts turned every 50 us, and some 100 us late, whatever T and rate were: a step of 100 us took 500."""
    changes = [f"fabric.port_rate={rate}", f"fabric.rtt={rtt}"]
    assert holds(TRAIN, bounds(*changes), tmp_path, *changes)


@pytest.mark.parametrize("transport", [["transport=mrc-hashed", "endpoint.entropies=32"], FAILOVER, BALANCED])
def test_so_it_does_over_every_transport(tmp_path: Path, transport: list[str]) -> None:
    """In pairs on one T0, where no hash has flows collide."""
    changes = [*transport, "workload.0.train.hosts=[h0, h1]"]
    assert holds(TRAIN, bounds(*changes), tmp_path, *changes)


def test_the_base_round_trip_is_the_one_that_was_written(tmp_path: Path) -> None:
    folder = ended(TRAIN, [], tmp_path).folder
    assert folder is not None
    assert load_run(folder).base_rtt_ns == pytest.approx(10_000, rel=0.05)


def test_planes_of_400_gigabits_may_be_folded_into_one() -> None:
    folded = scenario_of("fabric.port_rate=400gbit", "transport=roce").shape()
    assert (folded.planes, folded.port_rate_bps) == (1, 1_600_000_000_000)


@pytest.mark.parametrize(
    ("rtt", "rate", "swift"),
    [
        *(("0s", "25mbit", 1), ("10us", "25mbit", 2000), ("999us", "25mbit", 21), ("1ms", "25mbit", 1)),
        *(("40ms", "25mbit", 1), ("40ms", "200mbit", 1), ("40ms", "250mbit", 19), ("40ms", "100gbit", 7375)),
    ],
)
def test_least_times_of_hosts_follow_short_round_trips_and_fast_ports(rtt: str, rate: str, swift: int) -> None:
    fabric = [f"fabric.rtt={rtt}", f"fabric.port_rate={rate}"]
    assert scenario_of(*fabric).swift == swift
    if rtt == "40ms":
        assert scenario_of("world=kernel", *fabric).swift == 1


def test_at_a_scale_hosts_are_as_swift_as_all_is() -> None:
    scaled = scenario_of("fabric.rtt=40ms", "fabric.port_rate=12.5mbit", "scale=real")
    assert scaled.swift == scaled.speed == 8000


def test_what_a_library_sets_in_seconds_stays_in_seconds() -> None:
    """NCCL's 5 s are 5 s at 100 Gb/s, too; MRC's least timeout is one of daemons."""
    assert FailoverTimes().faster(scenario_of().speed) == FailoverTimes()
    config = EndpointConfig(0, 4, 0xC000, rtt_ns=10_000, port_rate_bps=10**11, swift=scenario_of().swift)
    assert Timing(config).rto_ns() < 7 * 10_000


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


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (BALANCED, "lossless RoCE needs"),
        (["workload.0.train.qps=2"], "several QPs between two hosts need"),
        (["endpoint.preset=production"], "several QPs between two hosts need"),
        (["endpoint.ev_selection=weighted-planes"], "weights of planes need"),
    ],
)
def test_what_needs_a_packet_in_a_plane_is_refused_with_the_line_to_write(changes: list[str], what: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_of(*changes, "fabric.port_rate=1gbit", "fabric.rtt=2us")
    assert caught.value.problems[0].message.startswith(f"a plane holds 0.06 packets in one rtt, and {what} one")
    assert "write `rtt: 100us`" in caught.value.problems[0].message
    scenario_of(*changes, "fabric.port_rate=1gbit", "fabric.rtt=100us")


@pytest.mark.parametrize("changes", [[], ["transport=roce", "workload.0.train.qps=16"]])
def test_one_qp_and_lossy_roce_do_with_less(changes: list[str]) -> None:
    scenario_of(*changes, "fabric.port_rate=1gbit", "fabric.rtt=2us")
