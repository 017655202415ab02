"""Rules across keys: a possible shape, existing names, faults that fit into the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from mrc_testbed.testbed.scenario.faults.base import Surroundings
from mrc_testbed.testbed.scenario.model.fabric import FabricSettings
from mrc_testbed.testbed.scenario.model.models import default_time_limit_ns
from mrc_testbed.testbed.scenario.model.workloads import Workload
from mrc_testbed.testbed.scenario.rules.capture_rules import capture_mistakes
from mrc_testbed.testbed.scenario.rules.decisive_rules import undecided_expectations
from mrc_testbed.testbed.scenario.rules.denial_rules import Talk, denial_mistakes
from mrc_testbed.testbed.scenario.rules.expect_rules import LATEST_START, FigureContext, broken_expectations
from mrc_testbed.testbed.scenario.rules.fault_rules import Occurrences, misfits, name_mistakes, settled
from mrc_testbed.testbed.scenario.rules.mapper_rules import mapper_mistakes
from mrc_testbed.testbed.scenario.rules.program_rules import broken_programs
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.rules.switch_rules import lacking_program, too_many_rules
from mrc_testbed.testbed.scenario.rules.transport_rules import (
    impossible_folding,
    in_fabric,
    notices_corruption,
    transport_mistakes,
)
from mrc_testbed.testbed.scenario.rules.trimming_rules import trimming_mistakes
from mrc_testbed.testbed.scenario.rules.workload_rules import broken_workload_rules, sound_workload
from mrc_testbed.testbed.scenario.text.fields import Model
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.units import format_duration
from mrc_testbed.topos.graph import ShapeError
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import Shape

MAX_NODES = 2048
"""A larger plan never fits one machine; building it would only waste time."""


def broken_rules(file: Readable, folder: Path | None) -> list[Mistake]:
    """All violations of rules across keys in what is readable.

    `folder`: of the file; None: it is of a run, which may be of an older version that took expectations which decide
    nothing.
    """
    found = [*_impossible_shape(file.scenario.fabric), *impossible_folding(file.scenario)]
    plan = file.scenario.written_plan() if file.whole_fabric and not found else None
    shape = file.scenario.shape() if plan else None
    job: Workload | None = None
    occurrences: Occurrences = {}
    peers: Mapping[str, frozenset[str]] = {}
    if plan:
        wrong = broken_workload_rules(file, plan)
        found += wrong
        job = None if wrong else sound_workload(file, file.scenario.shape())
        occurrences, unsettled = settled(file, plan)
        found += unsettled
        talk = Talk.of(job, plan)
        found += denial_mistakes(file, plan, talk)
        peers = talk.peers
        found += too_many_rules(in_fabric(file.scenario, occurrences))
    found += broken_programs(file, plan, folder)
    found += transport_mistakes(file.scenario)
    found += trimming_mistakes(file.scenario)
    found += mapper_mistakes(file)
    found += _times(file, job, shape)
    found += misfits(file.faults, _surroundings(file, plan, peers))
    found += lacking_program(file.scenario, file.faults)
    found += name_mistakes(file.faults)
    found += capture_mistakes(file, occurrences, plan)
    found += _shown(file)
    context = FigureContext.of_file(file, occurrences, job, shape)
    found += broken_expectations(file.expectations, context)
    found += () if folder is None else undecided_expectations(file.expectations, context)
    return found


def _surroundings(file: Readable, plan: Plan | None, peers: Mapping[str, frozenset[str]]) -> Surroundings:
    scenario = file.scenario
    written = scenario.transport.names_paths and scenario.routing is Routing.SRV6
    return Surroundings(
        plan,
        peers,
        notices_corruption(file),
        usid_tables=None if file.loses("routing") else written,
        trims=scenario.transport.can_be_trimmed,
        pauses=scenario.pause_thresholds() is not None,
        of_kernel=scenario.transport.of_kernel,
    )


def _impossible_shape(fabric: FabricSettings) -> Iterator[Mistake]:
    """All violated limits, found by replacing each wrong value with its default."""
    usual = FabricSettings.model_validate({})
    while True:
        try:
            shape = fabric.shape()
        except ShapeError as error:
            key, *below = error.field.split(".")
            name = _attribute(fabric, key)
            yield Mistake(("fabric", key, *below), error.limit)
            fabric = fabric.model_copy(update={name: getattr(usual, name)})
        else:
            if shape.hosts + shape.switches > MAX_NODES:
                many = f"{shape.hosts} hosts and {shape.switches} switches; the limit is {MAX_NODES} in all"
                yield Mistake(("fabric",), many)
            return


def _attribute(model: Model, key: str) -> str:
    return next(name for name, field in type(model).model_fields.items() if (field.alias or name) == key)


def _times(file: Readable, job: Workload | None, shape: Shape | None) -> Iterator[Mistake]:
    estimate = job.estimate_ns(shape) if job and shape else None
    last_heal = max((fault.end_ns for fault in file.faults.values()), default=0)
    given = file.scenario.given_time_limit_ns
    limit = given or (default_time_limit_ns(estimate, last_heal) if estimate is not None else None)
    if estimate and given and given < estimate:
        about = f"{_rough(estimate)}, the time that the workload takes without faults"
        yield Mistake(("time_limit",), f"is shorter than {about}")
    for index, fault in file.faults.items():
        if estimate is not None and fault.at_ns > LATEST_START * estimate:
            late = f"begins at {format_duration(fault.at_ns)}, but the workload takes about {_rough(estimate)} in all"
            yield Mistake(("faults", index, "at"), late + "; begin earlier or make the workload longer")
        elif limit is not None and fault.end_ns > limit:
            over = f"ends at {format_duration(fault.end_ns)}, after the time limit of {format_duration(limit)}"
            yield Mistake(("faults", index, "at"), over)


def _rough(value_ns: int) -> str:
    return f"{value_ns / 1e9:.1f}s"


def _shown(file: Readable) -> Iterator[Mistake]:
    size = file.expect_size
    for place, index in file.shows.items():
        if size is not None and index >= size:
            there = f"the last one is {size - 1}" if size else "it is empty"
            yield Mistake(("paper", "shows", place), f"there is no item {index} in `expect`; {there}")
