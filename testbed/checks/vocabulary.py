"""The words of the expectation language: metrics, statistics and units, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, Flag, StrEnum, auto
from typing import Any, Literal


class Dimension(Enum):
    """What a metric is measured in; decides which units a bound may have."""

    COUNT = "a plain number"
    BYTES = "a number of bytes"
    TIME = "a time"
    RATE = "a rate"


class Level(StrEnum):
    """What it means when an expectation does not hold: a warning is shown, and fails no run."""

    ERROR = "error"
    WARNING = "warning"


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
    EVENTS = "the whole run, the time of faults and what comes after their heals"
    ANY = "any part"


class By(Flag):
    """Of whom a figure can be asked: one host, one pair of hosts (sender and receiver), some of the flows."""

    HOST = auto()
    PAIR = auto()
    FLOW = auto()


ALL_ONLY = By(0)


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a run. `stats` empty: one number; else a statistic must be chosen.

    `has_clean`: the part of the run without faults gives a base to compare with. `hard`: however slow the machine
    was, it cannot have made this figure worse, so that a failed check on it stays failed. `job`: the kind of workload
    that has this figure, None for all. `by`: of whom it can be asked besides all. `flows`: of which flows it is known,
    None for all.
    """

    name: str
    dimension: Dimension
    about: str
    windows: Windows = Windows.RUN
    stats: tuple[str, ...] = ()
    has_clean: bool = False
    hard: bool = False
    job: Job | None = None
    by: By = ALL_ONLY
    flows: Literal["greedy", "latency"] | None = None

    @property
    def example(self) -> str:
        """How it is written: `step_time.p100`."""
        return f"{self.name}.{'p100' if 'p100' in self.stats else 'max'}" if self.stats else self.name


_SPREAD = ("min", "mean", "median", "p50", "p99", "p100", "max")
_EACH = ("min", "mean", "median", "max")
_TAIL = ("p50", "p99", "p100")
_ANY = Windows.ANY
_HOST, _PAIR, _FLOW = By.HOST, By.PAIR, By.FLOW
_COUNT, _TIME, _RATE = Dimension.COUNT, Dimension.TIME, Dimension.RATE
_OF_FLOWS: dict[str, Any] = {"has_clean": True, "job": Job.FLOWS, "by": _FLOW}
_OF_GREEDY: dict[str, Any] = {**_OF_FLOWS, "flows": "greedy"}
_OF_TRAINING: dict[str, Any] = {"job": Job.TRAIN, "by": _HOST}
_OF_SENDERS: dict[str, Any] = {"by": _HOST | _PAIR}

_SPEED = (
    Metric("steps_done", _COUNT, "steps that every rank finished", _ANY, **_OF_TRAINING),
    Metric("step_time", _TIME, "time of a step over all ranks", _ANY, _SPREAD, has_clean=True, **_OF_TRAINING),
    Metric(
        *("goodput", _RATE, "bytes of finished steps, or delivered by flows, per time", _ANY),
        has_clean=True,
        by=_HOST | _FLOW,
        flows="greedy",
    ),
    Metric(
        *("wait_time", _TIME, "time that a rank waited in a step for what others had to write", _ANY, _SPREAD),
        **{**_OF_TRAINING, "by": _HOST | _PAIR, "has_clean": True},
    ),
    Metric("flow_goodput", _RATE, "bytes delivered per time, of each flow", _ANY, _EACH, **_OF_GREEDY),
    Metric("fair_share", _COUNT, "goodput of each flow over its fair share", _ANY, _EACH, **_OF_GREEDY),
    Metric("balance", _COUNT, "the least of these shares over the greatest", _ANY, **_OF_GREEDY),
    Metric(
        *("latency", _TIME, "half the time from posting a message to its completion", _ANY, _SPREAD),
        **{**_OF_FLOWS, "flows": "latency"},
    ),
    Metric("message_time", _TIME, "from posting a message to its completion", _ANY, _SPREAD, **_OF_GREEDY),
)
_RECOVERY = (
    Metric("recovery", _TIME, "from first loss to leaving the path", Windows.FAULTS, _TAIL, **_OF_SENDERS),
    Metric(
        *("exposure", _TIME, "from the fault to the last packet sent on a path it broke", Windows.FAULTS, _TAIL),
        **_OF_SENDERS,
    ),
    Metric(
        *("goodput_back", _TIME, "until goodput is within 5 % of clean again", Windows.EVENTS, _TAIL),
        by=_HOST | _FLOW,
        flows="greedy",
    ),
    Metric("evs_retired", _COUNT, "times an EV became ASSUMED_BAD", _ANY, **_OF_SENDERS),
    Metric("evs_restored", _COUNT, "times an EV left ASSUMED_BAD for use", _ANY, **_OF_SENDERS),
    Metric("unrestored_evs", _COUNT, "EVs still ASSUMED_BAD at the end", **_OF_SENDERS),
    Metric("data_on_bad_ev", _COUNT, "data packets sent on an EV that was not GOOD", hard=True, by=_HOST),
)
_COUNTS = (
    Metric("qp_errors", _COUNT, "queue pairs that went to ERROR", _ANY, **_OF_SENDERS),
    Metric(
        *("bytes_wrong", Dimension.BYTES, "bytes that differ from what was sent", _ANY), hard=True, by=_HOST | _FLOW
    ),
    Metric("packets_lost", _COUNT, "data packets that senders took for lost", _ANY, **_OF_SENDERS),
    Metric("lost_per_qp", _COUNT, "the same of each QP that sent data", _ANY, _EACH, **_OF_SENDERS),
    Metric("retransmissions", _COUNT, "data packets sent again, for any reason", _ANY, by=_HOST),
    Metric("timeouts", _COUNT, "times a retransmission timer ran out", _ANY, by=_HOST),
    Metric("nacks", _COUNT, "NACKs that senders received", _ANY, by=_HOST),
    Metric("trims", _COUNT, "packets that arrived trimmed", _ANY, by=_HOST),
    Metric("ecn_skips", _COUNT, "times an EV was set aside because of ECN", _ANY, by=_HOST),
    Metric("queue_drops", _COUNT, "packets dropped by the queues of all ports"),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (*_COUNTS, *_SPEED, *_RECOVERY)}
