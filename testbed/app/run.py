"""`mrc-testbed run`, outside the sandbox: prepare the folder, let the supervisor run, judge what it left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mrc_testbed.testbed.app.places import place_of
from mrc_testbed.testbed.app.run_view import RunView
from mrc_testbed.testbed.errors import ExitCode, RunError
from mrc_testbed.testbed.live.choose import progress_for, terminal_of
from mrc_testbed.testbed.report.console import PatientConsole, open_console
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir.ownership import claimed, hand_over
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.results import create_folder, point_latest
from mrc_testbed.testbed.runner.phases import RunJob
from mrc_testbed.testbed.runner.plugins import keep_plugins
from mrc_testbed.testbed.runner.program_files import ProgramFiles
from mrc_testbed.testbed.runner.program_needs import require_needs
from mrc_testbed.testbed.runner.program_spec import program_specs
from mrc_testbed.testbed.runner.progress import ProgressGroup
from mrc_testbed.testbed.runner.traces import copy_traces
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.terminal import say


def run_scenario(
    scenario: Scenario,
    out: Path,
    quiet: bool,
    console: PatientConsole | None = None,
    replays: Path | None = None,
    live: bool = False,
    audience: RunView | None = None,
    name: str = "",
) -> RunOutcome:
    """Run it; print progress, summary and verdict on `console`, as a rule standard output, and show it to `audience`.

    `quiet`: print the verdict of `name` alone; with `live` a terminal shows the run as it goes all the same.
    `replays`: the run folder that the scenario's schedule comes from, for the record.
    Raises TestbedError for what is wrong before the run begins; later trouble ends in the verdict.
    """
    began = time.monotonic()
    place = place_of(scenario)
    place.require_reach(out)
    programs = ProgramFiles.read(scenario, replays)
    programs.require_consent()
    require_needs(program_specs(scenario, out))
    folder = create_folder(out, scenario.name)
    _write_scenario(scenario, folder)
    keep_plugins(scenario, folder)
    copy_traces(scenario, folder)
    programs.keep(folder)
    with claimed(folder):  # not before: a folder without its scenario can never get a verdict
        _link(folder)
        job = RunJob(scenario, folder, place.world(), replays, audience)
        if audience:
            audience.begin(scenario, place.options)
        console = console or open_console()
        screens = audience.screens() if audience else ()
        feeds = audience.feeds(scenario, folder.name) if audience else ()
        with _ended_for(audience, folder):
            with terminal_of(console, quiet and not live) as tty:
                status = place.execute(
                    job, lambda: ProgressGroup(progress_for(scenario, console, quiet, tty, *screens), *feeds)
                )
            from mrc_testbed.testbed.app.judge import judge_folder  # until here nothing needs what it loads

            outcome = judge_folder(folder, console, quiet, name)
    hand_over(folder)
    if console.lost:
        say(f"mrc-testbed: standard output: {console.lost}; read {folder}/summary.txt", err=True)
    if audience:
        audience.end(outcome)
    stopped = status == ExitCode.INTERRUPTED
    code = ExitCode.INTERRUPTED if stopped and outcome.exit_code is not ExitCode.FAIL else outcome.exit_code
    return replace(outcome, exit_code=code, interrupted=stopped, seconds=time.monotonic() - began)


@contextmanager
def _ended_for(audience: RunView | None, folder: Path) -> Iterator[None]:
    """A run without a verdict has ended, too: who watches is told, and may ask for the next one."""
    try:
        yield
    except Exception as error:
        if audience:
            audience.end(RunOutcome(ExitCode.INCONCLUSIVE, 0.0, folder=folder, error=str(error)))
        raise


def _link(folder: Path) -> None:
    try:
        point_latest(folder)
    except RunError as error:
        say(f"warning: {error}", err=True)


def _write_scenario(scenario: Scenario, folder: Path) -> None:
    recorder = Recorder(folder)
    try:
        recorder.text("scenario.yaml", scenario.dump_yaml())
    finally:
        recorder.close()
