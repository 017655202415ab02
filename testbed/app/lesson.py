"""A student's lesson checked: what is not run yet is run, and all of it is judged."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.app.comparison import compare_folders
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.app.run_view import RunView
from mrc_testbed.testbed.compare.table import show_comparison
from mrc_testbed.testbed.errors import RunError, TestbedError, UsageError
from mrc_testbed.testbed.interrupts import stopping_as_ctrl_c
from mrc_testbed.testbed.isolated import python_command
from mrc_testbed.testbed.lessons.advice import advice_for
from mrc_testbed.testbed.lessons.evidence import RUN, CellRun, Evidence
from mrc_testbed.testbed.lessons.fitting import CellScenario
from mrc_testbed.testbed.lessons.fitting_runs import cells_of_work, given_runs, newest_run
from mrc_testbed.testbed.lessons.grade import Grade, LessonMark
from mrc_testbed.testbed.lessons.judging import judge_lesson, unmet
from mrc_testbed.testbed.lessons.lesson import Answers
from mrc_testbed.testbed.lessons.predictions import late_predictions, note_predictions
from mrc_testbed.testbed.lessons.solution import own_answers, solution_answers
from mrc_testbed.testbed.lessons.work import Work, unanswered
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir.results import point
from mrc_testbed.testbed.scenario.model.transports import WorldKind

_MEASURED = f"--measured {RUN}"
UNREADABLE = (TestbedError, OSError, ValueError, ArithmeticError, RecursionError)
"""What a student's files may raise that others must not suffer from; the first says what is wrong, the second which
file, and the others that nobody had thought of it."""
BETWEEN = "-"
"""Between a run's name and its cell in the name of a link."""


class WrongWorld(UsageError):
    """The lesson does not work in virtual time."""


@dataclass(frozen=True)
class CheckOptions:
    """`runs`: judge these in place of new ones. `again`: run again what was run. `patient`: a prediction may
    be missing, as when a teacher grades. `audience`: who watches the runs."""

    virtual: bool = False
    runs: tuple[Path, ...] = ()
    again: bool = False
    patient: bool = False
    quiet: bool = False
    audience: RunView | None = None


def reason_of(error: Exception) -> str:
    """In one line, one of UNREADABLE as the reason why a lesson cannot be judged."""
    if isinstance(error, TestbedError):
        return "; ".join(str(error).splitlines())
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return f"cannot be judged: {type(error).__name__}: {' '.join(str(error).split())}"


def check_work(work: Work, options: CheckOptions, console: PatientConsole) -> Grade:
    """Judge a student's folder. Raises UsageError and ScenarioError for what cannot be judged as it is;
    KeyboardInterrupt when a run was interrupted."""
    answers = work.answers()
    evidence = evidence_of(work, answers, options, console)
    late = late_predictions(work, answers, [one.record.folder for one in evidence.cells])
    return replace(judge_lesson(work.lesson, answers, evidence, late), advice=advice_for(evidence.cells))


def evidence_of(work: Work, answers: Answers, options: CheckOptions, console: PatientConsole) -> Evidence:
    """What there is to judge by: the runs of all cells; but for scenarios that break what the lesson requires.
    Raises as `check_work`."""
    broken, met = _met(work)
    cells = _judged_runs(work, met, options) if options.runs else _all_runs(work, met, answers, options, console)
    return Evidence(tuple(cells), plan, broken)


def _met(work: Work) -> tuple[dict[str, str], list[str]]:
    """Why scenarios may not be judged, by run, and the runs of the others."""
    broken = unmet(work.lesson, {run: work.beside(run) for run in work.lesson.runs})
    return broken, [run for run in work.lesson.runs if run not in broken]


def solved_answers(work: Work) -> Answers:
    """The answers of the solution, and those that only a run has by the runs that are there; none is made. Raises as
    `check_work`."""
    broken, met = _met(work)
    cells = [
        run
        for world in work.lesson.worlds
        for cell in cells_of_work(work, met, [f"world={world}"], work.seed)
        if (run := _believed(work.runs, cell))
    ]
    evidence, solution = Evidence(tuple(cells), plan, broken), solution_answers(work.lesson)
    found = own_answers(work.lesson, solution, evidence)
    parts = judge_lesson(work.lesson, found, evidence).parts
    unbuilt = {part.name for part in parts if part.mark is LessonMark.WAITING} - set(solution)
    return {name: given for name, given in found.items() if name not in unbuilt}


