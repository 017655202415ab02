"""What a hunt found: shrunk, written as a scenario, and run on the kernel."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from mrc_testbed.testbed.app.hunt.search import Failure
from mrc_testbed.testbed.app.hunt.shrink import Shrinking, Shrunk
from mrc_testbed.testbed.app.hunt.simpler import simpler
from mrc_testbed.testbed.app.hunt.subject import ImpossibleError, Subject
from mrc_testbed.testbed.app.hunt.trial import Candidate
from mrc_testbed.testbed.app.hunt.workers import HuntWorkers
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import MissingCapability, RunError
from mrc_testbed.testbed.folders import make_own
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.scenario import load_scenario
from mrc_testbed.testbed.scenario.model.single_faults import SingleFault
from mrc_testbed.testbed.whole_files import write_whole

_MOST_TITLES = 8


@dataclass(frozen=True, slots=True)
class Smallest:
    """The faults that are left of `before` many, and whether a Ctrl-C, or `trouble` of the machine, ended the
    shrinking."""

    shrunk: Shrunk[SingleFault]
    before: int
    stopped: bool = False
    trouble: str = ""

    @property
    def words(self) -> str:
        """`9 faults shrunk to 1 in 23 runs`."""
        left = len(self.shrunk.items)
        end = "" if self.shrunk.minimal else ", which were not enough; more with --shrink-runs"
        end = ", stopped" if self.stopped else f", then stopped: {self.trouble}" if self.trouble else end
        return f"{self.before} fault{'s' * (self.before != 1)} shrunk to {left} in {self.shrunk.runs} runs{end}"


class _SpoiledError(Exception):
    """Whether a smaller schedule fails is not known."""


def unshrunk(subject: Subject, finding: Failure) -> Smallest | None:
    """All faults of the seed, where there is no time for more. None if they cannot be written as single faults."""
    faults = subject.faults_of(finding.seed)
    try:
        subject.text(finding.seed, faults)
    except ImpossibleError:
        return None
    return Smallest(Shrunk(faults, 0, minimal=False), len(faults), stopped=True)


def shrink(subject: Subject, finding: Failure, workers: HuntWorkers, most: int) -> Smallest | None:
    """The fewest and simplest faults under which the same check fails. None where the schedule of the seed, written as
    single faults, does not fail, or is refused."""

    def fails(faults: tuple[SingleFault, ...]) -> bool:
        try:
            outcome = workers.outcome(Candidate(text=subject.text(finding.seed, faults)))
        except ImpossibleError:
            return False
        if outcome.spoiled:
            raise _SpoiledError(outcome.problem)
        return finding.check in outcome.failures

    faults = subject.faults_of(finding.seed)
    shrinking = Shrinking(faults, fails, simpler, most)
    try:
        return Smallest(shrinking.run(), len(faults)) if fails(faults) else None
    except KeyboardInterrupt:
        return Smallest(shrinking.so_far(minimal=False), len(faults), stopped=True)
    except _SpoiledError as error:
        return Smallest(shrinking.so_far(minimal=False), len(faults), trouble=str(error))


def write_scenario(subject: Subject, finding: Failure, smallest: Smallest, folder: Path, number: int) -> Path:
    """`<name>-seed-<seed>.yaml` (of several of one seed with a number). Raises RunError, UsageError,
    ImpossibleError."""
    more = f"-{number}" if number > 1 else ""
    path = folder / f"{subject.scenario.name}-seed-{finding.seed}{more}.yaml"
    seen = " ".join(f" (observed: {finding.observed})".splitlines()) if finding.observed else ""
    lines = (
        f"Found by `mrc-testbed hunt {subject.file}` with seed {finding.seed}.",
        f"Fails: {finding.check}{seen}",
        f"{smallest.words.capitalize()}.",
        f"    mrc-testbed run {path}",
    )
    head = "".join(f"# {line}\n" for line in lines)
    try:
        missing = make_own(folder)
        write_whole(path, f"{head}\n{subject.text(finding.seed, smallest.shrunk.items)}")
        give([*missing, path])
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error
    return path


def show(finding: Failure, smallest: Smallest | None, console: Console) -> None:
    """A few lines."""
    seen = f", observed {finding.observed}" if finding.observed else ""
    print_line(console, f"seed {finding.seed} fails: {finding.check}{seen}")
    if smallest is None:
        print_line(console, "  written as single faults it does not fail; run the file with --virtual and this --seed")
        return
    print_line(console, f"  {smallest.words}")
    for fault in smallest.shrunk.items[:_MOST_TITLES]:
        print_line(console, f"  {fault.title}")
    if len(smallest.shrunk.items) > _MOST_TITLES:
        print_line(console, f"  and {len(smallest.shrunk.items) - _MOST_TITLES} more")


def print_line(console: Console, line: str) -> None:
    """As it is."""
    console.print(line, soft_wrap=True)


def run_it(path: Path, out: Path, console: PatientConsole) -> None:
    """Once as `mrc-testbed run`, for its report."""
    run_scenario(load_scenario(path), out, True, console)


def confirm(path: Path, check: str, times: int, out: Path, console: PatientConsole) -> str:
    """Run a written scenario on the kernel, and say in one line whether it fails there too."""
    seen: Counter[str] = Counter()
    try:
        for _ in range(times):
            outcome = run_scenario(load_scenario(path, ["world=kernel"]), out, True, console)
            seen[_on_kernel(outcome.verdict, check)] += 1
    except MissingCapability as error:
        return f"not confirmed: {error}"
    told = ", ".join(f"{what} {count} of {times}" for what, count in seen.items())
    return f"on the kernel: {told}"


def _on_kernel(verdict: Verdict | None, check: str) -> str:
    """What a run there says of the check."""
    if verdict is None:
        return "inconclusive"
    status = next((each.status for each in verdict.checks if each.name == check), verdict.status)
    return {Status.FAIL: "fails there too", Status.PASS: "passes"}.get(status, "inconclusive")
