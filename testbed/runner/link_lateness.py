"""How late packets came out of links: a shaper whose CPU is taken away sends less than its link carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mrc_testbed.testbed.switching.port_counts import LateArrivals, PortCounts

Port = tuple[str, str]
LEAST_PACKETS = 100
"""A share of fewer is chance."""
NOT_KNOWN = "plain shapers keep no time of a wire"


class _Seen(NamedTuple):
    """Of one port since the fabric was built."""

    packets: int
    late: int
    most_ns: int


class LinkLateness:
    """From here on: the share of late packets at the port where it is greatest."""

    def __init__(
        self,
        late: Callable[[], Mapping[Port, LateArrivals]],
        counts: Callable[[], Mapping[Port, PortCounts]],
        caught_up: Callable[[], int],
    ):
        """`late`, `counts`: those of every port so far. `caught_up`: how often a shaper began to make up lost time."""
        self._late, self._counts, self._caught_up = late, counts, caught_up
        self._before, self._caught_up_before = self._seen(), caught_up()

    def _seen(self) -> dict[Port, _Seen]:
        counts = self._counts()
        return {port: _Seen(_arrived(counts[port]), *late) for port, late in self._late().items()}

    def figure(self) -> dict[str, Any]:
        """As in fidelity.json. `most_ns` is 0 where nothing was later than before."""
        worst, found = -1.0, {}
        for (node, name), now in self._seen().items():
            before = self._before[node, name]
            packets, late = now.packets - before.packets, now.late - before.late
            share = late / max(packets, LEAST_PACKETS)
            if share > worst:
                most_ns = now.most_ns if now.most_ns > before.most_ns else 0
                worst, found = share, {"node": node, "port": name, "packets": packets, "late": late, "most_ns": most_ns}
        return {"share": round(worst, 5), **found, "caught_up": self._caught_up() - self._caught_up_before}


def _arrived(counts: PortCounts) -> int:
    return counts.in_data + counts.in_trimmed + counts.in_control + counts.in_other
