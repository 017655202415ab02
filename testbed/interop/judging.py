"""A program through all steps: started for each, and judged by what crossed."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from mrc_testbed.testbed.app.judge import judge_folder
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.interop.always import readable
from mrc_testbed.testbed.interop.entries import Startable
from mrc_testbed.testbed.interop.evidence import StepEvidence
from mrc_testbed.testbed.interop.lines import judge_lines
from mrc_testbed.testbed.interop.network import SUBJECTS, JudgedProgram
from mrc_testbed.testbed.interop.program import ANSWER_S, ContractFailure, ContractProgram, Unsupported
from mrc_testbed.testbed.interop.results import Row, StepMark, StepResult, judge_each
from mrc_testbed.testbed.interop.steps import STEPS, ContractStep, StepRun
from mrc_testbed.testbed.interop.world import InteropWorld
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.phases import RunJob, run_phases
from mrc_testbed.testbed.runner.progress import Silent
from mrc_testbed.testbed.scenario.load.loader import load_scenario_text

_MOST_REASONS = 3
_LOGS = "logs"


class Judging:
    """Of one entry of the list. `place`: where its runs are written; `steps`: numbers of those that are taken."""

    def __init__(self, entry: Startable, place: Path, answer_s: float = ANSWER_S) -> None:
        self._entry = entry
        self._place = place
        self._answer_s = answer_s
        self._says = ""

    def row(self, told: Callable[[StepResult], None], steps: tuple[ContractStep, ...] = STEPS) -> Row:
        """Judge all steps; each is told when it is over."""
        results = judge_each(steps, self.step, told)
        return Row(self._entry, self._says, results)

    def step(self, step: ContractStep) -> StepResult:
        """Judge one. Raises TestbedError for what is no fault of the program."""
        folders = []
        try:
            if not step.runs:
                folder = self._folder(step.word)
                return self._result(step, judge_lines(lambda: self._start(folder, step)), [folder])
            reasons: list[str] = []
            for run in step.runs:
                if not run.workload(self._entry.role):
                    continue
                folder = self._folder(run.word)
                folders.append(folder)
                reasons += self._run(step, run, folder)
            if not folders:
                raise Unsupported(f"nothing in it is for the role {self._entry.role.value}")
            return self._result(step, iter(reasons), folders)
        except Unsupported as lacking:
            return StepResult(step, StepMark.NOT_APPLICABLE, (str(lacking),), self._names(folders))
        except ContractFailure as failure:
            return StepResult(step, StepMark.FAIL, (str(failure),), self._names(folders))

    def _result(self, step: ContractStep, complaints: Iterator[str], folders: list[Path]) -> StepResult:
        reasons = tuple(islice(complaints, _MOST_REASONS))
        return StepResult(step, StepMark.FAIL if reasons else StepMark.PASS, reasons, self._names(folders))

    def _names(self, folders: list[Path]) -> tuple[str, ...]:
        return tuple(str(folder.relative_to(self._place.parent)) for folder in folders)

    def _folder(self, word: str) -> Path:
        folder = self._place / word
        (folder / _LOGS).mkdir(parents=True)
        return folder

    def _start(self, folder: Path, step: ContractStep) -> ContractProgram:
        number = len(list((folder / _LOGS).glob("contract*.log")))
        log = folder / _LOGS / (f"contract-{number + 1}.log" if number else "contract.log")
        command, ended_by = self._entry.start()
        program = ContractProgram(command, self._entry.folder, log, self._answer_s, ended_by)
        try:
            self._says = program.hello()
            program.ask("step", number=step.number, word=step.word)
        except BaseException:
            program.close()
            raise
        return program

    def _run(self, step: ContractStep, run: StepRun, folder: Path) -> list[str]:
        """What is wrong with one run of it."""
        scenario = load_scenario_text(run.scenario(self._entry.role), run.word, ["world=virtual"])
        recorder = Recorder(folder)
        try:
            recorder.text("scenario.yaml", scenario.dump_yaml())
        finally:
            recorder.close()
        with self._subject(folder, step, run) as subject:
            run_phases(RunJob(scenario, folder, InteropWorld(scenario, subject)), Silent())
            died = subject.program.broken
            if run.asks_stats and died is None:
                subject.tape.told.append((0, "stats", subject.program.ask("stats", now_ns=0)))
        outcome = judge_folder(folder, PatientConsole(file=io.StringIO()), quiet=True)
        record = load_record(folder)
        evidence = StepEvidence(subject.tape, record, outcome, self._entry.role)
        if died is not None and not (run.until and evidence.reached(run.until)):
            raise died
        if unreadable := list(readable(evidence)):
            return unreadable
        return [complaint for judge in run.judges for complaint in islice(judge(evidence), _MOST_REASONS)]

    @contextmanager
    def _subject(self, folder: Path, step: ContractStep, run: StepRun) -> Iterator[JudgedProgram]:
        program = self._start(folder, step)
        subject = JudgedProgram(program, run.twice_every)
        SUBJECTS[subject.number] = subject
        try:
            yield subject
        finally:
            del SUBJECTS[subject.number]
            program.close()
