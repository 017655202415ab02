"""One try: a run in virtual time for its verdict alone."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mrc_testbed.testbed.app.hunt.subject import ImpossibleError, Subject
from mrc_testbed.testbed.checks.cause import causes_of_machine
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.shown import NOTHING, shown
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import RunError, ScenarioError, TestbedError, lack_of
from mrc_testbed.testbed.expect.vocabulary import Severity
from mrc_testbed.testbed.rundir.results import LOGS
from mrc_testbed.testbed.runner.phases import RunJob, run_phases
from mrc_testbed.testbed.runner.plugins import keep_plugins
from mrc_testbed.testbed.runner.progress import Silent
from mrc_testbed.testbed.runner.traces import copy_traces
from mrc_testbed.testbed.runner.virtual_world import VirtualWorld
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.load.loader import load_scenario_text

BROKEN_OFF = "the run comes to its end"
"""The check that fails when the endpoint or the world raised an error."""
BOOKS = "every packet is accounted for"
"""The check that fails when packets are missing, or were faster than the wire."""
STUCK = "the run makes progress"
"""The check that fails when a try never ends."""
_KILLERS = {"SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"}
"""Signals that no try sends to itself: somebody ended its process, or memory ran out."""
_FROM_OUTSIDE = {each.value: each.name for each in signal.Signals if each.name in _KILLERS}
"""By number."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What to try: a seed, or a whole scenario (`text`); neither: the scenario without its faults."""

    seed: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a try came to. `failures`: checks that failed, each with what was seen, the first decides. `problem`: why it
    could not be judged. `seconds`: how long it took. `spoiled`: the machine could not run it, so it says nothing."""

    failures: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    seconds: float = 0.0
    spoiled: bool = False

    @staticmethod
    def by_machine(reason: str, seconds: float = 0.0) -> Outcome:
        """That of a try that the machine spoiled."""
        return Outcome(problem=f"its machine could not run it: {reason}", seconds=seconds, spoiled=True)

    @staticmethod
    def of_death(status: int | None, seconds: float = 0.0) -> Outcome:
        """That of a try whose process died."""
        name = _FROM_OUTSIDE.get(-(status or 0))
        if name:
            why = ", as where memory runs out" if name == "SIGKILL" else ""
            return Outcome.by_machine(f"its process was killed by {name}{why}", seconds)
        return Outcome({BROKEN_OFF: f"its process died with status {status}"}, seconds=seconds)

    def repeated(self, again: Outcome) -> Outcome:
        """That of a failed try, after another one, `again`, with the same seed. In virtual time that is the same run:
        what fails once only came from outside, and is no finding."""
        both = {check: seen for check, seen in again.failures.items() if check in self.failures}
        if both or again.problem:
            return replace(again, failures=both)
        check, seen = next(iter(self.failures.items()))
        said = f"{check} ({seen})" if seen else check
        return replace(again, failures={}, problem=f"failed once, and not again with the same seed: {said}")


def attempt(subject: Subject, job: Candidate, scratch: Path) -> Outcome:
    """Try it in a folder below `scratch`, which is gone afterwards."""
    began = time.perf_counter()
    try:
        with TemporaryDirectory(dir=scratch) as folder:
            found = _run(_scenario_of(subject, job), Path(folder))
    except (ImpossibleError, ScenarioError) as error:
        found = Outcome(problem=str(error))
    except Exception as error:
        lack = trouble(error)
        found = Outcome.by_machine(lack) if lack else Outcome({BROKEN_OFF: _last_line(error)})
    return replace(found, seconds=time.perf_counter() - began)


def _scenario_of(subject: Subject, job: Candidate) -> Scenario:
    if job.text:
        return load_scenario_text(job.text, subject.file)
    return subject.without_faults() if job.seed is None else subject.with_seed(job.seed)


def _run(scenario: Scenario, folder: Path) -> Outcome:
    (folder / LOGS).mkdir()
    keep_plugins(scenario, folder)
    copy_traces(scenario, folder)
    run_phases(RunJob(scenario, folder, VirtualWorld(scenario)), Silent())
    record = load_record(folder, scenario)
    if record.lacked_something:
        return Outcome.by_machine(record.interrupted)
    return _what_failed(judge(record), record)


def _what_failed(verdict: Verdict, record: RunRecord) -> Outcome:
    if record.interrupted:
        return Outcome({BROKEN_OFF: record.interrupted})
    errors = [check for check in verdict.checks if check.level is Severity.ERROR and check.status is Status.FAIL]
    if verdict.status is Status.FAIL:
        seen = {check.name: shown(check).observed for check in errors}
        return Outcome({name: "" if what == NOTHING else what for name, what in seen.items()})
    if not verdict.fidelity.ok:
        return Outcome({BOOKS: causes_of_machine(verdict.fidelity)[0].said})
    return Outcome(problem="" if verdict.status is Status.PASS else verdict.reason)


def trouble(error: Exception) -> str:
    """What the machine lacks, in a line, where that ended a try, as when a file of the run cannot be written: then it
    says nothing of the scenario. Else empty."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error) if isinstance(error, RunError) else lack_of(error)


def _last_line(error: Exception) -> str:
    """What happened, and where."""
    if isinstance(error, TestbedError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
