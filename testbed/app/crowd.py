"""The second part of `mrc-testbed calibrate`: what a packet costs among many hosts, where what one among 8 costs is
known.

The load is a permutation of 64 hosts over MRC: every host sends and receives all the time, and nobody waits inside the
network. Rates are found as for the training; a run takes about 14 s.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from mrc_testbed.testbed.app.calibrate import run_load, search
from mrc_testbed.testbed.calibration import Crowd, Step
from mrc_testbed.topos.budget import STANDARD, Capacity, crowd_of, suited_rtt_ns
from mrc_testbed.topos.cost import cpus, full_load
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.shape import Shape

MOST_RUNS = 5
GROWTH = 1.4
"""From one load to the next: by the usual cost, the first one is near what a machine carries."""
HOSTS, _PLANES, _SIDE = 64, 2, 8
_SCENARIO = """\
name: calibrate
about: A permutation of 64 hosts, without faults.
fabric: {{planes: 2, t0_groups: 8, t1: 8, hosts_per_t0: 8, port_rate: {bps}bit, rtt: {rtt_us}us}}
workload: [{{permutation: {{for: {for_us}us}}}}]
expect: [qp_errors == 0, bytes_wrong == 0]
"""
_SETTLE_T = 40
"""Twice what a permutation leaves out at its begin, in T."""


def measure_crowd(capacity: Capacity, on_step: Callable[[Step], None]) -> Crowd:
    """Measure; `capacity`: of this machine, over MRC, as measured before; `on_step` gets each load that was measured.
    Where none is carried, the least of them counts as all that the machine carries.

    Raises what keeps a run from beginning.
    """

    def measure(pps: float) -> Step:
        step, _ = run_load(pps, crowd_text(pps))
        on_step(step)
        return step

    steps = search(likely_pps(capacity), measure, GROWTH, MOST_RUNS)
    carried = [step.offered_pps for step in steps if step.carried]
    pps = max(carried) if carried else min(step.offered_pps for step in steps)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Crowd(now, HOSTS, pps, crowd_of(crowd_shape(pps), capacity), tuple(steps))


def likely_pps(capacity: Capacity) -> float:
    """What this machine carries, by the cost as it is known."""
    shape = crowd_shape(capacity.pps / 2)
    return shape.fabric_pps * capacity.cpus / cpus(shape, full_load(shape), capacity.cost)


def crowd_shape(pps: float) -> Shape:
    """64 hosts that send `pps` in all, with the standard number of packets in flight."""
    packet_bytes = STANDARD.payload_bytes + STANDARD.header_bytes
    bps = round(pps / (HOSTS * _PLANES) * packet_bytes * 8)
    return clos2_shape(_PLANES, _SIDE, _SIDE, _SIDE, bps, suited_rtt_ns(bps))


def crowd_text(pps: float) -> str:
    """The scenario."""
    shape = crowd_shape(pps)
    rtt_us = shape.rtt_ns // 1000
    return _SCENARIO.format(bps=shape.port_rate_bps, rtt_us=rtt_us, for_us=_SETTLE_T * rtt_us)