def _judged_runs(work: Work, runs: Sequence[str], options: CheckOptions) -> list[CellRun]:
    return [CellRun.of_folder(one.run, one.settings, path) for one, path in given_runs(work, runs, options.runs)]


def _all_runs(
    work: Work, runs: Sequence[str], answers: Answers, options: CheckOptions, console: PatientConsole
) -> list[CellRun]:
    """The run of each cell: the newest that is there, else a new one."""
    cells = cells_of_work(work, runs, [f"world={WorldKind.VIRTUAL}"] if _is_virtual(work, options) else [], work.seed)
    out = work.runs
    there = [None if options.again else _believed(out, cell) for cell in cells]
    new = [cell for cell, run in zip(cells, there, strict=True) if run is None]
    if new and not options.patient and (lacking := list(unanswered(work, answers))):
        raise UsageError("\n".join(lacking))
    with stopping_as_ctrl_c():
        made = iter([_run(work, cell, answers, options, console) for cell in new])
    found = [run or next(made) for run in there]
    if new:
        _compare(found, out, options, console)
    return found


def _is_virtual(work: Work, options: CheckOptions) -> bool:
    """Raises WrongWorld."""
    worlds = work.lesson.worlds
    if options.virtual and WorldKind.VIRTUAL not in worlds:
        raise WrongWorld(f"--virtual: lesson {work.lesson.name} needs a kernel; leave it out")
    return options.virtual or WorldKind.KERNEL not in worlds


def _believed(out: Path, cell: CellScenario) -> CellRun | None:
    """The newest run of this scenario, if it is to be believed."""
    folder = newest_run(out, cell.scenario)
    if folder is None:
        return None
    with contextlib.suppress(TestbedError):  # somebody wrote into it: then it is run again
        found = CellRun.of_folder(cell.run, cell.settings, folder)
        return found if found.verdict.fidelity.ok else None
    return None


def _run(work: Work, cell: CellScenario, answers: Answers, options: CheckOptions, console: PatientConsole) -> CellRun:
    out = work.runs
    if options.audience is None and not options.quiet:
        console.print(" ".join(["run", cell.run, *cell.settings]), highlight=False)
    note_predictions(work, answers, time.time())
    outcome = run_scenario(cell.scenario, out, True, console, live=not options.quiet, audience=options.audience)
    folder = _folder_of(outcome)
    with contextlib.suppress(RunError):
        point(folder, link_name(cell))
    return CellRun.of_folder(cell.run, cell.settings, folder)


def _folder_of(outcome: RunOutcome) -> Path:
    if outcome.stopped:
        raise KeyboardInterrupt
    if outcome.folder is None:
        raise RunError(f"the run has no folder: {outcome.error}")
    return outcome.folder


def link_name(cell: CellScenario) -> str:
    """By which a student finds the newest run of a cell in `runs`: `scenario`, `scenario-planes=2`."""
    return BETWEEN.join([cell.run, *cell.settings]).replace("/", "_")


def _compare(runs: Sequence[CellRun], out: Path, options: CheckOptions, console: PatientConsole) -> None:
    """Runs of several cells are shown side by side. The lesson does not need it."""
    for run in dict.fromkeys(one.run for one in runs):
        folders = [one.record.folder for one in runs if one.run == run]
        if len(folders) < 2:
            continue
        try:
            found = compare_folders(folders, out)
            point(found.folder, f"{run}-compared")
        except TestbedError as error:
            console.print(f"warning: {error}", style="yellow", soft_wrap=True)
            continue
        if not options.quiet:
            show_comparison(found.comparison, found.sequences, console)


def plan(options: str, folders: Sequence[Path]) -> Mapping[str, Any]:
    """What `mrc-testbed plan` says with these options, `--measured RUN` for each of these runs. Raises UsageError."""
    parts = [part.split() for part in options.split(_MEASURED)]
    measured = [word for folder in folders for word in ("--measured", str(folder))]
    words = [*parts[0], *(word for part in parts[1:] for word in (*measured, *part))]
    return _planned(tuple(words))


@cache
def _planned(words: tuple[str, ...]) -> Mapping[str, Any]:
    # The options that a person types, read as they are: the command is the one place that knows them all.
    command = python_command("mrc_testbed", "plan", *words, "--json", "-")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"`mrc-testbed plan {shlex.join(words)}`: {done.stderr.strip()}")
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found
