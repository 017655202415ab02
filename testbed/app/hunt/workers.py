"""Tries on all cores: processes that try what they are given, and are replaced when they die or hang."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Protocol

from mrc_testbed.testbed.app.hunt.subject import HuntRequest, Subject
from mrc_testbed.testbed.app.hunt.trial import STUCK, Candidate, Outcome, attempt
from mrc_testbed.testbed.launcher.tied import end_with_parent
from mrc_testbed.testbed.rundir.scratch import HUNT, scratch

LONGEST_S = 600.0
"""Of one try."""
_LOOK_S = 0.5
_SPAWN = get_context("spawn")
"""The only way that all systems have."""


@contextlib.contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """A process that is started meanwhile ignores it from its first moment on: it is for the command, which ends it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Worker:
    """A process and what it is doing."""

    def __init__(self, request: HuntRequest, scratch: Path) -> None:
        self.pipe, theirs = _SPAWN.Pipe()
        self._process: BaseProcess = _SPAWN.Process(target=_work, args=(theirs, request, scratch), daemon=True)
        with _without_ctrl_c():
            self._process.start()
        theirs.close()
        self.job: Candidate | None = None
        self._since_s = 0.0

    def begin(self, job: Candidate) -> None:
        """Let it try this."""
        self.job, self._since_s = job, time.monotonic()
        with contextlib.suppress(OSError):  # it has died: that is found when its answer is read
            self.pipe.send(job)

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._since_s

    def answer(self) -> Outcome | None:
        """What has come of it; None where the process has died."""
        try:
            found = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return found if isinstance(found, Outcome) else None

    def end(self) -> int | None:
        """End it, whatever it does. Returns its exit status."""
        self._process.terminate()
        self._process.join()
        self.pipe.close()
        return self._process.exitcode


class HuntWorkers(Protocol):
    """What makes tries: a context manager, with what a hunt uses of it."""

    def __enter__(self) -> HuntWorkers:
        """Raises TestbedError where there are none."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """None goes on."""

    def outcome(self, job: Candidate) -> Outcome:
        """Of one try."""

    def outcomes(self, jobs: Iterator[Candidate]) -> Iterator[tuple[Candidate, Outcome]]:
        """Of each job as it is done. They begin in order, and each is asked for when it can begin."""


class Workers:
    """A context manager: `jobs` processes at most, started when they are needed. `longest_s`: a try that takes longer
    is stuck."""

    def __init__(self, request: HuntRequest, jobs: int, longest_s: float = LONGEST_S) -> None:
        self._request = request
        self._jobs = jobs
        self._longest_s = longest_s
        self._workers: list[_Worker] = []
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Workers:
        self._folder = self._held.enter_context(scratch(HUNT)).path
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.end()
        self._held.close()

    def outcome(self, job: Candidate) -> Outcome:
        """Of one try."""
        ((_, outcome),) = self.outcomes(iter([job]))
        return outcome

    def outcomes(self, jobs: Iterator[Candidate]) -> Iterator[tuple[Candidate, Outcome]]:
        """Of each job as it is done. They begin in order, and each is asked for when a process is free."""
        more = True
        while True:
            while more and (worker := self._idle()):
                job = next(jobs, None)
                if job is None:
                    more = False
                else:
                    worker.begin(job)
            if not (busy := [worker for worker in self._workers if worker.job]):
                return
            ready = wait([worker.pipe for worker in busy], _LOOK_S)
            for worker in busy:
                if worker.pipe in ready or worker.seconds > self._longest_s:
                    job = worker.job
                    if job:
                        yield job, self._done(worker)

    def _idle(self) -> _Worker | None:
        found = next((worker for worker in self._workers if not worker.job), None)
        if found is None and len(self._workers) < self._jobs:
            found = _Worker(self._request, self._folder)
            self._workers.append(found)
        return found

    def _done(self, worker: _Worker) -> Outcome:
        late = worker.seconds > self._longest_s and not worker.pipe.poll()
        outcome = None if late else worker.answer()
        worker.job = None
        if outcome is None:
            seconds = worker.seconds
            self._workers.remove(worker)
            status = worker.end()
            stuck = Outcome({STUCK: f"no end after {self._longest_s:.0f} s"}, seconds=seconds)
            outcome = stuck if late else Outcome.of_death(status, seconds)
        return outcome


def _work(pipe: Connection, request: HuntRequest, scratch: Path) -> None:
    """A worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # not inherited on every system
    end_with_parent()
    subject = Subject(request)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(attempt(subject, pipe.recv(), scratch))
