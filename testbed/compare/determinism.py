"""What two runs of one scenario and one seed must have in common. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.checks.steps import job_steps
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.scenario.model.evs import evs_a_plane
from mrc_testbed.topos.units import some

INJECTED_LATE_NS = 100_000_000
"""Faults are injected by a clock, so two runs of one schedule differ by at most this; on a faster network by less."""


@dataclass(frozen=True, slots=True)
class DeterminismCheck:
    """Something that the seed decides. `said`, as in compare.json: how it is equal, or how it differs."""

    what: str
    same: bool
    said: str


def determinism_checks(one: ComparedRun, other: ComparedRun) -> Iterator[DeterminismCheck]:
    """All such checks for two runs of one scenario and one seed."""
    first, second = one.record, other.record
    yield _schedule(first, second)
    yield _done(first, second)
    yield _in_time(first, second)
    if first.scenario.jobs:
        yield _work(first, second)
    yield _paths(one, other)


def _schedule(first: RunRecord, second: RunRecord) -> DeterminismCheck:
    """The planned faults and times."""
    plans = [
        {occurrence.key: occurrence.as_record() for occurrence in record.occurrences} for record in (first, second)
    ]
    keys = dict.fromkeys((*plans[0], *plans[1]))
    other = [f"{key[0]}, occurrence {key[1]}" for key in keys if plans[0].get(key) != plans[1].get(key)]
    same = f"the same {len(keys)} occurrences, with the same targets and times"
    detail = f"different in {some(other)}" if other else same
    return DeterminismCheck("schedule of faults", not other, detail)


def _done(first: RunRecord, second: RunRecord) -> DeterminismCheck:
    """The actions, their order, and their success."""
    was, came = _done_lines(first), _done_lines(second)
    matcher = SequenceMatcher(None, was, came, autojunk=False)
    changed = [(was[a:b], came[c:d]) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
    if not changed:
        return DeterminismCheck("injections and heals", True, f"the same {len(was)} steps in the same order")
    one, other = changed[0]
    more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
    detail = f"first run: {some(one) or 'nothing'}; second run: {some(other) or 'nothing'}{more}"
    return DeterminismCheck("injections and heals", False, detail)


def _done_lines(record: RunRecord) -> list[str]:
    return [f"{line.op} {line.fault}, occurrence {line.number}: {line.type}" for line in record.history if line.fault]


def _in_time(first: RunRecord, second: RunRecord) -> DeterminismCheck:
    times = [_moments(record) for record in (first, second)]
    late = {what: times[1][what] - at for what, at in times[0].items() if what in times[1]}
    worst = max(late, key=lambda what: abs(late[what]), default="")
    if not worst:
        return DeterminismCheck("times of injections and heals", True, "none")
    same = abs(late[worst]) <= first.scenario.shape().least_ns(INJECTED_LATE_NS)
    detail = f"at most {amount(Dimension.TIME, abs(late[worst]))} apart" + ("" if same else f" ({worst})")
    return DeterminismCheck("times of injections and heals", same, detail)


def _moments(record: RunRecord) -> dict[str, int]:
    """Time of each action since the workload's start."""
    done = (line for line in record.history if line.op in ("inject", "heal") and line.type == "ok")
    return {f"{line.op} {line.fault}, occurrence {line.number}": line.t_ns - (record.start_ns or 0) for line in done}


def _work(first: RunRecord, second: RunRecord) -> DeterminismCheck:
    """The steps that both runs finished."""
    both = list(zip(job_steps(first), job_steps(second), strict=False))
    other = [str(one.index) for one, two in both if one.bytes != two.bytes]
    counts = [len(job_steps(record)) for record in (first, second)]
    if counts[0] != counts[1]:
        return DeterminismCheck("work", False, f"{counts[0]} and {counts[1]} steps were finished")
    detail = f"different bytes in steps {some(other)}" if other else f"{len(both)} steps with the same bytes"
    return DeterminismCheck("work", not other, detail)


def _paths(first: ComparedRun, second: ComparedRun) -> DeterminismCheck:
    """The EVs that carried data. Which backups replace others may be chance."""
    only = sorted(first.paths ^ second.paths)
    if not first.paths or not second.paths:
        return DeterminismCheck("paths that carried data", True, "not known: a run has no final counters")
    if not only:
        return DeterminismCheck("paths that carried data", True, f"the same {len(first.paths)}")
    scenario, shape = first.record.scenario, first.record.scenario.shape()
    spare = shape.planes * evs_a_plane(scenario, shape, near=False) > scenario.endpoint.ev_active
    detail = f"{len(only)} in one run only: {some(only)}"
    return DeterminismCheck(
        "paths that carried data", spare, f"{detail}{' (by chance: there are spare ones)' if spare else ''}"
    )
