"""The jobs of steps of a workload: their names, and the numbers of their ranks. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mrc_testbed.testbed.scenario.model.step_models import StepEntry
from mrc_testbed.testbed.workloads.steps import StepJob
from mrc_testbed.topos.shape import Shape


@dataclass(frozen=True, slots=True)
class NamedJob:
    """A job of steps among others. `first_rank`: how many ranks those before it have."""

    name: str
    entry: StepEntry
    first_rank: int

    def host_names(self, shape: Shape) -> tuple[str, ...]:
        """The hosts that take part, by rank."""
        return self.entry.host_names(shape)

    def steps(self, shape: Shape) -> StepJob:
        """What its hosts do. Raises ValueError for an impossible job."""
        return self.entry.job(shape, self.first_rank)


def job_names(entries: Iterable[StepEntry]) -> tuple[str, ...]:
    """The names of several jobs: as written, else `job-1` for the first one, `job-2` for the second."""
    return tuple(entry.name or f"job-{number}" for number, entry in enumerate(entries, 1))


def named_jobs(entries: Iterable[StepEntry], shape: Shape) -> tuple[NamedJob, ...]:
    """Several jobs, in the order of the file."""
    found: list[NamedJob] = []
    first_rank = 0
    entries = tuple(entries)
    for name, entry in zip(job_names(entries), entries, strict=True):
        found.append(NamedJob(name, entry, first_rank))
        first_rank += len(entry.host_names(shape))
    return tuple(found)
