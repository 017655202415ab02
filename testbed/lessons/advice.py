"""What would help where the machine was late: which smaller fabric it carries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mrc_testbed.testbed.calibration import budget_warnings, machine_capacity
from mrc_testbed.testbed.checks.cause import causes_of_machine
from mrc_testbed.testbed.lessons.evidence import CellRun
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.text.units import format_duration, format_rate
from mrc_testbed.topos.budget import suited_rtt_ns

_SLOWER = 2
"""By how much a fabric is slowed that should have fitted."""


def advice_for(cells: Iterable[CellRun]) -> tuple[str, ...]:
    """For runs whose figures are not believed; none for others."""
    late = (one for one in cells if not one.verdict.fidelity.ok)
    return tuple(dict.fromkeys(line for one in late for line in _for(one)))


def _for(cell: CellRun) -> Iterator[str]:
    scenario, fidelity = cell.scenario, cell.verdict.fidelity
    if scenario.world is WorldKind.VIRTUAL or not fidelity.spoiled:
        yield f"{cell.run}: {causes_of_machine(fidelity)[0].said}; run it again"
        return
    shape, load = scenario.shape(), offered_load(scenario)
    warnings = budget_warnings(shape, scenario.transport.cost, scenario.fabric.planes, load)
    yield from (f"{cell.run}: {text}" for text in warnings or (slower(scenario),))
    yield "no points are lost; check again when the machine is idle, or with --virtual"


def slower(scenario: Scenario) -> str:
    """For a fabric that is inside the machine's budget: half the rate, with the round trip that suits it."""
    rate = scenario.fabric.port_rate_bps // _SLOWER
    known = machine_capacity(scenario.transport.cost).known_by
    fits = f"fabric.port_rate {format_rate(rate)} with fabric.rtt {format_duration(suited_rtt_ns(rate))}"
    return f"the machine was late although its budget ({known}) allows this; {fits} asks half of it"
