"""Every packet accounted for: what enters a link or a node leaves it, or was dropped for a known reason. Pure.

Compares three counts to the packet: the endpoints' counters, the counters of the port program (by class, at egress and
ingress of each port) and the kernel's counters of interfaces, queues and sockets. They are read while the run is idle,
so nothing is in flight. Packets that are not MRC (multicast reports of the kernel) are excluded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from topos.plan import Interface, Plan

Figures = Mapping[str, int]
HIGH_IN = ("in_trimmed", "in_control")
HIGH_IN_DROPPED = ("in_trimmed_dropped", "in_control_dropped")
HIGH_THROUGH = ("out_trimmed_through", "out_control")
NO_DAEMON = dict.fromkeys(("packets_out", "send_errors", "packets_in", "strangers", "socket_drops"), 0)
"""The counts of a host that takes no part."""
_FAULT_LOSSES = ("data packets", "packets")
"""Losses by a fault: data packets in the fabric; at a NIC, whose counts have no classes, all packets."""


@dataclass(frozen=True, slots=True)
class Books:
    """All counts.

    `ports`: by (node, port), the fields of the port program's PortCounts and the kernel's `tx_packets`, `rx_packets`,
    `queue_drops_high`, `queue_drops_data`; `hosts`: by host with a daemon, `data_sent`, `packets_out`, `packets_in`,
    `send_errors`, `strangers`, `socket_drops`. Raises KeyError for a missing count.
    """

    ports: Mapping[tuple[str, str], Figures]
    hosts: Mapping[str, Figures]


@dataclass(frozen=True, slots=True)
class Gap:
    """Packets that entered a place and did not leave it; negative: more left than entered.

    `excused`: a fault of the run explains it (a link was down, a switch had no table).
    """

    place: str
    what: str
    missing: int
    excused: bool

    def __str__(self) -> str:
        return f"{self.place}: {abs(self.missing)} {self.what} {'lost' if self.missing > 0 else 'too many'}"


@dataclass(frozen=True, slots=True)
class Ledger:
    """Sums over a run, in packets.

    `dropped`: data by reason: `rule` (injected), `queue` (virtual queue over its limit), `shaper` (a real queue full),
    `fault` (link down, switch without table).
    """

    data_sent: int
    delivered: int
    trimmed: int
    marked: int
    corrupted: int
    dropped: Mapping[str, int]
    gaps: tuple[Gap, ...]

    @property
    def unexplained(self) -> tuple[Gap, ...]:
        """Gaps that no fault explains."""
        return tuple(gap for gap in self.gaps if not gap.excused)


def balance(plan: Plan, books: Books, broken_links: Collection[str]) -> Ledger:
    """Compare all counts of a run. `broken_links`: names of links that a fault took down."""
    gaps = tuple(gap for gap in _gaps(plan, books, broken_links) if gap.missing)
    ports = books.ports
    from_hosts = [own for host in plan.hosts for own, _ in plan.ports[host.name]]
    arrived = sum(_sum(ports[port.node, port.name], "in_data") for port in from_hosts)
    lost_there = sum(_sum(ports[port.node, port.name], "in_data_dropped") for port in from_hosts)
    return Ledger(
        sum(figures["data_sent"] for figures in books.hosts.values()),
        arrived - lost_there,
        _total(ports, "out_trimmed"),
        _total(ports, "out_marked"),
        _total(ports, "in_corrupted"),
        {
            "rule": _total(ports, "in_data_dropped"),
            "queue": _total(ports, "out_dropped"),
            "shaper": _total(ports, "queue_drops_data"),
            "fault": sum(gap.missing for gap in gaps if gap.excused and gap.what in _FAULT_LOSSES),
        },
        gaps,
    )


def _gaps(plan: Plan, books: Books, broken: Collection[str]) -> Iterator[Gap]:
    for link in plan.links:
        for source, sink in ((link.near, link.far), (link.far, link.near)):
            yield from _on_the_way(books, source, sink, link.name, link.name in broken)
    for switch in plan.switches:
        excused = any(link.name in broken for link in plan.links_of(switch.name))
        yield from _through(books, plan, switch.name, excused)
    for host in plan.hosts:
        excused = any(link.name in broken for link in plan.links_of(host.name))
        yield _out_of(books, plan, host.name, excused)
        yield _into(books, plan, host.name)


def _gap(place: str, what: str, went_in: int, came_out: int, excused: bool) -> Gap:
    missing = went_in - came_out
    return Gap(place, what, missing, excused and missing > 0)


def _on_the_way(books: Books, source: Interface, sink: Interface, link: str, excused: bool) -> Iterator[Gap]:
    """One direction of a link: what its sender transmitted must have arrived at the other end."""
    out, into = books.ports[source.node, source.name], books.ports[sink.node, sink.name]
    place = f"link {link} from {source.node}"
    yield _gap(
        f"{place}: port program", "frames", into["rx_packets"], _sum(into, "in_data", "in_other", *HIGH_IN), False
    )
    if "out_data" not in out:  # a NIC: its packets are in the host's counts
        return
    data = out["out_passed"] - out["queue_drops_data"]
    high = _sum(out, "out_trimmed", *HIGH_THROUGH) - out["queue_drops_high"]
    frames = data + high + out["out_other"] - out["out_other_dropped"]
    yield _gap(f"{place}: interface", "frames", frames, out["tx_packets"], excused)
    yield _gap(place, "data packets", data, into["in_data"], excused)
    yield _gap(place, "high class packets", high, _sum(into, *HIGH_IN), excused)


def _through(books: Books, plan: Plan, switch: str, excused: bool) -> Iterator[Gap]:
    ports = [books.ports[switch, own.name] for own, _ in plan.ports[switch]]
    data = sum(port["in_data"] - port["in_data_dropped"] for port in ports)
    yield _gap(switch, "data packets", data, sum(port["out_data"] for port in ports), excused)
    high = sum(_sum(port, *HIGH_IN) - _sum(port, *HIGH_IN_DROPPED) for port in ports)
    yield _gap(switch, "high class packets", high, sum(_sum(port, *HIGH_THROUGH) for port in ports), excused)


def _out_of(books: Books, plan: Plan, host: str, excused: bool) -> Gap:
    figures = books.hosts.get(host, NO_DAEMON)
    ends = plan.ports[host]
    given = figures["packets_out"] - figures["send_errors"]
    dropped = sum(_sum(books.ports[own.node, own.name], "queue_drops_high", "queue_drops_data") for own, _ in ends)
    arrived = sum(_sum(books.ports[peer.node, peer.name], "in_data", *HIGH_IN) for _, peer in ends)
    return _gap(f"NIC of {host}", "packets", given - dropped, arrived, excused)


def _into(books: Books, plan: Plan, host: str) -> Gap:
    figures = books.hosts.get(host, NO_DAEMON)
    ports = [books.ports[own.node, own.name] for own, _ in plan.ports[host]]
    arrived = sum(_sum(port, "in_data", *HIGH_IN) for port in ports)
    dropped = sum(_sum(port, "in_data_dropped", *HIGH_IN_DROPPED) for port in ports)
    taken = _sum(figures, "packets_in", "strangers", "socket_drops")
    return _gap(f"sockets of {host}", "packets", arrived - dropped, taken, False)


def _sum(figures: Figures, *names: str) -> int:
    return sum(figures[name] for name in names)


def _total(ports: Mapping[tuple[str, str], Figures], name: str) -> int:
    return sum(figures.get(name, 0) for figures in ports.values())
