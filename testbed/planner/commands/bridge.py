"""What `mrc-testbed plan` has to do with runs: recovery as they measured it, and a plan as a scenario to run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mrc_testbed.testbed.planner.arithmetic.design import Design
    from mrc_testbed.testbed.planner.arithmetic.failures import FailurePlan
    from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber
    from mrc_testbed.testbed.planner.arithmetic.recovery import PathRecovery


def measured_recoveries(runs: Sequence[Path], rtt: MarkedNumber) -> tuple[PathRecovery, ...]:
    """Of all runs, priced at `rtt`; runs that are left out are reported on standard error. Raises UsageError."""
    from mrc_testbed.testbed.app.measured import measured_waits
    from mrc_testbed.testbed.planner.arithmetic.bridge import priced

    if not runs:
        return ()
    waits, left_out = measured_waits(runs)
    for line in left_out:
        say(f"note: {line}", err=True)
    return tuple(recovery for each in waits for recovery in priced(each, rtt))


def small_scenario(
    made: Sequence[Design],
    jobs: Sequence[FailurePlan | None],
    planes: Sequence[int],
    step_s: float,
    file: Path,
    call: str,
) -> str:
    """The scenario of the one design that was asked for, with `planes` planes. `step_s`: of its job; `call`: how the
    command was called. Raises UsageError, also where the file is there."""
    from mrc_testbed.testbed.planner.arithmetic.small import LargePlan, SmallFabric, only_design
    from mrc_testbed.testbed.planner.arithmetic.small_text import scenario_text

    if file.exists():
        raise UsageError(f"--scenario {file}: already exists; give another name")
    design = only_design(made, planes)
    plan = jobs[made.index(design)]
    if plan is None:
        raise UsageError(f"--scenario: {design.clos.nics:,} GPUs have no room in this design")
    large = LargePlan(
        clos=design.clos,
        job=plan.job.gpus,
        flaps_a_step=plan.job.case.flaps * step_s,
        evs=round(design.parts.evs.value),
        port_gbps=design.port_gbps,
        rtt_s=plan.stated["rtt"].value / 1e6,
    )
    return scenario_text(SmallFabric(large), call, str(file))
