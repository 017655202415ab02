"""A whole hunt: the scenario without faults, seeds until one fails, the smallest schedule that does, and its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.app.hunt.found import (
    Smallest,
    confirm,
    print_line,
    run_it,
    show,
    shrink,
    unshrunk,
    write_scenario,
)
from mrc_testbed.testbed.app.hunt.progress import ProgressLine
from mrc_testbed.testbed.app.hunt.search import Failure, Tally, certain, search
from mrc_testbed.testbed.app.hunt.subject import HuntRequest, Subject
from mrc_testbed.testbed.app.hunt.trial import Candidate
from mrc_testbed.testbed.app.hunt.workers import HuntWorkers, Workers
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.interrupts import stopping_as_ctrl_c
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.results import missing_folders


@dataclass(frozen=True, slots=True)
class HuntLimits:
    """How long a hunt goes on. `seeds` from `first` (None: the file's); `keep_going`: all of them, whatever is found;
    `shrink_runs`: candidates at most for each finding; `confirm`: runs of it on the kernel."""

    seeds: int
    jobs: int
    first: int | None = None
    keep_going: bool = False
    shrink_runs: int = 300
    confirm: int = 0


def hunt(
    request: HuntRequest, limits: HuntLimits, out: Path, console: PatientConsole, elsewhere: HuntWorkers | None = None
) -> ExitCode:
    """`elsewhere`: who makes the tries in place of processes here.

    Print what it finds, and write a scenario for each into `out`. Returns the exit status: 0 nothing found, 1 found, 3
    no try could be judged, 130 interrupted, with what was found until then.

    Raises ScenarioError or UsageError for a scenario that cannot be hunted in, or fails without any fault, or an `out`
    that is no folder.
    """
    missing_folders(out)
    found = _Hunt(Subject(request), limits, out, console)
    with stopping_as_ctrl_c():
        with elsewhere or Workers(request, limits.jobs) as workers:
            found.search(workers)
            found.shrink(workers)
        return found.follow()


class _Hunt:
    """One hunt; its methods in their order."""

    def __init__(self, subject: Subject, limits: HuntLimits, out: Path, console: PatientConsole) -> None:
        self._subject = subject
        self._limits = limits
        self._out = out
        self._console = console
        self._tally = Tally(limits.seeds)
        self._written: list[tuple[Failure, Path]] = []
        self._stopped = False

    def search(self, workers: HuntWorkers) -> None:
        """Without faults, then seed after seed."""
        _require_sound(self._subject, workers)
        limits, line = self._limits, ProgressLine(self._console)
        first = self._subject.scenario.seed if limits.first is None else limits.first
        try:
            search(workers, first, limits.keep_going, self._tally, line.show)
        except KeyboardInterrupt:
            self._stopped = True
        line.end(self._tally)

    def shrink(self, workers: HuntWorkers) -> None:
        """What was found, and write it; after Ctrl-C as it is."""
        for finding in self._tally.findings if self._limits.keep_going else self._tally.findings[:1]:
            smallest = self._smallest(finding, workers)
            show(finding, smallest, self._console)
            if smallest:
                self._stopped |= smallest.stopped
                number = 1 + sum(other.seed == finding.seed for other, _ in self._written)
                path = write_scenario(self._subject, finding, smallest, self._out, number)
                self._written.append((finding, path))
                print_line(self._console, f"  wrote {path}")

    def _smallest(self, finding: Failure, workers: HuntWorkers) -> Smallest | None:
        if self._stopped:
            return unshrunk(self._subject, finding)
        return shrink(self._subject, finding, workers, self._limits.shrink_runs)

    def follow(self) -> ExitCode:
        """Run what was written for its report, and on the kernel if that is wanted."""
        for finding, path in () if self._stopped else self._written:
            run_it(path, self._out, self._console)
            if self._limits.confirm:
                line = confirm(path, finding.check, self._limits.confirm, self._out, self._console)
                print_line(self._console, line)
        if self._stopped:
            return ExitCode.INTERRUPTED
        if self._tally.unjudged == self._tally.done:
            return ExitCode.INCONCLUSIVE
        return ExitCode.FAIL if self._tally.failed else ExitCode.PASS


def _require_sound(subject: Subject, workers: HuntWorkers) -> None:
    outcome = certain(workers, Candidate())
    if outcome.failures:
        check, observed = next(iter(outcome.failures.items()))
        seen = f" (observed: {observed})" if observed else ""
        raise UsageError(f"{subject.file}: fails without any fault: {check}{seen}")
