"""`mrc-testbed calibrate`: standard loads, each a short run, until the greatest that this machine carries is known and
was held three times.

A load is the training of the quickstart on the standard fabric with other rates, told by what all its hosts send at
line rate. It is carried when its run passes, so that the budget means what it means in any verdict. Every transport is
offered the same packets a second, over the fabric that is usual for it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.calibration import Step, lasting_pps, least_doubtful_pps
from mrc_testbed.testbed.checks.result import Fidelity
from mrc_testbed.testbed.errors import ExitCode, RunError
from mrc_testbed.testbed.report.console import open_console
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir.files import read_json
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.transports.base import Transport
from mrc_testbed.testbed.transports.registry import usual_packet
from mrc_testbed.topos.budget import STANDARD, STANDARD_RATE_BPS, suited_rtt_ns
from mrc_testbed.topos.shape import SWIFT_BELOW_NS

MOST_LOADS = 7
"""A run takes about 9 s."""
CLOSE_ENOUGH = 1.1
"""The greatest load carried and the least one not: the budget is known to a tenth."""
HOLDS, MOST_ROUNDS = 3, 6
"""How often a load has to be held; rounds for it, in which loads of all kinds are tried in turn, so that runs of one
kind lie apart in time."""
_NOT_OF_LOAD = ("port rate error", "faster than the wire", "wall clock jumps")
"""Figures that do not shrink with the load: a slow port sends few packets a second, and one more is 2 % of them."""
_WITHIN_PPS = (1_500, 1e6)
"""Loads worth trying; slower ones take longer than anybody waits."""
# A slow load has a long T, and RoCE's timeout must hold five T.
_SCENARIO = """\
name: calibrate
about: The training of the quickstart, without faults.
transport: {transport}
roce: {{timeout: 20}}
fabric: {{planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: {bps}bit, rtt: {rtt_us}us}}
workload: [{{train: {{hosts: all, steps: 5, compute: 100ms, allreduce: {kib}KiB}}}}]
expect: [qp_errors == 0, bytes_wrong == 0]
"""
_STANDARD_KIB = 2048
"""Half of what the quickstart reduces in a step; in proportion at others, so that a step takes as long."""


@dataclass
class Trials:
    """Loads of one kind that were tried, and how one more is. `switch_ports`: the kind of switch port."""

    measure: Callable[[float], Step]
    steps: list[Step]
    switch_ports: str = ""


def try_training(transport: Transport, on_step: Callable[[Step], None]) -> Trials:
    """Loads of the standard training, until one is carried and one is not; `on_step` gets each load that was measured.

    Raises RunError when none is carried, and what keeps a run from beginning.
    """
    switch_ports = ""

    def measure(pps: float) -> Step:
        nonlocal switch_ports
        step, switch_ports = run_load(pps, scenario_text(pps, transport))
        on_step(step)
        return step

    steps = search(transport.cost.usual_pps, measure)
    if not any(step.carried for step in steps):
        lowest = steps[-1]
        raise RunError(f"{transport}: not even {lowest.offered_pps:,.0f} packets/s were carried: {lowest.reason}")
    return Trials(measure, steps, switch_ports)


def confirm(kinds: Sequence[Trials]) -> None:
    """Try the greatest load of each kind that was held until it was held HOLDS times; where it is not, a lower one."""
    for _ in range(MOST_ROUNDS):
        due = [(trials, due_pps(trials.steps)) for trials in kinds]
        if not any(pps for _, pps in due):
            return
        for trials, pps in due:
            if pps:
                trials.steps.append(trials.measure(pps))


def due_pps(steps: Sequence[Step]) -> float:
    """The load to be tried next; 0 if the greatest that lasts was held often enough."""
    worst, lasting = least_doubtful_pps(steps), lasting_pps(steps)
    pps = lasting if worst == inf else max(lasting, worst / CLOSE_ENOUGH)
    held = sum(step.held for step in steps if step.offered_pps == pps)
    return pps if held < HOLDS and pps >= _WITHIN_PPS[0] else 0.0


def search(first_pps: float, measure: Callable[[float], Step], growth: float = 2, most: int = MOST_LOADS) -> list[Step]:
    """Double (or halve) until a load is carried and another is not, then close in between them. What is not carried is
    tried once more: a single run can fail for what the machine did meanwhile. `growth`: 2, unless the first load is
    known better; `most`: loads."""
    steps: list[Step] = []
    following = first_pps
    for _ in range(most):
        steps.append(measure(following))
        if not steps[-1].carried:
            steps.append(measure(following))
        low = max((step.offered_pps for step in steps if step.carried), default=0.0)
        high = min((step.offered_pps for step in steps if step.offered_pps > low), default=0.0)
        if low and high and high / low < CLOSE_ENOUGH:
            break
        following = sqrt(low * high) if low and high else low * growth or high / growth
        if not _WITHIN_PPS[0] <= following <= _WITHIN_PPS[1]:
            break
    return steps


def run_load(pps: float, text: str) -> tuple[Step, str]:
    """One run of a scenario of this load; the kind of switch port."""
    scenario = load_scenario_text(text, "calibrate")
    console = open_console()
    console.quiet = True
    with tempfile.TemporaryDirectory(prefix="mrc-testbed-") as out:
        outcome = run_scenario(scenario, Path(out), True, console)
        environment = read_json(outcome.folder / "environment.json") if outcome.folder else None
    if outcome.stopped:
        raise KeyboardInterrupt
    return step_of(pps, outcome), str((environment or {}).get("switch_ports", ""))


def scenario_text(pps: float, transport: Transport) -> str:
    """The standard training on a standard fabric whose hosts send `pps` in all at line rate."""
    packet_bytes = sum(usual_packet(transport))
    bps = round(pps / (STANDARD.hosts * STANDARD.planes) * packet_bytes * 8)
    kib = round(_STANDARD_KIB * bps / STANDARD_RATE_BPS)
    rtt_us = max(suited_rtt_ns(bps), SWIFT_BELOW_NS) // 1000
    return _SCENARIO.format(transport=transport, bps=bps, rtt_us=rtt_us, kib=kib)


def step_of(pps: float, outcome: RunOutcome) -> Step:
    """What a run says of its load."""
    margin, worst = _margin(outcome.verdict.fidelity) if outcome.verdict else (0.0, "")
    return Step(pps, outcome.exit_code is ExitCode.PASS, margin, worst, outcome.reason)


def _margin(fidelity: Fidelity) -> tuple[float, str]:
    """How far the worst figure that grows with the load is inside its limit, as a share of it, and its name; 0
    outside."""
    rooms = [
        (max(0.0, 1 - figure.observed / figure.limit), figure.name)
        for figure in fidelity.figures
        if figure.limit and figure.observed is not None and figure.name not in _NOT_OF_LOAD
    ]
    return min(rooms, default=(0.0, ""))
