"""The words that metrics are declared in, and the units of bounds, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, StrEnum, auto
from typing import Literal

OPERATORS = ("<=", ">=", "==", "!=", "<", ">")


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

DEFAULT_UNITS: Mapping[Dimension, str] = {
    Dimension.COUNT: "",
    Dimension.BYTES: "B",
    Dimension.TIME: "s",
    Dimension.RATE: "B/s",
}
"""Units of figures that are asked for without one."""
BASE_UNITS: Mapping[Dimension, str] = {**DEFAULT_UNITS, Dimension.TIME: "ns"}
"""Units that values are computed and recorded in."""

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
    None for all. `of_several`: it compares flows, of which there must be two. `of_receivers`: a pair names the receiver
    first. `steps_disturb`: it means nothing while a job of steps takes what it needs of the same ports. `counter`: the
    counter of endpoints whose growth it is; such a metric needs no computation of its own. `zero`: what an observed 0
    is called where it says that something did not happen, and not how long it took. `compute`: the computation of a
    plugin's metric, `compute(record, window)`; those of ours are in `testbed.checks`.
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
    of_several: bool = False
    of_receivers: bool = False
    steps_disturb: bool = False
    counter: str = ""
    zero: str = ""
    compute: Callable[..., float | Sequence[float]] | None = None

    @property
    def example(self) -> str:
        """How it is written: `step_time.p100`."""
        return f"{self.name}.{'p100' if 'p100' in self.stats else 'max'}" if self.stats else self.name

    def unit_error(self, unit: str) -> str:
        """Why the metric cannot be given in `unit`; empty when it can."""
        units, wants = UNITS[self.dimension], f"{self.name} is {self.dimension.value}"
        if unit in units:
            return ""
        if self.dimension is Dimension.COUNT:
            return f"{wants}, without a unit; got {unit!r}"
        if not unit:
            return f"{wants}: give the bound a unit, such as {EXAMPLES[self.dimension]}"
        return f"{wants}: unknown unit {unit!r}; use one of {' '.join(known for known in units if known)}"
