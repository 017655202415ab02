"""The folder of a case as an observer reads it: a record of a run, with nothing in it that knows the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mrc_testbed.testbed.checks.record import HistoryLine, RunRecord
from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.evidence.events import read_events
from mrc_testbed.testbed.incidents.blind import EVENTS_FILE, SNAPSHOTS_FILE
from mrc_testbed.testbed.incidents.case import CASE_FILE, CaseFolder
from mrc_testbed.testbed.mapper.probing import ProbeRoute, probe_routes
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from mrc_testbed.testbed.rundir.files import RecordError, refuse_strange_files
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.load.effective import plain_text

_PUBLIC = ("fabric", "mapper", "workload")


def observed_record(case: CaseFolder) -> RunRecord:
    """What endpoints told of a case, from the begin of its workload until it was observed no longer. Raises UsageError
    for a case that was not run yet, RecordError for a damaged one."""
    refuse_strange_files(case.folder)
    about = case.about()
    if "start_ns" not in about:
        raise UsageError(f"{case.folder}: was not run yet; `mrc-testbed incident observe {case.folder}` does")
    events, _ = read_events(case.folder / EVENTS_FILE)
    _, snapshots = read_events(case.folder / SNAPSHOTS_FILE)
    start_ns, end_ns = about["start_ns"], about["end_ns"]
    return RunRecord(
        case.folder,
        _scenario(case, about),
        environment={"base_rtt_ns": about.get("base_rtt_ns")},
        history=(HistoryLine(start_ns, "workload", "invoke"), HistoryLine(end_ns, "workload", "ok")),
        ev_changes=tuple(events.ev_changes),
        qp_errors=tuple(events.qp_errors),
        rests=events.rests,
        snapshots=snapshots,
        stalls=tuple(events.stalls),
        port_changes=tuple(events.port_changes),
        port_moves=tuple(events.port_moves),
        probes=tuple(events.probes),
    )


def probes_of_case(case: CaseFolder) -> Mapping[str, tuple[ProbeRoute, ...]]:
    """By host the probes that its agent sends; none in a case without agents. Raises as `observed_record` does."""
    scenario = _scenario(case, case.about())
    if scenario.mapper is None:
        return {}
    plan = scenario.plan()
    return probe_routes(plan, SuspectTable(plan), scenario.mapper.owners, scenario.host_names)


def _scenario(case: CaseFolder, about: Mapping[str, Any]) -> Scenario:
    try:
        return load_scenario_text(plain_text({"name": "case", **{key: about[key] for key in _PUBLIC if key in about}}))
    except ScenarioError as error:
        what = error.problems[0]
        raise RecordError(case.folder / CASE_FILE, f"{what.path}: {what.message}; draw and observe it again") from None
