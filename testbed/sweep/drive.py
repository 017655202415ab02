"""A sweep in progress: open cells go to the engine, what comes back is kept, and what a machine spoiled goes again."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.interrupts import stopping_as_ctrl_c
from mrc_testbed.testbed.sweep.cell import CellSpec
from mrc_testbed.testbed.sweep.engine import CellJob, Ended, Engine
from mrc_testbed.testbed.sweep.folder import CellTry, SweepCell, SweepFolder

_LOOK_EVERY_S = 0.5
_LONGEST_GOODBYE_S = 30.0
"""Of runs that were stopped: they take their fabrics down and write their verdicts."""


@dataclass(frozen=True, slots=True)
class DriveLimits:
    """`retries`: how often a cell that a machine spoiled is run again; `fetch`: how much of its run folder is kept;
    `command`: in place of `mrc-testbed run`."""

    retries: int = 2
    fetch: str = "evidence"
    command: tuple[str, ...] = ()


@dataclass(slots=True)
class SweepProgress:
    """How far a sweep is. `verdicts`: of cells that were settled in this call; `done_before`: settled when it began."""

    cells: int
    done_before: int
    verdicts: Counter[str] = field(default_factory=Counter)
    tries: int = 0
    running: int = 0
    machines: int = 0
    interrupted: bool = False
    began_s: float = field(default_factory=time.monotonic)

    @property
    def settled(self) -> int:
        """In this call."""
        return self.verdicts.total()

    @property
    def left_s(self) -> float | None:
        """If the rest goes as fast; None before anything is known."""
        rest = self.cells - self.done_before - self.settled
        return rest * (time.monotonic() - self.began_s) / self.settled if self.settled else None


class DriveView(Protocol):
    """Who watches a sweep."""

    def show(self, progress: SweepProgress) -> None:
        """How far it is; often."""

    def line(self, text: str) -> None:
        """Something happened."""


def drive(
    folder: SweepFolder, cells: Sequence[SweepCell], engine: Engine, limits: DriveLimits, view: DriveView
) -> SweepProgress:
    """Run all open ones among `cells`; those on a kernel first, for those of virtual time would disturb them. After
    Ctrl-C nothing more begins; a second one waits for nothing.

    Raises TestbedError where the engine or the folder fails; what is there by then is kept.
    """
    wanted = [cell for cell in cells if folder.believed(cell) is None]
    done = _Drive(folder, engine, limits, view, SweepProgress(len(cells), len(cells) - len(wanted)))
    with stopping_as_ctrl_c(), engine:
        try:
            for on_kernel in (True, False):
                done.run(cell for cell in wanted if cell.on_kernel is on_kernel)
        except KeyboardInterrupt:
            done.say_goodbye()
    return done.progress


class _Drive:
    def __init__(
        self, folder: SweepFolder, engine: Engine, limits: DriveLimits, view: DriveView, progress: SweepProgress
    ) -> None:
        self.progress = progress
        self._folder, self._engine, self._limits, self._view = folder, engine, limits, view
        self._running = 0
        self._tried: Counter[str] = Counter()

    def run(self, cells: Iterable[SweepCell]) -> None:
        """Until each is settled."""
        waiting = deque(self._job(cell, order) for order, cell in enumerate(cells))
        self._show()
        while waiting or self._running:
            while job := self._with_room(waiting):
                self._running += 1
                waiting.remove(job)
                self._engine.submit(job)
            ended = self._engine.next_ended(_LOOK_EVERY_S)
            if ended:
                self._running -= 1
                again = self._take(ended)
                if again:
                    waiting.appendleft(again)
            self._show()

    def _with_room(self, waiting: Iterable[CellJob]) -> CellJob | None:
        """The first that can begin: one for which all workers are too small or busy does not hold up the others."""
        refused: set[float] = set()
        for job in waiting:
            if job.cell.cpus not in refused:  # room is a matter of size alone
                if self._engine.has_room(job):
                    return job
                refused.add(job.cell.cpus)
        return None

    def say_goodbye(self) -> None:
        """Let what runs end, and keep what is conclusive nevertheless."""
        self.progress.interrupted = True
        if self._running:
            self._view.line(f"stopping {self._running} runs; Ctrl-C again does not wait for them")
        self._engine.abort()
        end_s = time.monotonic() + _LONGEST_GOODBYE_S
        try:
            while self._running and time.monotonic() < end_s:
                ended = self._engine.next_ended(_LOOK_EVERY_S)
                if ended:
                    self._running -= 1
                    self._keep_last(ended)
                self._show()
        except KeyboardInterrupt:
            return

    def _job(self, cell: SweepCell, order: int, not_on: frozenset[str] = frozenset()) -> CellJob:
        version = {key: self._folder.about.get(key) for key in ("version", "commit")}
        limits = self._limits
        spec = CellSpec(cell.id, self._folder.scenario(cell), limits.fetch, version, limits.command)
        return CellJob(cell, spec, order, not_on)

    def _take(self, ended: Ended) -> CellJob | None:
        """Keep it. Returns the job that is to be run in its place, if any: never after a conclusive one."""
        job = ended.job
        not_on = job.not_on | {ended.worker}
        if ended.refused:
            return self._job(job.cell, job.order, not_on)
        kept = self._keep(ended)
        self._tried[job.cell.id] += 1
        worth = kept.document.get("another_try", False) and not kept.believed
        if worth and self._tried[job.cell.id] <= self._limits.retries:
            self._view.line(f"{job.cell.name}: {kept.document.get('reason', '')}; once more, on another machine if any")
            return self._job(job.cell, job.order, not_on)
        self._settle(kept)
        return None

    def _keep(self, ended: Ended) -> CellTry:
        result = ended.result
        self.progress.tries += 1
        return self._folder.keep(ended.job.cell, ended.document, result.packed if result else b"")

    def _keep_last(self, ended: Ended) -> None:
        if ended.document["exit_code"] in (ExitCode.PASS, ExitCode.FAIL):
            self._settle(self._keep(ended))

    def _settle(self, kept: CellTry) -> None:
        verdict = str(kept.document["verdict"])
        self.progress.verdicts[verdict] += 1
        if verdict not in ("pass", "measured"):
            self._view.line(f"{verdict.upper()}  {kept.cell.name}  {kept.document.get('reason', '')}  {kept.folder}")

    def _show(self) -> None:
        for line in self._engine.told.take():
            self._view.line(line)
        self.progress.running, self.progress.machines = self._running, self._engine.machines
        self._view.show(self.progress)
