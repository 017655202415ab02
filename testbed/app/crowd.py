"""The second part of `mrc-testbed calibrate`: what a packet costs among many hosts, where what one among 8 costs is
known.

The load is a permutation of 64 hosts over MRC (`mrc_testbed.topos.crowd`). Rates are found as for the training; a run
takes about 14 s.
"""

from __future__ import annotations

from collections.abc import Callable

from mrc_testbed.testbed.app.calibrate import Trials, run_load, search
from mrc_testbed.testbed.calibration import Step
from mrc_testbed.topos.budget import Capacity
from mrc_testbed.topos.cost import cpus, full_load
from mrc_testbed.topos.crowd import crowd_shape

MOST_LOADS = 5
GROWTH = 1.4
"""From one load to the next: by the usual cost, the first one is near what a machine carries."""
_SCENARIO = """\
name: calibrate
about: A permutation of 64 hosts, without faults.
fabric: {{planes: 2, t0_groups: 8, t1: 8, hosts_per_t0: 8, port_rate: {bps}bit, rtt: {rtt_us}us}}
workload: [{{permutation: {{for: {for_us}us}}}}]
expect: [qp_errors == 0, bytes_wrong == 0]
"""
_SETTLE_T = 40
"""Twice what a permutation leaves out at its begin, in T."""


def try_crowd(training_pps: float, on_step: Callable[[Step], None]) -> Trials:
    """Loads of 64 hosts, until one is carried and one is not; `training_pps`: what was carried of the standard training
    over MRC; `on_step` gets each load that was measured.

    Raises what keeps a run from beginning.
    """

    def measure(pps: float) -> Step:
        step, _ = run_load(pps, crowd_text(pps))
        on_step(step)
        return step

    return Trials(measure, search(likely_pps(training_pps), measure, GROWTH, MOST_LOADS))


def likely_pps(training_pps: float) -> float:
    """What a machine that carries this of the standard training carries of 64 hosts, by the usual cost."""
    capacity, shape = Capacity(training_pps, "tried"), crowd_shape(training_pps / 2)
    return shape.fabric_pps * capacity.cpus / cpus(shape, full_load(shape), capacity.cost)


def crowd_text(pps: float) -> str:
    """The scenario."""
    shape = crowd_shape(pps)
    rtt_us = shape.rtt_ns // 1000
    return _SCENARIO.format(bps=shape.port_rate_bps, rtt_us=rtt_us, for_us=_SETTLE_T * rtt_us)
