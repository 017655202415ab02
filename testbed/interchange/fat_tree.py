"""Links that fail in a connection matrix, as htsim has them: all the time, between the second and third tier of its fat
tree of switches with K ports, for K * K * K / 4 nodes. Ours of that shape has the same switches and links, by number.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mrc_testbed.topos.names import link_name, switch_name

LEAST_PORTS, MOST_PORTS = 4, 16
PLANE = 0
"""The one in which links fail: uet-htsim lets them fail in its first one alone."""


class FailedLink(NamedTuple):
    """The link up number `link` of the switch number `switch` of the second tier."""

    switch: int
    link: int


class FatTree(NamedTuple):
    """Switches of `ports` ports, and what has failed."""

    ports: int
    failed: tuple[FailedLink, ...]

    @property
    def fabric(self) -> Mapping[str, Any]:
        """The key `family` of its fabric."""
        half = self.ports // 2
        sizes = {"pods": self.ports, "t0": half, "t1": half, "t2": half * half, "hosts_per_t0": half}
        return {"family": {"clos3": sizes}}

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the failed ones: a switch at place x in its pod has the x-th row of the third tier above it."""
        half = self.ports // 2
        return tuple(
            link_name(switch_name(PLANE, 1, one.switch), switch_name(PLANE, 2, one.switch % half * half + one.link))
            for one in self.failed
        )

    def has(self, one: FailedLink) -> bool:
        """Whether there is such a link."""
        half = self.ports // 2
        return one.switch < self.ports * half and one.link < half


def ports_of(nodes: int) -> int:
    """Ports of the switches of a fat tree with this number of nodes; 0 where there is none."""
    return next((ports for ports in range(LEAST_PORTS, MOST_PORTS + 1, 2) if ports**3 == 4 * nodes), 0)
