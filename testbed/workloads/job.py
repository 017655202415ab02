"""The result of planning a workload: QPs to open and a program for each host. Pure data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

JsonOperation = list[Any]
"""One operation of a rank program, as docs/architecture.md lists them: a name, then its arguments."""


@dataclass(frozen=True, slots=True)
class QpSpec:
    """A QP that both ends open under the name `id`: host `src` writes into `region_bytes` of host `dst`."""

    id: str
    src: int
    dst: int
    region_bytes: int


class Tracks(Mapping[int, list[list[JsonOperation]]]):
    """The tracks of each host's program by host number, written when they are asked for: a run of many hosts has time
    for that while its probes are under way."""

    def __init__(self, hosts: Iterable[int], write: Callable[[int], list[list[JsonOperation]]]) -> None:
        self._hosts = dict.fromkeys(hosts)
        self._write = write

    def __getitem__(self, host: int) -> list[list[JsonOperation]]:
        if host not in self._hosts:
            raise KeyError(host)
        return self._write(host)

    def __iter__(self) -> Iterator[int]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A planned workload for the daemons: the tracks of each host's program by host number.

    `ranks[k]` is the number of the host with rank k.
    """

    qps: tuple[QpSpec, ...]
    programs: Mapping[int, list[list[JsonOperation]]]
    ranks: tuple[int, ...]

    def qps_of(self, host: int) -> list[QpSpec]:
        """The QPs with an end on this host."""
        return [qp for qp in self.qps if host in (qp.src, qp.dst)]

    def rank_of(self, host: int) -> int:
        """The rank of a host. Raises ValueError if it takes no part."""
        return self.ranks.index(host)


def only_hosts(hosts: Iterable[int]) -> JobPlan:
    """Hosts that take part without a program of their own."""
    ranks = tuple(hosts)
    return JobPlan((), {host: [] for host in ranks}, ranks)


def merged(plans: Sequence[JobPlan]) -> JobPlan:
    """Several workloads in parallel. The ranks are those of the first one, then the hosts that only others have.

    Jobs of steps come first, each on hosts of its own: so they get the ranks that their `first_rank` says."""
    hosts = tuple(dict.fromkeys(host for plan in plans for host in plan.ranks))
    programs = Tracks(hosts, lambda host: [track for plan in plans for track in plan.programs.get(host, ())])
    return JobPlan(tuple(qp for plan in plans for qp in plan.qps), programs, hosts)
