"""The seam between a sweep and what carries its cells out: this machine, or workers of an existing engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

from mrc_testbed.testbed.sweep.cell import CellResult, CellSpec
from mrc_testbed.testbed.sweep.folder import SweepCell


@dataclass(frozen=True, slots=True)
class CellJob:
    """A cell to be run once more. `order`: jobs with lower ones begin earlier; `not_on`: workers that spoiled it."""

    cell: SweepCell
    spec: CellSpec
    order: int
    not_on: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Ended:
    """A job and what came of it. `worker`: who ran it; `result` None: the engine gave up, for the reason `problem`.
    `refused`: the worker would not begin it, so it was no try."""

    job: CellJob
    worker: str
    result: CellResult | None = None
    problem: str = ""
    refused: bool = False

    @property
    def document(self) -> Mapping[str, Any]:
        """The content of cell.json."""
        if self.result:
            return {**self.result.document, "worker": self.worker}
        return {
            "verdict": "inconclusive",
            "exit_code": 3,
            "reason": self.problem,
            "another_try": False,
            "seconds": 0.0,
            "worker": self.worker,
            "run": None,
        }


@dataclass(slots=True)
class Told:
    """What an engine has to say to people, in the order of its finding out."""

    lines: list[str] = field(default_factory=list)

    def take(self) -> list[str]:
        """All that was not taken before."""
        lines, self.lines = self.lines, []
        return lines


class Engine(Protocol):
    """A context manager, in which jobs are handed over and come back in any order."""

    told: Told

    def __enter__(self) -> Engine:
        """Raises TestbedError where it cannot be used."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing of it goes on."""

    def has_room(self, job: CellJob) -> bool:
        """Whether this job, and any other of its world and `cpus`, could begin at once."""

    def submit(self, job: CellJob) -> None:
        """Begin it."""

    def next_ended(self, timeout_s: float) -> Ended | None:
        """The next job that ended, None if none did in time. Raises TestbedError where the engine is gone."""

    def abort(self) -> None:
        """Stop all runs as Ctrl-C does; they still end, and come back."""

    @property
    def machines(self) -> int:
        """How many there are."""
