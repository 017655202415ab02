"""Planned networks, the jobs on them and their page, of the shipped parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mrc_testbed.testbed.planner.arithmetic.design import Design, NicCable
from mrc_testbed.testbed.planner.arithmetic.failures import FailurePlan, PlannedJob, listed_failures
from mrc_testbed.testbed.planner.arithmetic.parts import PartsList, load_parts
from mrc_testbed.testbed.planner.arithmetic.question import Question, designs
from mrc_testbed.testbed.planner.arithmetic.recoveries import listed_recoveries
from mrc_testbed.testbed.planner.pages.page import plan_page
from mrc_testbed.testbed.planner.report.designs import plan_document
from mrc_testbed.testbed.planner.report.failures import failures_document

PARTS = load_parts()


def planned(gpus: list[int], planes: list[int], ports: Sequence[int] = (), parts: PartsList = PARTS) -> list[Design]:
    """NICs of 800G, switches of 51.2T, as many tiers as the planner chooses."""
    return designs(Question(gpus, 800, planes, ["51.2T"], ports, [], "dsp", NicCable.OPTICS), parts)


def jobs_on(made: Sequence[Design]) -> list[FailurePlan | None]:
    """A job on all GPUs of each design that has room."""
    rtt = PARTS.failures["rtt"]
    recoveries = listed_recoveries(PARTS.recovery, rtt)
    stated = {"rtt": rtt, "mrc": PARTS.recovery["mrc"]}
    jobs = [PlannedJob(design.clos, design.clos.nics, listed_failures(PARTS.failures)) for design in made]
    return [FailurePlan(job, recoveries, stated) if job.clos.fits else None for job in jobs]


def document_of(made: Sequence[Design], notes: Sequence[str] = ()) -> dict[str, Any]:
    """As `--json` has it."""
    return {**plan_document(made, notes), "failures": failures_document(jobs_on(made))}


def page_of(made: Sequence[Design], notes: Sequence[str] = ()) -> str:
    """The text of the page."""
    return plan_page(made, jobs_on(made), document_of(made, notes), "mrc-testbed plan")
