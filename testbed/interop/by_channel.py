"""A row of form B through the steps: the program is the daemon of a host on the kernel, with sockets of its own.

Judged by the run (what peers received, the books of ports), and by what was captured at the ports of its host. How late
it was nobody knows, so the verdict of each of its runs is inconclusive; a step is judged by the rest of that verdict.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from mrc_testbed.testbed.app.judge import judge_folder
from mrc_testbed.testbed.app.places import KernelPlace
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.interop.capture_judges import CHECKS, is_whole
from mrc_testbed.testbed.interop.captured import Captured, read_captures
from mrc_testbed.testbed.interop.channel import judge_channel
from mrc_testbed.testbed.interop.entries import ListedProgram
from mrc_testbed.testbed.interop.evidence import Complaints
from mrc_testbed.testbed.interop.program import ContractFailure, Unsupported
from mrc_testbed.testbed.interop.results import Row, StepMark, StepResult, judge_each
from mrc_testbed.testbed.interop.steps import STEPS, ContractStep, StepRun
from mrc_testbed.testbed.interop.world import SUBJECT_HOST
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.recorder import Recorder, note_interrupt
from mrc_testbed.testbed.runner.phases import RunJob, run_phases
from mrc_testbed.testbed.runner.progress import Silent
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.load.loader import load_scenario_text

_MOST_REASONS = 3
_NOT_ON_KERNEL = ("silence", "denied", "dead-path")
"""Runs that only the tape of form A can judge."""
_LATENESS = ("timers late (p99)", "timers late (worst)")
"""Figures of fidelity that are unknown of such a program."""
_LOGS = "logs"
_TRIES = 3
"""Of a run that the machine spoils."""


class Unbelieved(Unsupported):
    """The machine did not keep time; the text says how."""


class ChannelJudging:
    """Of one row. `place`: where its runs are written."""

    def __init__(self, entry: ListedProgram, place: Path) -> None:
        self._entry = entry
        self._place = place
        self._says = ""

    def row(self, told: Callable[[StepResult], None], steps: tuple[ContractStep, ...] = STEPS) -> Row:
        """Judge all steps; each is told when it is over."""
        results = judge_each(steps, self.step, told)
        notes = ("its lateness is unknown, so the verdict of each of its runs is inconclusive",)
        return Row(self._entry, self._says, results, notes)

    def step(self, step: ContractStep) -> StepResult:
        """Judge one. Where the machine lacks something, or was too late, it is n/a."""
        folders: list[Path] = []
        try:
            reasons = tuple(islice(self._complaints(step, folders), _MOST_REASONS))
            mark = StepMark.FAIL if reasons else StepMark.PASS
        except (Unsupported, MissingCapability) as lacking:
            reasons, mark = (str(lacking),), StepMark.NOT_APPLICABLE
        except ContractFailure as failure:
            reasons, mark = (str(failure),), StepMark.FAIL
        names = tuple(str(folder.relative_to(self._place.parent)) for folder in folders)
        return StepResult(step, mark, reasons, names)

    def _complaints(self, step: ContractStep, folders: list[Path]) -> Complaints:
        if not step.runs:
            folders.append(self._folder(step.word))
            log = folders[-1] / _LOGS / f"{SUBJECT_HOST}.log"
            self._says, wrong = judge_channel(self._entry.command, self._entry.folder, log)
            yield from wrong
            return
        wanted = [run for run in step.runs if run.word not in _NOT_ON_KERNEL and run.workload(self._entry.role)]
        if not wanted:
            raise Unsupported(f"nothing in it is for the role {self._entry.role.value}")
        for run in wanted:
            yield from self._tried(step, run, folders)

    def _tried(self, step: ContractStep, run: StepRun, folders: list[Path]) -> list[str]:
        """What is wrong with a run of it; another is made where the machine was late."""
        for number in range(1, _TRIES):
            folders.append(self._folder(run.word if number == 1 else f"{run.word}-{number}"))
            with suppress(Unbelieved):
                return list(self._run(step, run, folders[-1]))
        folders.append(self._folder(f"{run.word}-{_TRIES}"))
        return list(self._run(step, run, folders[-1]))

    def _folder(self, word: str) -> Path:
        folder = self._place / word
        (folder / _LOGS).mkdir(parents=True)
        return folder

    def _run(self, step: ContractStep, run: StepRun, folder: Path) -> Complaints:
        scenario = load_scenario_text(run.scenario(self._entry.role), run.word, ["world=kernel"])
        place = KernelPlace(scenario)
        recorder = Recorder(folder)
        try:
            recorder.text("scenario.yaml", scenario.dump_yaml())
        finally:
            recorder.close()
        report = self._isolated(scenario, folder, place)
        self._says = report["says"] or self._says
        outcome = judge_folder(folder, PatientConsole(file=io.StringIO()), quiet=True)
        if report["unsupported"]:
            raise Unsupported(report["unsupported"])
        record = load_record(folder)
        if run.until and _reached(record, run.until):
            return
        if report["broken"]:
            raise ContractFailure(report["broken"])
        yield from _of_run(record, outcome.verdict)
        yield from _of_captures(step, folder)

    def _isolated(self, scenario: Scenario, folder: Path, place: KernelPlace) -> dict[str, str]:
        """The phases in a sandbox; what was learned of the program."""
        from mrc_testbed.testbed.fabric.sandbox import call_isolated
        from mrc_testbed.testbed.interop.kernel import ForeignWorld

        def supervise() -> dict[str, str]:
            world = ForeignWorld(place.found, place.options, self._entry)
            try:
                run_phases(RunJob(scenario, folder, world), Silent())
            except Exception as error:  # of code that trusts what daemons say
                world.report.broken = f"said what cannot be: {type(error).__name__}: {error}"
                note_interrupt(folder, f"{SUBJECT_HOST}: {world.report.broken}")
            return {
                "says": world.report.says,
                "broken": world.report.broken,
                "unsupported": world.report.unsupported,
            }

        found: dict[str, str] = call_isolated(supervise)
        return found


def _reached(record: RunRecord, phase: str) -> bool:
    return any(line.op == "phase" and line.phase == phase and line.type == "ok" for line in record.history)


def _of_run(record: RunRecord, verdict: Verdict | None) -> Complaints:
    """What of the verdict is wrong, but for the lateness of the program. Raises Unbelieved where the machine was late,
    for then nothing else is; ContractFailure where the run ended early."""
    if verdict is None or verdict.fidelity.caveat:
        why = verdict.fidelity.caveat if verdict else "the run has no verdict"
        if record.ended_by_machine:
            raise Unbelieved(f"the machine ended each of {_TRIES} runs: {why}")
        raise ContractFailure(why)
    late = [figure for figure in verdict.fidelity.figures if not figure.ok and figure.name not in _LATENESS]
    if late:
        raise Unbelieved(f"none of {_TRIES} runs is believed: {late[0].why or late[0].name}")
    for check in verdict.checks:
        if (check.unbelieved or check.status) is Status.FAIL:
            seen = check.observed_as or ("unknown" if check.observed is None else f"{check.observed:g} {check.unit}")
            yield f"{check.name}: {seen.strip()}"


def _of_captures(step: ContractStep, folder: Path) -> Iterator[str]:
    """What packets at the ports of its host show to be wrong, of this step and of those before it."""
    captured: Captured = read_captures(sorted((folder / "pcap").glob("*.pcapng")), SUBJECT_HOST)
    yield from (f"{count} packets cannot be read: {what}" for what, count in captured.broken.items())
    whole = is_whole(captured)
    for check in CHECKS:
        if check.step <= step.number and not check.lacks(captured) and (whole or not check.of_absence):
            yield from islice(check.judge(captured), _MOST_REASONS)
