"""Which workers a job may go to: not to one that spoiled it before, nor to one that spoils what it gets. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mrc_testbed.testbed.sweep.engine import CellJob

REMEMBERED = 5
TOO_MANY = 3
"""Inconclusive ones of the last cells of a worker, from which on it gets no more."""


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """A worker as it describes itself. `fabric`: how many fabrics it carries at once, None: it was not said; `cpus`:
    likewise, the CPU seconds a second that it carries."""

    name: str
    host: str
    threads: int
    fabric: float | None
    cpus: float | None


class Placing:
    """What is known of workers while a sweep goes on."""

    def __init__(self) -> None:
        self._spoiled: dict[str, deque[bool]] = {}
        self.set_aside: set[str] = set()

    def ended(self, worker: str, inconclusive: bool) -> bool:
        """One more cell of a worker. True if it has just become too many."""
        last = self._spoiled.setdefault(worker, deque(maxlen=REMEMBERED))
        last.append(inconclusive)
        if worker in self.set_aside or sum(last) < TOO_MANY:
            return False
        self.set_aside.add(worker)
        return True

    def allowed(self, job: CellJob, workers: Mapping[str, WorkerFacts]) -> set[str]:
        """The best workers of those that are there: that did not spoil this cell, nor share a machine with one that
        did; if there are none, any that carries it. Empty: none does."""
        able = {name for name, facts in workers.items() if carries(facts, job, workers.values())}
        trusted = able - self.set_aside or able
        hosts = {facts.host for name, facts in workers.items() if name in job.not_on}
        fresh = {name for name in trusted - job.not_on if workers[name].host not in hosts}
        return fresh or trusted - job.not_on or trusted


def carries(facts: WorkerFacts, job: CellJob, everyone: Collection[WorkerFacts]) -> bool:
    """Whether a worker is fit for a job. Packets a second count only where every worker says what it carries."""
    if not job.cell.on_kernel:
        return True
    if not facts.fabric:
        return False
    told = all(each.cpus is not None for each in everyone)
    return not told or (facts.cpus or 0) >= job.cell.cpus


def wants(job: CellJob, everyone: Collection[WorkerFacts]) -> dict[str, float]:
    """The resources that a job takes up on its worker."""
    if not job.cell.on_kernel:
        return {}
    told = all(each.cpus is not None for each in everyone)
    return {"fabric": 1, **({"cpus": job.cell.cpus} if told else {})}
