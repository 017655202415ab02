"""Runs in virtual time in processes of their own, several at once; their results are taken in order."""

from __future__ import annotations

import pickle
import signal
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.interrupts import held_back, let_through
from mrc_testbed.testbed.launcher.tied import end_with_parent
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.outcome import Case, RunOutcome
from mrc_testbed.testbed.rundir.results import point_latest
from mrc_testbed.testbed.scenario.model.transports import WorldKind

_PROCESSES: Any = get_context("fork" if "fork" in get_all_start_methods() else "spawn")
"""A fork has all that was loaded and read; where there is none, cases are sent."""


def refuse_jobs(cases: Sequence[Case], watched: bool) -> None:
    """Raises UsageError where several runs at once would share what there is once."""
    on_kernel = next((case for case in cases if case.scenario.world is WorldKind.KERNEL), None)
    if on_kernel:
        raise UsageError(f"{on_kernel.file}: --jobs: a kernel carries one run at a time; add --virtual")
    if watched:
        raise UsageError("--jobs: a browser shows one run at a time, and so do metrics; leave --web and --metrics out")


class _Run:
    """A process that runs a case, and what came of it."""

    def __init__(self, case: Case, out: Path, quiet: bool, width: int) -> None:
        self.pipe, theirs = _PROCESSES.Pipe(duplex=False)
        self._name = case.name
        self._process: BaseProcess = _PROCESSES.Process(target=_work, args=(theirs, case, out, quiet, width))
        self._process.daemon = True
        with held_back():
            self._process.start()
        theirs.close()
        self.said = ""
        self.found: RunOutcome | BaseException | None = None

    def take(self) -> None:
        """It has sent its result, or died."""
        try:
            self.said, self.found = pickle.loads(self.pipe.recv_bytes())
        except EOFError:
            self._process.join()
            self.found = RunError(f"{self._name}: its process died with status {self._process.exitcode}")
        self.end()

    def end(self) -> None:
        """As Ctrl-C would, if it still runs: it writes what it has."""
        if self.found is None:
            self._process.terminate()
            with suppress(EOFError):  # it would wait for ever for somebody who reads what it says
                self.pipe.recv_bytes()
        self._process.join()
        self.pipe.close()


class RunsAhead:
    """A context manager: up to `jobs` processes run the cases, begun in order. What one says is printed when its result
    is taken."""

    def __init__(self, cases: Sequence[Case], jobs: int, out: Path, quiet: bool, console: PatientConsole) -> None:
        self._to_come = deque(cases)
        self._jobs = jobs
        self._out, self._quiet, self._console = out, quiet, console
        self._begun: deque[_Run] = deque()

    def __enter__(self) -> RunsAhead:
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._begun:
            run.end()

    def next_result(self) -> RunOutcome:
        """Of the next case. Raises what its run raised."""
        self._begin()
        run = self._begun[0]
        while run.found is None:
            busy = {one.pipe: one for one in self._begun if one.found is None}
            for pipe in wait(list(busy)):
                busy[pipe].take()
            self._begin()
        self._begun.popleft()
        self._console.print(run.said, end="", highlight=False, soft_wrap=True)
        if isinstance(run.found, BaseException):
            raise run.found
        if run.found.folder:
            with suppress(RunError):  # as its own process has said
                point_latest(run.found.folder)
        return run.found

    def _begin(self) -> None:
        while self._to_come and sum(run.found is None for run in self._begun) < self._jobs:
            self._begun.append(_Run(self._to_come.popleft(), self._out, self._quiet, self._console.width))


def _work(pipe: Connection, case: Case, out: Path, quiet: bool, width: int) -> None:
    """A process of one run. Ctrl-C is for the command, which ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    said = StringIO()
    found: RunOutcome | BaseException
    try:
        end_with_parent()
        let_through()
        found = run_scenario(
            case.scenario, out, quiet, PatientConsole(file=said, width=width, highlight=False), name=case.name
        )
    except (Exception, KeyboardInterrupt) as error:
        found = error
    try:
        sent = pickle.dumps((said.getvalue(), found))
        pickle.loads(sent)
    except Exception:  # it is an error that cannot be sent
        sent = pickle.dumps((said.getvalue(), RunError(str(found))))
    pipe.send_bytes(sent)


def _stop(number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number).name)
