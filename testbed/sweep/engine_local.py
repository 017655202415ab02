"""The engine of this machine: one cell at a time on its kernel, several at once in virtual time."""

from __future__ import annotations

import platform
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from types import TracebackType

from mrc_testbed.testbed.sweep.cell import CellResult, run_cell
from mrc_testbed.testbed.sweep.engine import CellJob, Ended, Told


class LocalEngine:
    """`jobs`: how many cells of virtual time at once."""

    machines = 1

    def __init__(self, jobs: int) -> None:
        self.told = Told()
        self._jobs = jobs
        self._running: list[CellJob] = []
        self._stop, self._left = threading.Event(), threading.Event()
        self._ended: SimpleQueue[tuple[CellJob, Future[CellResult]]] = SimpleQueue()
        self._host = platform.node()

    def __enter__(self) -> LocalEngine:
        self._pool = ThreadPoolExecutor(max(self._jobs, 1), thread_name_prefix="cell")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if kind is None:  # all has ended, or nobody waits for what has not, after a second Ctrl-C
            self._left.set()
        self._pool.shutdown()

    def has_room(self, job: CellJob) -> bool:
        """A fabric wants the machine for itself."""
        alone = job.cell.on_kernel or any(one.cell.on_kernel for one in self._running)
        return len(self._running) < (1 if alone else self._jobs)

    def submit(self, job: CellJob) -> None:
        """Begin it."""
        self._running.append(job)
        future = self._pool.submit(run_cell, job.spec, self._stop.is_set, self._left.is_set)
        future.add_done_callback(lambda done: self._ended.put((job, done)))

    def next_ended(self, timeout_s: float) -> Ended | None:
        """The next job that ended, None if none did in time."""
        try:
            job, future = self._ended.get(timeout=timeout_s)
        except Empty:
            return None
        self._running.remove(job)
        return Ended(job, self._host, future.result())

    def abort(self) -> None:
        """Stop all runs as Ctrl-C does."""
        self._stop.set()
