"""From an emulated run to a network at scale: what was measured in round trips there is priced in round trips here.

Where every timer counts in round trips, a wait of three of them is a wait of three anywhere. Timers of software are set
in seconds, and who cannot leave a path waits until the fault is over, which lasts seconds too: such waits stay as they
are, and what they would be in round trips is given beside them, as if those timers could be so short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, Provenance
from mrc_testbed.testbed.planner.arithmetic.recovery import PathRecovery


@dataclass(frozen=True, slots=True)
class FaultWait:
    """In one occurrence of a fault, in one run, in s: the least that counts and the longest, which the job waits for.
    `rtt_s`: the base RTT of the run. `speed`: how many times faster the run was than it is written."""

    least_s: float
    longest_s: float
    rtt_s: float
    speed: float = 1


@dataclass(frozen=True, slots=True)
class MeasuredWaits:
    """All waits of one transport, of one kind.

    `name`: the transport, and which of its settings; `what`: the kind of wait; `figure`: taken in each occurrence of a
    fault; `runs`: names of their folders; `routing`: how packets found their way; `in_seconds`: what in it is set in
    seconds, empty where all timers count in round trips. `waits`: at least one; `occurrences`: how many were looked at,
    with a wait or without one.
    """

    name: str
    what: str
    figure: str
    runs: tuple[str, ...]
    routing: str
    waits: tuple[FaultWait, ...]
    occurrences: int
    in_seconds: str = ""


def priced(measured: MeasuredWaits, rtt: MarkedNumber) -> Iterator[PathRecovery]:
    """The waits where a round trip takes `rtt` (in us): in round trips, and before that in seconds if they go by those.

    The value is the mean of the longest wait in each occurrence of a fault, because a synchronous job waits for the
    slowest transfer; its range is that of what was measured, and of the round trip.
    """
    told = _told(measured)
    scaled = f"{told}, x {rtt.value:g} us"
    if measured.in_seconds:
        yield PathRecovery(f"{measured.name}: {measured.what}, in seconds", _in_seconds(measured, told))
        scaled += "; what sets it does not shrink so"
    yield PathRecovery(f"{measured.name}: {measured.what}, in round trips", _in_round_trips(measured, rtt, scaled))


def _in_seconds(measured: MeasuredWaits, told: str) -> MarkedNumber:
    source = f"{told}; {measured.in_seconds}: in seconds as {_measured_at(measured)}"
    longest = [wait.longest_s * wait.speed for wait in measured.waits]
    least = min(wait.least_s * wait.speed for wait in measured.waits)
    return MarkedNumber(mean(longest), "s", Provenance.MEASURED, source, least, max(longest))


def _measured_at(measured: MeasuredWaits) -> str:
    speed = max(wait.speed for wait in measured.waits)
    return "measured" if speed == 1 else f"written, {speed:g} times those measured"


def _in_round_trips(measured: MeasuredWaits, rtt: MarkedNumber, source: str) -> MarkedNumber:
    longest = [wait.longest_s / wait.rtt_s for wait in measured.waits]
    least = min(wait.least_s / wait.rtt_s for wait in measured.waits)
    value, low, high = (
        trips * us / 1e6 for trips, us in ((mean(longest), rtt.value), (least, rtt.low), (max(longest), rtt.high))
    )
    return MarkedNumber(value, "s", Provenance.MEASURED, source, low, high, ("rtt",))


def _told(measured: MeasuredWaits) -> str:
    """`20261122T145420Z-quickstart: recovery.p100 in 7 of 7 occurrences, 2.95-3.07 base RTTs of 41.1 ms, over srv6`."""
    waits = measured.waits
    trips = [wait.longest_s / wait.rtt_s for wait in waits]
    rtts_ms = [wait.rtt_s * 1e3 for wait in waits]
    which = f"{len(waits)} of {measured.occurrences} occurrence{'s' if measured.occurrences > 1 else ''}"
    figure = f"{measured.figure} in {which}, {_between(trips)} base RTTs of {_between(rtts_ms)} ms"
    return f"{', '.join(measured.runs)}: {figure}, over {measured.routing}"


def _between(values: Sequence[float]) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low}-{high}"
