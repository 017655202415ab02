"""Times of a run as its page has them: seconds since the workload's start. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import outages

_DIGITS, _ALL_DIGITS = 4, 9
_FAST = 1000
"""From this speed on times are read in microseconds."""
_LEAST_S = 0.1
_AFTER_NS = 200_000_000
"""What changed last can be seen for so long."""


@dataclass(frozen=True, slots=True)
class Clock:
    """From the start of the workload to the last thing that charts show, on the machine's clock."""

    start_ns: int
    end_ns: int
    speed: int = 1
    """How many times faster than usual all of it was."""

    @property
    def unit(self) -> str:
        """In which people read times: `s` or `us`."""
        return "s" if self.speed < _FAST else "us"

    def read(self, t_ns: float, digits: int) -> str:
        """A time in that unit, with `digits` digits behind the point."""
        return f"{self.at(t_ns) * (1 if self.speed < _FAST else 1e6):.{digits}f}"

    @property
    def length_s(self) -> float:
        """How much time charts show."""
        return max(self.at(self.end_ns), _LEAST_S / self.speed)

    def at(self, t_ns: float) -> float:
        """Seconds, to a tenth of a millisecond; at real scale to a nanosecond."""
        return round((t_ns - self.start_ns) / 1e9, _DIGITS if self.speed == 1 else _ALL_DIGITS)


def clock_of(record: RunRecord) -> Clock | None:
    """None for a run whose workload never began. What changed after its end (heals, paths that came back) is shown."""
    if record.start_ns is None:
        return None
    heals = [outage.healed_ns for outage in outages(record) if outage.healed_ns is not None]
    changes = [*(one.t_ns for one in record.ev_changes), *(one.t_ns for one in record.port_changes)]
    changes += [rests.times_ns[-1] for rests in record.rests.values()]
    last_ns = max([*heals, *changes], default=0)
    shape = record.scenario.shape()
    after_ns = shape.least_ns(_AFTER_NS)
    return Clock(record.start_ns, max(record.end_ns, last_ns + after_ns if last_ns > record.end_ns else 0), shape.speed)
