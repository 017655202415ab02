"""Steps, goodput, stalls and waits of a run's job, from its raw files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import inf
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.oracles.figures import goodput, stall, steps, wasted
from tests.oracles.raw import AFTERMATH_RTTS, Raw, Row, Window

OUT = "ASSUMED_BAD"


class Outage(NamedTuple):
    """An occurrence of a fault: when it was tried, in place and healed, and until when it is felt."""

    name: str
    tried: int
    begun: int
    healed: float
    until: float

    @property
    def lasted(self) -> float:
        """From being in place to its heal."""
        return self.healed - self.begun

    def meets(self, since: float, until: float) -> bool:
        """Whether a stretch of time overlaps it."""
        return since <= self.until and self.tried <= until


class Felt:
    """One run. `calm_ns`: when its first fault is planned, since the start; infinite without one."""

    def __init__(self, folder: Path, calm_ns: float) -> None:
        """Reads nothing yet."""
        self.raw, self.calm_ns = Raw(folder), calm_ns

    @cached_property
    def outages(self) -> list[Outage]:
        """In order."""
        after = AFTERMATH_RTTS * self.raw.environment["base_rtt_ns"]
        return [Outage(name, tried, begun, end, end + after) for name, tried, begun, end in self.raw.faults]

    @property
    def died_ns(self) -> int | None:
        """When a QP failed, since the start."""
        errors = self.raw.named("qp_error")
        return min(line["t_ns"] for line in errors) - self.raw.start_ns if errors else None

    @property
    def counted_steps(self) -> list[Row]:
        """The first one is a start-up, and counts only where it is alone."""
        found = list(steps(self.raw, ""))
        return found[1:] or found

    @property
    def worst_ns(self) -> float | None:
        """The longest step."""
        return max((row["end_ns"] - row["begin_ns"] for row in self.counted_steps), default=None)

    @property
    def times(self) -> float | None:
        """The longest step over a usual one before anything happened."""
        calm = [row for row in self.counted_steps if row["end_ns"] <= self.raw.start_ns + self.calm_ns]
        usual = [row["end_ns"] - row["begin_ns"] for row in calm]
        return self.worst_ns / median(usual) if usual and self.worst_ns else None

    @property
    def kept(self) -> float | None:
        """Goodput over that of before."""
        since = -inf if self.calm_ns == inf else self.raw.start_ns
        whole = goodput(self.raw, Window("", [(-inf, inf)]), "")
        calm = goodput(self.raw, Window("from", [(since, self.raw.start_ns + self.calm_ns)]), "")
        return whole / calm if isinstance(whole, float) and isinstance(calm, float) and calm else None

    @property
    def wasted(self) -> float:
        """Bytes sent over bytes delivered, less 1."""
        found = wasted(self.raw, Window("", [(-inf, inf)]), "")
        assert isinstance(found, float)
        return found

    @cached_property
    def stalls(self) -> list[tuple[int, int]]:
        """Begin and end of each."""
        return [(line["begin_ns"], line["end_ns"]) for line in self.raw.named("stall")]

    def stalled_ns(self, fault: str = "") -> float:
        """The longest stall, of those that a fault overlaps if it is named."""
        spans = [(one.tried, one.until) for one in self.outages if one.name == fault]
        window = Window(f"during {fault}", spans) if fault else Window("", [(-inf, inf)])
        found = stall(self.raw, window, "")
        assert isinstance(found, Sequence)
        return max(found)

    def waited(self, ns: float, fault: str = "") -> bool:
        """Whether a stall that long was in an occurrence that was hardly longer, so that only the heal ended it."""
        return any(
            end - begin >= ns and one.meets(begin, end) and ns >= 0.9 * one.lasted
            for one in self.outages
            if fault in ("", one.name) and one.healed < inf
            for begin, end in self.stalls
        )

    def clean(self) -> Window:
        """Outside of faults, and of what they left behind."""
        after = AFTERMATH_RTTS * self.raw.environment["base_rtt_ns"]
        busy = sorted([*((one.tried, one.until) for one in self.outages), *self._left_behind(after)])
        spans: list[tuple[float, float]] = []
        since: float = self.raw.start_ns
        for begin, end in busy:
            if begin > since:
                spans.append((since, begin - 1))
            since = max(since, end + 1)
        return Window("clean", [*spans, (since, inf)])

    def _left_behind(self, after: float) -> Iterator[tuple[float, float]]:
        """Paths out of use and stalls that a fault began."""
        for line in self.raw.named("ev_state"):
            if line["to"] == OUT:
                path = (line["host"], line["peer"], line["plane"], line["uplink"])
                back = [
                    one["t_ns"]
                    for one in self.raw.named("ev_state")
                    if (one["host"], one["peer"], one["plane"], one["uplink"]) == path and one["t_ns"] > line["t_ns"]
                ]
                yield line["first_lost_tx_ns"], min(back, default=inf) + after
        for begin, end in self.stalls:
            if any(one.meets(begin, end) for one in self.outages):
                yield begin, end + after

    def waits(self) -> Iterator[tuple[float, float]]:
        """The longest stall of each occurrence in s, where it is longer than without any fault, and that again."""
        yield from ((ns / 1e9, ns / 1e9) for ns in self._longest() if ns > self._usual_ns())

    def waited_in_some(self, part: float) -> bool:
        """Whether the longest stall of some occurrence, longer than a usual one, lasted that part of it."""
        waits = dict(zip((one for one in self.outages), self._longest(), strict=True))
        return any(wait > self._usual_ns() and wait >= part * one.lasted for one, wait in waits.items())

    def _longest(self) -> list[int]:
        spans = [[end - begin for begin, end in self.stalls if one.meets(begin, end)] for one in self.outages]
        return [max(some, default=0) for some in spans]

    def _usual_ns(self) -> int:
        clean = self.clean()
        return max((end - begin for begin, end in self.stalls if clean.counts(begin, end)), default=0)

    def recoveries(self) -> Iterator[tuple[float, float]]:
        """The middle and the longest one of each occurrence in s. All paths out of use go over what broke."""
        took: dict[int, list[float]] = {}
        for line in self.raw.named("ev_state"):
            t_ns, lost = line["t_ns"], line["first_lost_tx_ns"]
            causes = [
                number
                for number, one in enumerate(self.outages)
                if one.tried <= t_ns and (t_ns <= one.until or one.tried <= lost <= one.healed)
            ]
            if line["to"] == OUT and causes:
                latest = max(causes, key=lambda number: self.outages[number].begun)
                took.setdefault(latest, []).append(t_ns - max(lost, self.outages[latest].begun))
        for number in sorted(took):
            ranked = sorted(took[number])
            yield ranked[(len(ranked) - 1) // 2] / 1e9, ranked[-1] / 1e9
