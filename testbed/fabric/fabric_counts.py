"""What is read of a running fabric: counts of ports, queues and nodes."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric import port_object
from mrc_testbed.testbed.fabric.counters import (
    PortCounters,
    ip_counters,
    no_routes,
    queue_counters,
    sid_counts,
    udp_losses,
    without_sid,
)
from mrc_testbed.testbed.fabric.port_program import PortProgram
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.port_counts import IpCounts, LateArrivals, PortCounts, PortHits, SidCounts
from mrc_testbed.topos.plan import Plan


class FabricCounts:
    """The nodes of a plan that are there, by the processes that hold them, and what they have counted."""

    def __init__(self, plan: Plan, options: FabricOptions, pids: dict[str, int]) -> None:
        self.plan = plan
        self.options = options
        self.pids = pids
        self._counters: PortCounters | None = None
        self._program: PortProgram | None = None
        self._rates_bps: dict[str, int] = {}
        self._link_of = {end: link.name for link in plan.links for end in link.ends}

    def rate_bps(self, link: str) -> int:
        """The current nominal rate of a link."""
        return self._rates_bps.get(link, self.plan.link_by_name[link].rate_bps)

    def port_counts(self) -> dict[tuple[str, str], PortCounts]:
        """The port program's counts at every (node, port). Raises MissingCapability without it."""
        program = self._needed_program("counting by class")
        return {(node, own.name): program.counts(own) for node, ports in self.plan.ports.items() for own, _ in ports}

    def port_hits(self) -> Iterator[tuple[tuple[str, str], PortHits]]:
        """Marked, trimmed, dropped, lost and corrupted packets at every (node, port).

        Raises MissingCapability without the port program.
        """
        program = self._needed_program("counting marks, trims and losses")
        return (((node, own.name), program.hits(own)) for node, ports in self.plan.ports.items() for own, _ in ports)

    def watermarks(self) -> dict[tuple[str, str], int]:
        """The longest queue that a packet has met at every switch port, in bytes. Raises MissingCapability without the
        port program."""
        program = self._needed_program("the watermark of a queue")
        return {
            (node, own.name): program.watermark_bytes(own, self.rate_bps(self._link_of[own]))
            for node in self.plan.switch_by_name
            for own, _ in self.plan.ports[node]
        }

    def sid_counts(self) -> dict[str, dict[str, SidCounts]]:
        """Packets and bytes that each uSID of every node has taken; a switch that has been off begins again."""
        return sid_counts(self.pids)

    def without_sid(self) -> dict[str, int]:
        """By switch, packets for whose destination it had neither a uSID nor a route."""
        return without_sid({switch: self.pids[switch] for switch in self.plan.switch_by_name})

    def late_arrivals(self) -> dict[tuple[str, str], LateArrivals]:
        """What came in late at every (node, port) of a fabric with the port program; else nothing is known of it."""
        program = self._program
        if program is None:
            return {}
        return {
            (node, own.name): program.late_arrivals(own) for node, ports in self.plan.ports.items() for own, _ in ports
        }

    def backlog_ns(self, node: str, port: str) -> int:
        """Backlog of a switch port's virtual queue, in ns at the port's rate.

        Raises MissingCapability without the port program.
        """
        program = self._needed_program("a look into a queue")
        return program.backlog_ns(next(own for own, _ in self.plan.ports[node] if own.name == port))

    def _needed_program(self, what: str) -> PortProgram:
        if self._program is None:
            raise MissingCapability(
                f"{what} needs the port program, and this fabric runs plain shapers", port_object.FIX
            )
        return self._program

    def sample_ports(self) -> Iterator[tuple[str, str, int, int, int, int, int, int]]:
        """Interface counters of every port now."""
        if self._counters is None:
            self._counters = PortCounters(self.pids)
        return self._counters.read()

    def queues(self) -> dict[str, dict[str, dict[str, int]]]:
        """Packets sent and dropped by every port's shaper."""
        return queue_counters(self.pids)

    def ip_counts(self) -> dict[str, IpCounts]:
        """What IPv6 of every node counted."""
        return ip_counters(self.pids, {node: [own.name for own, _ in ends] for node, ends in self.plan.ports.items()})

    def no_routes(self) -> dict[str, int]:
        """By node, packets for which its kernel had no route; those nodes that had any."""
        return no_routes(self.pids)

    def receive_drops(self) -> int:
        """Datagrams lost in full receive buffers of all hosts and switches."""
        return sum(receive_buffer for receive_buffer, _ in udp_losses(self.pids).values())

    def socket_losses(self) -> dict[str, int]:
        """Datagrams that reached a node and no socket of it, full buffers included."""
        return {node: lost for node, (_, lost) in udp_losses(self.pids).items()}
