"""What must hold of a run, whatever its scenario: of its folder, its words and its replay."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.builtin import as_planned, ended, faults_done, finished, intact
from mrc_testbed.testbed.checks.ends import How
from mrc_testbed.testbed.checks.guard import guarded
from mrc_testbed.testbed.checks.judge import read_verdict
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.packet_facts import packet_lines
from mrc_testbed.testbed.rundir.planned import recorded_scenario
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.workloads.graph import SEND
from mrc_testbed.testbed.workloads.graph_job import GraphJob

TOLD_ANEW = ("environment.json", "junit.xml", "metrics.om", "report.html", "summary.txt", "verdict.json")
"""Files that say when, where and by which words a run was made; all others are those of a replay, byte for byte."""
LEAST_BDP_PACKETS = 2
"""With fewer packets in a plane-BDP an incast may take ten times as long as its bytes, longer than the limit that a
scenario has by itself: thresholds are less than a packet apart there, and `validate` warns (topos/in_flight.py). So
may a step beside one: ports are full of trimmed packets, which go first, and data wait (seed 120181). So may a
step over RoCE: its timeout is shorter than the time for which a queue holds a packet, and all is sent again and again
(seed 121444)."""
_CRASHED = "the check itself failed"
_TIME = r"([\d.]+ (?:us|ms|s))\b"
_HEAD = re.compile(rf"(?:(\d+) of )?(\d+) steps?, P100 {_TIME}(?:, clean median {_TIME})?")


def wrong_with(scenario: Scenario, out: Path) -> list[str]:
    """Run it below `out`, and again from its folder; what does not hold, in words. An exception is for the caller."""
    told = io.StringIO()
    outcome = run_scenario(scenario, out, False, PatientConsole(file=told, width=200))
    assert outcome.folder is not None
    record, verdict = load_record(outcome.folder), read_verdict(outcome.folder)
    found = [*_words(told.getvalue()), *summary_off(told.getvalue()), *_verdict(verdict), *_run(record, verdict)]
    if outcome.exit_code is not verdict.exit_code or outcome.reason != verdict.reason:
        found.append(f"it ends with {outcome.exit_code}, and its verdict is {verdict.exit_code}: {verdict.reason}")
    if scenario.world is WorldKind.VIRTUAL:
        found += _replay(outcome.folder, out)
    return found


def _words(told: str) -> Iterator[str]:
    for sign in ("Traceback", "could not be made"):
        if sign in told:
            yield f"it says: {next(line for line in told.splitlines() if sign in line)}"


def summary_off(told: str) -> Iterator[str]:
    """Where the row of step times and the verdict line of a summary disagree: in how many steps there were, in the
    longest, in the clean median. Of runs with one job of steps."""
    words = " ".join(["", *told.split()])
    heads, rows = _HEAD.findall(words), re.findall(r" step time (?!of )(.*?) waiting ", words)
    if len(heads) != 1 or len(rows) != 1:
        return
    (done, steps, longest, clean), (row,) = heads[0], rows
    if "of all " in row:
        row = row.partition("of all ")[2].partition("; during faults")[0]
    counts, longests = map(int, re.findall(r"\((\d+) steps?\)", row)), re.findall(rf"P100 {_TIME}", row)
    faults, median = "during faults" in row, re.match(rf"clean median {_TIME}", row)
    if (count := sum(counts)) > int(done or steps) or (count != int(done or steps) and not faults):
        yield f"{done or steps} steps in the verdict line, {count} in the row: {row}"
    if any(_ns(one) > _ns(longest) for one in longests) or (longest not in longests and not faults):
        yield f"P100 {longest} in the verdict line, and in the row: {row}"
    if median and median[1] != clean:
        yield f"clean median {clean} in the verdict line, and in the row: {row}"


def _ns(time: str) -> float:
    value, unit = time.split()
    return float(value) * {"us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def _verdict(verdict: Verdict) -> Iterator[str]:
    yield from (f"{check.name}: {check.why}" for check in verdict.checks if _CRASHED in check.why)
    if not verdict.fidelity.ok and (verdict.fidelity.virtual or verdict.fidelity.caveat):
        yield f"not believed: {verdict.reason}"


def _run(record: RunRecord, verdict: Verdict) -> Iterator[str]:
    """No wrong byte, and no line of packets that does not add up, on any machine; the rest where the machine kept
    time."""
    yield from lines_off(record)
    yield from _failed(guarded("no wrong byte", None, lambda: intact(record)), Status.FAIL)
    if not verdict.fidelity.ok:
        return
    yield from _failed(guarded("the fabric is as planned", None, lambda: as_planned(record)))
    yield from _failed(guarded("every fault is injected and healed", None, lambda: faults_done(_due(record))))
    if record.death is not None and not may_die(record.scenario):
        yield f"nothing is broken, and yet: {verdict.death}"
    yield from _survivors(record)
    if record.death is None:
        steady = record.scenario.shape().plane_bdp_packets >= LEAST_BDP_PACKETS
        if record.scenario.jobs and (steady or not _may_collapse(record.scenario)):
            yield from _failed(guarded("every rank finished", None, lambda: finished(record)))
            yield from _of_graphs(record)
        if record.scenario.job.flows and steady:
            yield from _failed(guarded("every flow ended", None, lambda: ended(record)))
            yield from _of_traces(record)


def _survivors(record: RunRecord) -> Iterator[str]:
    """Where one of several jobs and flows dies, the others end by themselves, or at the time limit; and windows reach
    to the last end."""
    if record.death is None:
        return
    ends = record.ends.values()
    if record.end_ns < max(end.t_ns for end in ends):
        yield "the workload is over before the last of its jobs and flows"
    limit_ns = (record.start_ns or 0) + record.scenario.time_limit_ns
    early = [end.name for end in ends if end.how is How.STOPPED and end.t_ns < limit_ns]
    if early and not record.interrupted:
        yield f"stopped before the time limit: {', '.join(early)}"


def lines_off(record: RunRecord) -> Iterator[str]:
    """Lines of packets whose counts do not add up: left of the colon what there was, right of it what became of it."""
    for title, line in packet_lines(record):
        if line.startswith("not known: "):
            continue
        there, became = re.sub(r"\([^)]*\)", "", line.partition(";")[0]).split(":")
        if _sum(there) != _sum(became):
            yield f"{title} does not add up: {line}"
        dropped = re.search(r"(\d+) dropped \(([^)]*)\)", line)
        if dropped and int(dropped[1]) != _sum(dropped[2]):
            yield f"what was dropped does not add up: {line}"


def _sum(words: str) -> int:
    return sum(map(int, re.findall(r"\d+", words)))


def _of_graphs(record: RunRecord) -> Iterator[str]:
    """All that its ranks send in all steps, and nothing else."""
    shape = record.scenario.shape()
    for job in record.scenario.jobs:
        steps = job.steps(shape)
        if isinstance(steps, GraphJob):
            wanted = job.entry.total_steps * sum(node.amount for node in steps.graph.nodes if node.kind == SEND)
            hosts = job.host_names(shape)
            sent = sum(done.bytes for done in record.completions if done.host in hosts)
            if sent != wanted:
                yield f"the ranks of {job.name} have sent {sent} bytes, and their graph has {wanted}"


def _of_traces(record: RunRecord) -> Iterator[str]:
    """A line for each flow that begins over time, with its bytes."""
    flows = record.scenario.flows.flows
    wanted = Counter((flow.name, one.name, one.size) for flow in flows for one in flow.arrivals)
    told = Counter((row.flow, row.name, row.bytes) for row in record.flow_times)
    if told != wanted:
        yield f"flow_times.csv lacks {wanted - told}, and has {told - wanted} beside them"


def _may_collapse(scenario: Scenario) -> bool:
    """Whether links may carry little but what is of no use, where a plane-BDP has fewer packets than the least."""
    return bool(scenario.job.flows) or scenario.transport.timeout_code_ns > 0


def _due(record: RunRecord) -> RunRecord:
    """With the cycles that were due before the workload came to its end: the others are not done."""
    lasted_ns = record.end_ns - (record.start_ns or 0)
    return replace(record, occurrences=tuple(one for one in record.occurrences if one.begin_ns < lasted_ns))


def may_die(scenario: Scenario) -> bool:
    """Whether a QP may give up: something breaks, its settings let it do so at once, or a path holds less than its QPs
    have under way at the least, a packet each."""
    tries = scenario.endpoint.linear_tries + scenario.endpoint.exponential_tries
    holds_few = scenario.shape().plane_bdp_packets < LEAST_BDP_PACKETS
    return bool(scenario.occurrences) or not scenario.transport.has_paths or tries < 4 or holds_few


def _failed(check: CheckResult, *bad: Status) -> Iterator[str]:
    if check.status in (bad or (Status.FAIL, Status.INCONCLUSIVE)):
        yield f"{check.name}: {check.why or check.observed}"


def _replay(folder: Path, out: Path) -> Iterator[str]:
    again = run_scenario(recorded_scenario(folder), out, True, PatientConsole(file=io.StringIO()), replays=folder)
    assert again.folder is not None
    before, after = _files(folder), _files(again.folder)
    differ = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    if differ:
        yield f"its replay differs in {', '.join(differ)}"


def _files(folder: Path) -> dict[str, object]:
    """The content of each file; of the verdict without places, which name the folder."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    found: dict[str, object] = {name: path.read_bytes() for name, path in files.items() if name not in TOLD_ANEW}
    checks = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))["checks"]
    return found | {"verdict": [{**check, "place": ""} for check in checks]}
