"""The vocabulary of metrics, and the units of bounds, as data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, Flag, StrEnum, auto
from math import inf
from typing import Literal

OPERATORS = ("<=", ">=", "==", "!=", "<", ">")


class Dimension(Enum):
    """What a metric is measured in; decides the units of a bound."""

    COUNT = "a plain number"
    BYTES = "a number of bytes"
    TIME = "a time"
    RATE = "a rate"


class Severity(StrEnum):
    """The consequence of a failed expectation: a warning is shown, and fails no run."""

    ERROR = "error"
    WARNING = "warning"


class Job(Enum):
    """The kinds of workload; some metrics exist for one kind only."""

    TRAIN = "a job of steps"
    FLOWS = "flows"


LINE = "line"
"""The unit `line`: the payload rate of a host over all its ports; follows from the fabric of the scenario."""
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
"""Default units of figures."""
BASE_UNITS: Mapping[Dimension, str] = {**DEFAULT_UNITS, Dimension.TIME: "ns"}
"""Units of computed and recorded values."""

EXAMPLES: Mapping[Dimension, str] = {
    Dimension.COUNT: "0",
    Dimension.BYTES: "0 or 512 KiB",
    Dimension.TIME: "1200ms or 6 rtt",
    Dimension.RATE: "40 MiB/s, 300mbit or 0.95 line",
}

SAME_STATS: Mapping[str | None, str] = {"median": "p50", "max": "p100"}
"""Statistics that have another name, and that name."""


class Windows(Enum):
    """The parts of a run for which a metric is known."""

    RUN = "the whole run only"
    FAULTS = "the whole run and the time of faults"
    EVENTS = "the whole run, the time of faults and what comes after their heals"
    ANY = "any part"


class By(Flag):
    """The scopes of a figure: one host, one pair of hosts (sender and receiver), some of the flows, a job of steps."""

    HOST = auto()
    PAIR = auto()
    FLOW = auto()
    JOB = auto()


ALL_ONLY = By(0)


class Known(StrEnum):
    """What a metric needs of a transport."""

    PACKETS = "packets"
    """Endpoints see and count their own packets."""
    PATHS = "paths"
    """Endpoints tell which paths they use."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a run.

    `stats` empty: one number; else a statistic is required. `has_clean`: the part of the run without faults gives a
    base for comparison. `hard`: a slow machine cannot make this figure worse, so a failed check on it stays failed.
    `job`: the kind of workload that has this figure, None for all. `by`: its scopes besides all. `flows`: the flows
    that have it, None for all. `of_several`: it compares flows and needs at least two. `of_receivers`: a pair names the
    receiver first. `steps_disturb`: it is meaningless while a job of steps shares the ports. `counter`: the endpoint
    counter whose growth it is; such a metric needs no function. `zero`: what an observed 0 is called where it says that
    something did not happen, and not how long it took. `needs`: what a transport must let us know to have this figure;
    None: nothing. `ranges`: the smallest and the greatest value that it can have, by statistic (None: of all that are
    not named); without one, ours are 0 or more, and of a plugin's nothing is known. `of_mapper`: there is none without
    the section `mapper`. `compute`: the function of a plugin's metric, `compute(record, window)`; built-in ones are in
    `mrc_testbed.testbed.checks`.
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
    flows: Literal["greedy", "latency", "trace"] | None = None
    of_several: bool = False
    of_receivers: bool = False
    steps_disturb: bool = False
    counter: str = ""
    zero: str = ""
    needs: Known | None = None
    ranges: Mapping[str | None, tuple[float, float]] = field(default_factory=dict, hash=False)
    of_mapper: bool = False
    compute: Callable[..., float | Sequence[float]] | None = None

    @property
    def example(self) -> str:
        """As written: `step_time.p100`."""
        return f"{self.name}.{'p100' if 'p100' in self.stats else 'max'}" if self.stats else self.name

    def range_of(self, stat: str | None) -> tuple[float, float]:
        """The smallest and the greatest value that this statistic can have."""
        usual = (0.0, inf) if self.compute is None else (-inf, inf)
        return self.ranges.get(stat, self.ranges.get(None, usual))

    def known_with(self, known: Collection[Known]) -> bool:
        """Whether a transport with these known properties has such a figure."""
        return self.needs is None or self.needs in known

    def unit_error(self, unit: str) -> str:
        """Why the metric cannot be given in `unit`; empty if it can."""
        units, wants = UNITS[self.dimension], f"{self.name} is {self.dimension.value}"
        if unit in units:
            return ""
        if self.dimension is Dimension.COUNT:
            return f"{wants}, without a unit; got {unit!r}"
        if not unit:
            return f"{wants}: give the bound a unit, such as {EXAMPLES[self.dimension]}"
        meant = next((known for known in units if known.lower() == unit.lower()), "")
        if meant:
            return f"{wants}: unknown unit {unit!r}; did you mean {meant!r}?"
        return f"{wants}: unknown unit {unit!r}; use one of {' '.join(known for known in units if known)}"
