"""The words of the expectation language: metrics, statistics and units, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal


class Dimension(Enum):
    """What a metric is measured in; decides which units a bound may have."""

    COUNT = "a plain number"
    BYTES = "a number of bytes"
    TIME = "a time"
    RATE = "a rate"


class Job(Enum):
    """What a workload can be; some metrics are known of one kind only."""

    TRAIN = "a job of steps"
    FLOWS = "flows"


LINE = "line"
"""The unit `line`: what a host can send, in payload, with all its ports; follows from the fabric of the scenario."""
RTT = "rtt"
"""The unit `rtt`: the base RTT measured in warm-up, known only when a run is judged."""

UNITS: Mapping[Dimension, Mapping[str, float]] = {
    Dimension.COUNT: {"": 1},
    Dimension.BYTES: {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
    Dimension.TIME: {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, RTT: 0},
    Dimension.RATE: {
        **{"B/s": 1, "KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30},
        **{"bit": 1 / 8, "kbit": 1e3 / 8, "mbit": 1e6 / 8, "gbit": 1e9 / 8},
        LINE: 0,
    },
}
"""Units of a bound by dimension, as multiples of: 1, bytes, nanoseconds, bytes per second."""

EXAMPLES: Mapping[Dimension, str] = {
    Dimension.COUNT: "0",
    Dimension.BYTES: "0 or 512 KiB",
    Dimension.TIME: "1200ms or 6 rtt",
    Dimension.RATE: "40 MiB/s, 300mbit or 0.95 line",
}


class Windows(Enum):
    """For which parts of a run a metric is known."""

    RUN = "the whole run only"
    FAULTS = "the whole run and the time of faults"
    ANY = "any part"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a run. `stats` empty: one number; else a statistic must be chosen.

    `has_clean`: the part of the run without faults gives a base to compare with. `hard`: however slow the machine
    was, it cannot have made this figure worse, so that a failed check on it stays failed. `job`: the kind of workload
    that has this figure, None for all. `by_flow`: it can be asked of some of the flows. `flows`: of which flows it is
    known, None for all.
    """

    name: str
    dimension: Dimension
    about: str
    windows: Windows = Windows.RUN
    stats: tuple[str, ...] = ()
    has_clean: bool = False
    hard: bool = False
    job: Job | None = None
    by_flow: bool = False
    flows: Literal["greedy", "latency"] | None = None


_SPREAD = ("min", "mean", "median", "p50", "p99", "p100", "max")
_EACH = ("min", "mean", "median", "max")
_ANY = Windows.ANY
_OF_FLOWS: dict[str, Any] = {"has_clean": True, "job": Job.FLOWS, "by_flow": True}
_OF_GREEDY: dict[str, Any] = {**_OF_FLOWS, "flows": "greedy"}

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("qp_errors", Dimension.COUNT, "queue pairs that went to ERROR", _ANY),
        Metric("bytes_wrong", Dimension.BYTES, "bytes that differ from what was sent", _ANY, hard=True),
        Metric("data_on_bad_ev", Dimension.COUNT, "data packets sent on an EV that was not GOOD", hard=True),
        Metric("steps_done", Dimension.COUNT, "steps that every rank finished", _ANY, job=Job.TRAIN),
        Metric(
            "step_time",
            Dimension.TIME,
            "time of a step over all ranks",
            _ANY,
            _SPREAD,
            has_clean=True,
            job=Job.TRAIN,
        ),
        Metric(
            "goodput",
            Dimension.RATE,
            "bytes of finished steps, or delivered by flows, per time",
            _ANY,
            has_clean=True,
        ),
        Metric("flow_goodput", Dimension.RATE, "bytes delivered per time, of each flow", _ANY, _EACH, **_OF_GREEDY),
        Metric("fair_share", Dimension.COUNT, "goodput of each flow over its fair share", _ANY, _EACH, **_OF_GREEDY),
        Metric("balance", Dimension.COUNT, "the least of these shares over the greatest", _ANY, **_OF_GREEDY),
        Metric(
            *("latency", Dimension.TIME, "half the time from posting a message to its completion", _ANY, _SPREAD),
            **{**_OF_FLOWS, "flows": "latency"},
        ),
        Metric("message_time", Dimension.TIME, "from posting a message to its completion", _ANY, _SPREAD, **_OF_GREEDY),
        Metric(
            "recovery", Dimension.TIME, "from first loss to leaving the path", Windows.FAULTS, ("p50", "p99", "p100")
        ),
        Metric(
            *("exposure", Dimension.TIME, "from the fault to the last packet sent on a path it broke"),
            *(Windows.FAULTS, ("p50", "p99", "p100")),
        ),
        Metric("packets_lost", Dimension.COUNT, "data packets that senders took for lost", _ANY),
        Metric("retransmissions", Dimension.COUNT, "data packets sent again, for any reason", _ANY),
        Metric("timeouts", Dimension.COUNT, "times a retransmission timer ran out", _ANY),
        Metric("nacks", Dimension.COUNT, "NACKs that senders received", _ANY),
        Metric("trims", Dimension.COUNT, "packets that arrived trimmed", _ANY),
        Metric("ecn_skips", Dimension.COUNT, "times an EV was set aside because of ECN", _ANY),
        Metric("evs_retired", Dimension.COUNT, "times an EV became ASSUMED_BAD", _ANY),
        Metric("evs_restored", Dimension.COUNT, "times an EV left ASSUMED_BAD for use", _ANY),
        Metric("unrestored_evs", Dimension.COUNT, "EVs still ASSUMED_BAD at the end"),
        Metric("queue_drops", Dimension.COUNT, "packets dropped by the queues of all ports"),
    )
}
