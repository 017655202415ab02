"""What a rank program is given, what it acts on, and what it reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from mrc_testbed.hosts.arrivals import FlowDone
from mrc_testbed.hosts.stream import GRAIN_NS, ReceivedInterval


class ProgramQps(Protocol):
    """What a program needs from the endpoint, with QPs by the names that `open_qps` gave them."""

    def region(self, qp: str) -> memoryview:
        """The registered memory of this side of the QP. Raises KeyError for an unknown QP."""

    def peer(self, qp: str) -> str:
        """The name of the host at the other end."""

    def take_placed(self, qp: str, mark_ns: int) -> int:
        """Payload bytes placed in this side's region since the last call, as far as they arrived before the mark that
        it set; from now on the mark is `mark_ns`."""

    def post_write(self, qp: str, data: memoryview, remote_offset: int, immediate: int | None) -> None:
        """Queue a write into the peer's region. `data` must not change until the write is reported complete."""


class StepReport(NamedTuple):
    """A finished step. Times are CLOCK_MONOTONIC; `sent_bytes` were written by this rank in the step.

    `waits`: for how many ns it waited for what a peer had to write, by the peer's name.
    """

    step: int
    begin_ns: int
    end_ns: int
    sent_bytes: int
    wrong_bytes: int
    waits: dict[str, int]


class IntervalReport(NamedTuple):
    """What came in on a QP in a stretch of time."""

    qp: str
    interval: ReceivedInterval


class CompletedReport(NamedTuple):
    """Messages sent on a QP and acknowledged: when, and how long after they were posted, in ns."""

    qp: str
    completed: list[tuple[int, int]]


class FlowsReport(NamedTuple):
    """Flows to a peer that ended, by their number in the list of the pair."""

    peer: str
    flows: list[FlowDone]


Report = StepReport | IntervalReport | CompletedReport | FlowsReport


@dataclass(frozen=True)
class RankPrograms:
    """What `load` brings: this rank's tracks and the seed of everybody's data. `grain_ns`: as of streams."""

    rank: int
    data_seed: int
    tracks: Sequence[Any]
    grain_ns: int = GRAIN_NS
