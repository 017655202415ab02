"""What report.html holds: `texts` for its template, `drawn` for its scripts. Pure."""

from __future__ import annotations

from typing import Any

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.pages.report import tables, topology
from mrc_testbed.testbed.pages.report.clock import Clock, clock_of
from mrc_testbed.testbed.pages.report.faults import fault_bands
from mrc_testbed.testbed.pages.report.flow_sizes import flow_sizes
from mrc_testbed.testbed.pages.report.goodput import goodput_views
from mrc_testbed.testbed.pages.report.losses import losses
from mrc_testbed.testbed.pages.report.reproduce import commands, environment_rows, warnings
from mrc_testbed.testbed.pages.report.samples import PortSamples
from mrc_testbed.testbed.pages.report.steps import slowest_steps, step_charts, worst_words
from mrc_testbed.testbed.pages.report.story import SIGNS, story
from mrc_testbed.testbed.pages.report.timelines import timelines
from mrc_testbed.testbed.report.facts import measured_words
from mrc_testbed.testbed.report.transport_words import transport_words
from mrc_testbed.testbed.report.trust import biases


def texts(record: RunRecord, verdict: Verdict) -> dict[str, Any]:
    """Everything that is read: sentences, lists and tables, and the drawing of the fabric (SVG text)."""
    clock = clock_of(record)
    drawing = topology.drawing(record)
    return {
        "scenario": record.scenario.name,
        "seed": record.scenario.seed,
        "folder": record.folder.name,
        "status": verdict.status.value,
        "sign": SIGNS[verdict.status],
        "story": story(verdict, record),
        "began": clock is not None,
        "paths": record.scenario.transport.has_paths,
        "transport": transport_words(record.scenario),
        "trust": biases([record.scenario]),
        "drawing": drawing,
        "not_drawn": topology.not_drawn(record, drawing),
        "broken": topology.broken_list(record, clock),
        "has_steps": bool(record.scenario.jobs),
        "flow_sizes": flow_sizes(record),
        "slowest": slowest_steps(record),
        "worst": " ".join(worst_words(record)),
        "checks": tables.check_rows(verdict),
        "faults": tables.healing_table(record),
        "occurrences": tables.occurrence_table(record, clock),
        "unit": clock.unit if clock else "",
        "most_occurrences": tables.MOST_OCCURRENCES,
        "base_rtt": record.base_rtt_ns,
        "fidelity": tables.fidelity_bars(verdict.fidelity),
        "measured": measured_words(verdict.fidelity),
        "virtual": verdict.fidelity.virtual,
        "environment": environment_rows(record),
        "warnings": warnings(record),
        "commands": commands(record.folder),
        "scenario_text": record.scenario.dump_yaml(),
        "missing": record.missing,
    }


def drawn(record: RunRecord, samples: PortSamples) -> dict[str, Any]:
    """What charts are made of; times in seconds since the workload's start. `length` null: the workload never began,
    and there is nothing else."""
    clock = clock_of(record)
    if clock is None:
        return {"length": None}
    return {"length": clock.length_s, "speed": clock.speed, **_charts(record, samples, clock)}


def _charts(record: RunRecord, samples: PortSamples, clock: Clock) -> dict[str, Any]:
    return {
        "faults": fault_bands(record, clock),
        "goodput": goodput_views(record, samples, clock),
        "steps": step_charts(record, clock),
        "timelines": timelines(record, clock),
        "losses": losses(record, samples, clock),
    }
