"""Frames accounted for by cable and node where switch ports are plain shapers. Pure.

Nothing counts classes there, but the kernel counts frames: what a shaper is given, drops and lets go, and what comes in
at an interface. So no packet can go missing unseen between a host's daemon and another's socket. What only kernels say
to each other is left out: multicast, by the count of who sent it, and ICMPv6 to a single node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from mrc_testbed.testbed.checks.conservation import Figures, Gap, Ports
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan


@dataclass(frozen=True, slots=True)
class FrameBooks:
    """All counts.

    `ports`: by (node, port), `sent_packets` and `drops` of its shaper, `rx_packets` of its interface, and what its node
    sent there as `multicast`; `nodes`: by node, `icmp_in` and `icmp_out`; `hosts`: as of conservation.Books. Raises
    KeyError for a missing count.
    """

    ports: Ports
    nodes: Mapping[str, Figures]
    hosts: Mapping[str, Figures] | None

    def at(self, port: Interface) -> Figures:
        """The counts of a port."""
        return self.ports[port.node, port.name]

    def came_in(self, own: Interface, peer: Interface) -> int:
        """Frames for a single node that came in at a port."""
        return self.at(own)["rx_packets"] - self.at(peer)["multicast"]

    def queued(self, port: Interface) -> int:
        """Frames for a single node that a port's shaper was given."""
        figures = self.at(port)
        return figures["sent_packets"] + figures["drops"] - figures["multicast"]


def frame_gaps(
    plan: Plan, books: FrameBooks, broken_links: Collection[str], copied_links: Collection[str] = ()
) -> tuple[Gap, ...]:
    """Where frames went missing, or came from nowhere. `broken_links`, `copied_links`: as for conservation.balance."""
    return tuple(gap for gap in _gaps(plan, books, frozenset(broken_links), frozenset(copied_links)) if gap.missing)


def _gaps(plan: Plan, books: FrameBooks, broken: Collection[str], copied: Collection[str]) -> Iterator[Gap]:
    for link in plan.links:
        for source, sink in ((link.near, link.far), (link.far, link.near)):
            missing = books.at(source)["sent_packets"] - books.at(sink)["rx_packets"]
            excused = link.name in (broken if missing > 0 else copied)
            yield Gap(f"link {link.name} from {source.node}", "frames", missing, excused)
    for node, place, missing in _at_nodes(plan, books):
        # A port that went down and came up may have counted multicast that never left it, so the sign says nothing.
        yield Gap(place, "frames", missing, any(link.name in broken for link in plan.links_of(node)))


def _at_nodes(plan: Plan, books: FrameBooks) -> Iterator[tuple[str, str, int]]:
    """(node, place, missing frames) of every switch, NIC and host's sockets."""
    for switch in plan.switches:
        yield switch.name, switch.name, _switch_missing(plan, books, switch.name)
    for host, figures in (books.hosts or {}).items():
        yield host, f"NIC of {host}", _nic_missing(plan, books, host, figures)
        yield host, f"sockets of {host}", _socket_missing(plan, books, host, figures)


def _switch_missing(plan: Plan, books: FrameBooks, switch: str) -> int:
    """What came in, or was said by the switch itself, and was given to none of its shapers."""
    node, ends = books.nodes[switch], plan.ports[switch]
    came_in = sum(books.came_in(own, peer) for own, peer in ends) - node["icmp_in"]
    return came_in + node["icmp_out"] - sum(books.queued(own) for own, _ in ends)


def _nic_missing(plan: Plan, books: FrameBooks, host: str, figures: Figures) -> int:
    """What a host sent and was given to none of its shapers."""
    given = figures["packets_out"] - figures["send_errors"] + books.nodes[host]["icmp_out"]
    return given - sum(books.queued(own) for own, _ in plan.ports[host])


def _socket_missing(plan: Plan, books: FrameBooks, host: str, figures: Figures) -> int:
    """What came in at a host and reached neither a socket nor ICMPv6."""
    taken = sum(figures[name] for name in ("packets_in", "strangers", "socket_drops")) + books.nodes[host]["icmp_in"]
    return sum(books.came_in(own, peer) for own, peer in plan.ports[host]) - taken
