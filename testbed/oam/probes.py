"""What a host asks about a path, and the answers, in either world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from mrc_testbed.topos import usid
from mrc_testbed.topos.graph import Way
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.usid import PathId

TIMEOUT_NS = 500_000_000
"""How long an answer may take at least."""
TIMEOUT_T = 8
"""And in T: there and back through full queues."""
PACE_NS = 5_000_000
"""Between two questions of one host."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about a way in a plane, as far as the switch number `hops` on it (1: the first).

    With a `target` the packet is one of that path, and its hops end there; one hop past the last switch it is the host
    that answers. Without, it is a packet for that switch, to which its list leads. `number`: counts the questions of
    one host; switches choose the way of the answer by it.
    """

    source: Host
    plane: int
    way: Way
    hops: int
    number: int
    target: Host | None = None
    path: PathId | None = None

    @property
    def uids(self) -> list[int]:
        """The list on the packet."""
        switches = [usid.switch_usid(self.plane, place) for place in self.way]
        if self.target is None:
            return switches[: self.hops]
        return [*switches, usid.usid(usid.TIER_HOST, self.plane, self.target.downlink)]

    @property
    def list_address(self) -> str:
        """That list as an address."""
        return usid.container(self.uids)


class HopSays(Enum):
    """What an answer says."""

    HOPS_ENDED = "hops ended"
    """A switch on the way of a packet whose hop limit ended there."""
    NO_ROUTE = "no route"
    """A node that has no entry for what comes next on the list."""
    NOT_TAKEN = "not taken"
    """A switch at which a list ends, and with it the way of a packet for somebody else."""
    REPLY = "reply"
    """The one that was asked."""


@dataclass(frozen=True, slots=True)
class HopAnswer:
    """`by`: the node that says it; `left`: uSIDs that were left on the list there, of an answer that is no reply."""

    kind: HopSays
    by: str
    rtt_ns: int
    left: tuple[int, ...] = ()


class HopProber(Protocol):
    """Sends from one host and hears what comes back."""

    def ask(self, probes: Sequence[Probe]) -> list[HopAnswer | None]:
        """The answers, in the order of the questions; None: none came in time. Raises FabricError."""
