"""Assigns comments to packets. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from mrc_testbed.testbed.pcap.link_events import LinkEvent

_SHORTEST_MS_NS = 1000
"""Shorter distances are told in nanoseconds."""


class Annotations(NamedTuple):
    """`at`: comments by packet number. `homeless`: comments without a packet."""

    at: dict[int, list[str]]
    homeless: list[str]


def annotate(events: Sequence[LinkEvent], times_ns: Sequence[int], start_ns: int, speed: int = 1) -> Annotations:
    """Put each comment on the packet nearest in time, the earlier of two, with the distance.

    `times_ns`: of the packets, in order (except those that two CPUs saw at once). `start_ns`: the start of the
    workload, from which displayed times count.
    """
    annotations = Annotations({}, [])
    for t_ns, text in events:
        told = f"{moment(t_ns - start_ns, speed)}: {text}"
        if not times_ns:
            annotations.homeless.append(told)
            continue
        number = _nearest(times_ns, t_ns)
        annotations.at.setdefault(number, []).append(f"{told} [{_distance(t_ns - times_ns[number])}]")
    return annotations


def moment(since_ns: int, speed: int) -> str:
    """A time from the start of the workload in words. `speed`: how many times faster than written the run was."""
    return f"{since_ns / 1e9:.4f} s" if speed == 1 else f"{since_ns / 1e6:.6f} ms"


def _nearest(times_ns: Sequence[int], t_ns: int) -> int:
    after = bisect_left(times_ns, t_ns)
    if after == len(times_ns) or (after and t_ns - times_ns[after - 1] <= times_ns[after] - t_ns):
        return after - 1
    return after


def _distance(later_ns: int) -> str:
    away = f"{abs(later_ns) / 1e6:.3f} ms" if abs(later_ns) >= _SHORTEST_MS_NS else f"{abs(later_ns)} ns"
    return (
        f"{away} after this packet" if later_ns > 0 else f"{away} before this packet" if later_ns else "at this packet"
    )
