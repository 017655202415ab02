"""The jobs of steps of a workload: their names, and the numbers of their ranks. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from testbed.scenario.step_models import StepEntry
from testbed.workloads.steps import StepJob
from topos.shape import Shape


@dataclass(frozen=True, slots=True)
class NamedJob:
    """A job of steps among others. `first_rank`: how many ranks those before it have. `qps`: QPs between two ranks, if
    it is not the entry that says how many."""

    name: str
    entry: StepEntry
    first_rank: int
    qps: int | None = None

    def host_names(self, shape: Shape) -> tuple[str, ...]:
        """The hosts that take part, by rank."""
        return self.entry.host_names(shape)

    def steps(self, shape: Shape) -> StepJob:
        """What its hosts do. Raises ValueError for an impossible job."""
        job = self.entry.job(shape, self.first_rank)
        return job if self.qps is None else job.with_qps(self.qps)


def job_names(entries: Iterable[StepEntry]) -> tuple[str, ...]:
    """The names of several jobs: as written, else `job-1` for the first one, `job-2` for the second."""
    return tuple(entry.name or f"job-{number}" for number, entry in enumerate(entries, 1))


def named_jobs(entries: Iterable[StepEntry], shape: Shape, qps: int | None = None) -> tuple[NamedJob, ...]:
    """Several jobs, in the order of the file. `qps`: instead of what they say of QPs."""
    found: list[NamedJob] = []
    first_rank = 0
    entries = tuple(entries)
    for name, entry in zip(job_names(entries), entries, strict=True):
        found.append(NamedJob(name, entry, first_rank, qps))
        first_rank += len(entry.host_names(shape))
    return tuple(found)
