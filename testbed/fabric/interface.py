"""What the rest of the program needs of a fabric, whichever world it is in: the kernel's or that of virtual time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from testbed.fabric.ecmp import PlainFlow
from testbed.fabric.options import FabricOptions
from testbed.fabric.port_counts import PortCounts, PortHits
from testbed.fabric.port_rules import PortRule, RuleHandle
from topos.plan import Interface, Plan

if TYPE_CHECKING:  # they are of the kernel, and a virtual fabric has to do without it
    from testbed.fabric.delay import KernelDelay
    from testbed.fabric.readback_queues import Unplanned

PortRow = tuple[str, str, int, int, int, int, int, int]
"""Node, port, rx bytes, packets and drops, tx bytes, packets and drops."""


class FabricLike(Protocol):
    """A running fabric. Methods, errors and units are those of testbed.fabric.fabric.Fabric.

    `pids`: by name of every node; a virtual node has none (0). `unplanned`: what active faults have changed by their
    own code; `verify` skips it. `kernel_delay`: what delays packets, where the kernel does.
    """

    unplanned: Collection[Unplanned]

    @property
    def plan(self) -> Plan:
        """The fabric as planned."""

    @property
    def options(self) -> FabricOptions:
        """How it was made."""

    @property
    def pids(self) -> Mapping[str, int]:
        """A process of each node."""

    @property
    def kernel_delay(self) -> KernelDelay | None:
        """None where the endpoints or nobody delays packets."""

    def verify(self, only: Iterable[str] | None = None) -> None:
        """Compare the fabric with the plan minus what faults hold. Raises FabricError."""

    def prepare_faults(self, on_nodes: Iterable[str]) -> None:
        """Open what fast changes on these nodes need."""

    def ports_down(self, ports: Iterable[Interface]) -> None:
        """Take these switch ports admin-down; the other ends lose carrier."""

    def ports_up(self, ports: Iterable[Interface]) -> None:
        """Bring these ports up, with all that they had."""

    def switch_off(self, switch: str) -> int:
        """Take all ports of a switch down and remove its table. Returns the number of routes left, which must be 0."""

    def switch_on(self, switch: str, ports: Iterable[Interface]) -> None:
        """Bring these ports up and rewrite the table."""

    def ports_held_down(self) -> list[Interface]:
        """Ports that are currently held down."""

    def set_rate(self, link: str, rate_bps: int) -> None:
        """Set the rate of a link both ways; its queues keep their bytes."""

    def rate_bps(self, link: str) -> int:
        """The current rate of a link."""

    def add_rule(self, link: str, toward: Literal["near", "far"], rule: PortRule) -> RuleHandle:
        """Lose or corrupt packets that arrive at one end of a link. Raises FabricError, ValueError."""

    def remove_rule(self, handle: RuleHandle) -> int:
        """Remove a rule; returns its hits. Raises ValueError if it was removed before."""

    def verify_rules(self, handles: Iterable[RuleHandle]) -> None:
        """Compare the rules of every port with `handles`. Raises FabricError."""

    def silence(self, switch: str) -> list[RuleHandle]:
        """A switch loses everything that arrives while its ports stay up."""

    def port_counts(self) -> dict[tuple[str, str], PortCounts]:
        """What every (node, port) did, by class of packet."""

    def port_hits(self) -> Iterable[tuple[tuple[str, str], PortHits]]:
        """Marked, trimmed, dropped, lost and corrupted packets at every (node, port)."""

    def backlog_ns(self, node: str, port: str) -> int:
        """How long it takes to send what waits at a switch port."""

    def predicted_uplinks(self, flows: Sequence[PlainFlow]) -> list[int]:
        """The uplink that switches choose for each flow now. Raises MissingCapability, FabricError."""

    def sample_ports(self) -> Iterator[PortRow]:
        """Interface counters of every port."""

    def queues(self) -> dict[str, dict[str, dict[str, int]]]:
        """Packets sent and dropped by every port's queues."""

    def receive_drops(self) -> int:
        """Datagrams lost in full receive buffers."""

    def socket_losses(self) -> dict[str, int]:
        """Datagrams that reached a node and no socket of it."""
