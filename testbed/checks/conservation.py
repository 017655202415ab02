"""Every packet accounted for: what enters a link or a node leaves it, or was dropped for a known reason. Pure.

Compares three counts to the packet: the endpoints' counters, the counters of the port program (by class, at egress and
ingress of each port) and the kernel's counters of interfaces, queues and sockets. Data and control have books of their
own from the host's daemon to the other host's port, so neither makes good what the other lacks. They are read while the
run is idle, so nothing is in flight. Packets that are no transport's (multicast reports of the kernel) are excluded.

Of kernel TCP no host counts its packets by class, so the books begin and end at the ports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan

Figures = Mapping[str, int]
Ports = Mapping[tuple[str, str], Figures]
HIGH_IN = ("in_trimmed", "in_control")
HIGH_IN_DROPPED = ("in_trimmed_dropped", "in_control_dropped")
HIGH_THROUGH = ("out_trimmed_through", "out_control")
DATA, HIGH = "data packets", "high class packets"
NIC = "NIC of "
"""Before the name of the host, in places."""
FRAMES = "frames"
"""What two counts of one port differ by, rather than two places."""
NO_DAEMON = dict.fromkeys(("data_sent", "packets_out", "send_errors", "packets_in", "strangers", "socket_drops"), 0)
"""The counts of a host that takes no part."""


@dataclass(frozen=True, slots=True)
class Books:
    """All counts.

    `ports`: by (node, port), the fields of the port program's PortCounts and the kernel's `tx_packets`, `rx_packets`,
    `queue_drops_high`, `queue_drops_data`; `hosts`: by host with a daemon, `data_sent`, `packets_out`, `packets_in`,
    `send_errors`, `strangers`, `socket_drops`; None where hosts do not count them; `no_routes`: by node, packets for
    which its kernel had no route, where a protocol makes routes or a fault changed some. Raises KeyError for a missing
    count.
    """

    ports: Ports
    hosts: Mapping[str, Figures] | None
    no_routes: Mapping[str, int] = field(default_factory=dict)

    def host(self, name: str) -> Figures | None:
        """The counts of a host, which may take no part; None where hosts have none."""
        return None if self.hosts is None else self.hosts.get(name, NO_DAEMON)


@dataclass(frozen=True, slots=True)
class Gap:
    """Packets that entered a place and did not leave it; negative: more left than entered.

    `excused`: a fault of the run explains it (a link was down, a switch had no table, its own code copied packets).
    """

    place: str
    what: str
    missing: int
    excused: bool

    def __str__(self) -> str:
        return f"{self.place}: {abs(self.missing)} {self.what} {'lost' if self.missing > 0 else 'too many'}"


@dataclass(frozen=True, slots=True)
class Drop:
    """Packets that a fault took at a place: `data`, and `high` of the high class (control, trimmed). `links`: the
    links there on which it can have been, or that entries of switches led them away from. `reason`: as in `Class`."""

    links: frozenset[str]
    data: int
    high: int
    reason: Literal["rule", "fault", "no route"]


@dataclass(frozen=True, slots=True)
class Class:
    """What became of the packets of one class. `dropped` by reason: `rule` (injected), `queue` (virtual queue over its
    limit), `shaper` (a real queue full), `fault` (link down, switch without table), `no route` (by a node whose
    kernel counted it, beside no link that was down), `refused` (by the sender's own kernel). `copied`: made by the code
    of a fault. Data: `sent` + `copied` = `arrived` + trimmed + dropped. High class: `sent` + `copied` + trimmed =
    `arrived` + dropped."""

    sent: int
    arrived: int
    dropped: Mapping[str, int]
    copied: int = 0

    @property
    def all_dropped(self) -> int:
        """For any reason."""
        return sum(self.dropped.values())

    @property
    def rest(self) -> int:
        """Packets that were neither dropped nor arrived; of data those that were trimmed, less these of the others."""
        return self.sent + self.copied - self.arrived - self.all_dropped


@dataclass(frozen=True, slots=True)
class Ledger:
    """The sums over a run, in packets: `data`, and `high` (control packets, and trimmed ones on their way). `drops`:
    what faults took, by place."""

    data: Class
    high: Class
    trimmed: int
    marked: int
    corrupted: int
    drops: tuple[Drop, ...]
    gaps: tuple[Gap, ...]

    @property
    def unexplained(self) -> tuple[Gap, ...]:
        """Gaps that no fault explains."""
        return tuple(gap for gap in self.gaps if not gap.excused)

    @property
    def doubt(self) -> str:
        """Why its sums cannot be told, though they should add up; empty: they do."""
        rests = {DATA: self.data.rest - self.trimmed, HIGH: self.high.rest + self.trimmed}
        why = (str(gap) for gap in self.unexplained if rests.get(gap.what))
        return next(why, "") or next((f"{rest} {what} are nowhere" for what, rest in rests.items() if rest), "")

    @property
    def from_nowhere(self) -> tuple[Gap, ...]:
        """Places that more packets left than entered, and no fault copied any: something else sent them. A NIC that
        lacks as many of the other class sent them as that one."""
        net = Counter[str]()
        for gap in self.unexplained:
            net[gap.place] += gap.missing if gap.place.startswith(NIC) else 0
        gaps = (gap for gap in self.unexplained if gap.missing < 0 and gap.what != FRAMES)
        return tuple(gap for gap in gaps if net[gap.place] < 0 or not gap.place.startswith(NIC))


@dataclass(frozen=True, slots=True)
class _Excuses:
    """Links on which faults may have lost packets, and those on which they may have copied some."""

    cut: Collection[str]
    copied: Collection[str]

    def gap(self, place: str, what: str, missing: int, links: Collection[str]) -> Gap:
        """`links`: those of the place."""
        touched = self.cut if missing > 0 else self.copied
        return Gap(place, what, missing, any(link in touched for link in links))


Strays = Mapping[str, frozenset[str]]
"""By node where packets came that entries of switches led there: the links that they should have gone by."""


def balance(
    plan: Plan,
    books: Books,
    broken_links: Collection[str],
    copied_links: Collection[str] = (),
    strays: Strays = MappingProxyType({}),
) -> Ledger:
    """Compare all counts of a run. `broken_links`: names of links that a fault took down; `copied_links`: of those on
    which it may have made copies of packets; `strays`: where faults of tables let packets end."""
    gaps = tuple(gap for gap in _gaps(plan, books, _Excuses(broken_links, copied_links)) if gap.missing)
    ports = books.ports
    drops = tuple(drop for drop in _drops(plan, books, frozenset(broken_links), strays) if drop.data or drop.high)
    refused = [_refused(books, plan, host.name) for host in plan.hosts if not _cut(plan, host.name, broken_links)]
    data_sent, high_sent = _sent(plan, books)
    routeless = [_routeless(books, plan, switch.name, broken_links) for switch in plan.switches]
    at_hosts = [_routeless_at_host(books, plan, host.name) for host in plan.hosts]
    routeless += at_hosts
    high_queue = _total(ports, "out_control_dropped") + _total(ports, "out_trimmed_dropped")
    dropped = {
        "rule": _both((drop.data, drop.high) for drop in drops if drop.reason == "rule"),
        "queue": (_total(ports, "out_dropped"), high_queue),
        "shaper": (_total(ports, "queue_drops_data"), _total(ports, "queue_drops_high")),
        "fault": _both((drop.data, drop.high) for drop in drops if drop.reason == "fault"),
        "no route": _both(routeless),
        "refused": _both(refused),
    }
    came = _arrived(plan, ports, ("in_data",), ("in_data_dropped",)), _arrived(plan, ports, HIGH_IN, HIGH_IN_DROPPED)
    data, high = (arrived - lost for arrived, lost in zip(came, _both(at_hosts), strict=True))
    return Ledger(
        Class(data_sent, data, {reason: lost for reason, (lost, _) in dropped.items()}, _copied(gaps, DATA)),
        Class(high_sent, high, {reason: lost for reason, (_, lost) in dropped.items()}, _copied(gaps, HIGH)),
        _total(ports, "out_trimmed"),
        _total(ports, "out_marked"),
        _total(ports, "in_corrupted"),
        drops,
        gaps,
    )


def _copied(gaps: Collection[Gap], what: str) -> int:
    return -sum(gap.missing for gap in gaps if gap.excused and gap.missing < 0 and gap.what == what)


def _sent(plan: Plan, books: Books) -> tuple[int, int]:
    """Data and other packets that hosts sent; where those do not count, that their queues dropped and T0s saw."""
    if books.hosts is not None:
        data = sum(figures["data_sent"] for figures in books.hosts.values())
        return data, sum(figures["packets_out"] for figures in books.hosts.values()) - data
    ends = [end for host in plan.hosts for end in plan.ports[host.name]]
    own, peers = ([books.ports[port.node, port.name] for port in ports] for ports in zip(*ends, strict=True))
    data = sum(port["queue_drops_data"] for port in own) + sum(port["in_data"] for port in peers)
    return data, sum(port["queue_drops_high"] for port in own) + sum(_sum(port, *HIGH_IN) for port in peers)


def _arrived(plan: Plan, ports: Ports, came: Collection[str], dropped: Collection[str]) -> int:
    own = [ports[port.node, port.name] for host in plan.hosts for port, _ in plan.ports[host.name]]
    return sum(_sum(figures, *came) - _sum(figures, *dropped) for figures in own)


def _both(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The sums of data and of high class packets."""
    data, high = zip((0, 0), *pairs, strict=True)
    return sum(data), sum(high)


def _drops(plan: Plan, books: Books, broken: frozenset[str], strays: Strays) -> Iterator[Drop]:
    """What faults took: by rules where packets come in, at links that were down and the nodes beside them, and where
    nodes had no route for what an entry led there."""
    for link in plan.links:
        for source, sink in ((link.near, link.far), (link.far, link.near)):
            into = books.ports[sink.node, sink.name]
            on = frozenset({link.name})
            yield Drop(on, into["in_data_dropped"], _sum(into, *HIGH_IN_DROPPED), "rule")
            out = books.ports[source.node, source.name]
            if "out_data" in out and link.name in broken:
                yield _taken(on, _link_missing(out, into))
    for switch in plan.switches:
        if on := _cut(plan, switch.name, broken):
            yield _taken(on, _switch_missing(books, plan, switch.name))
    for host in plan.hosts:
        if on := _cut(plan, host.name, broken):
            yield _taken(on, _nic_missing(books, plan, host.name))
    for node, links in strays.items():
        at_host = node in plan.host_by_name
        lost = _routeless_at_host(books, plan, node) if at_host else _routeless(books, plan, node, broken)
        yield Drop(links, *lost, "no route")


def _taken(links: frozenset[str], missing: tuple[int, int]) -> Drop:
    """What came out and had not gone in is a gap that nothing excuses, and no drop."""
    return Drop(links, max(0, missing[0]), max(0, missing[1]), "fault")


def _cut(plan: Plan, node: str, broken: Collection[str]) -> frozenset[str]:
    """The links of a node that a fault took down."""
    return frozenset(link.name for link in plan.links_of(node) if link.name in broken)


def _refused(books: Books, plan: Plan, host: str) -> tuple[int, int]:
    """Packets, data and others, that the kernel of a host did not take. Its books know how many, but not which: at
    this host as many may be of the wrong class."""
    figures = books.host(host)
    errors = figures["send_errors"] if figures else 0
    data = max(0, min(errors, _nic_missing(books, plan, host)[0]))
    return data, errors - data


def _gaps(plan: Plan, books: Books, excuses: _Excuses) -> Iterator[Gap]:
    for link in plan.links:
        for source, sink in ((link.near, link.far), (link.far, link.near)):
            yield from _on_the_way(books, source, sink, link.name, excuses)
    for switch in plan.switches:
        yield from _through(books, plan, switch.name, excuses)
    for host in plan.hosts:
        if figures := books.host(host.name):
            yield from _out_of(books, plan, host.name, excuses)
            missing = _missing_at_host(books, plan, host.name, figures)
            missing -= sum(_routeless_at_host(books, plan, host.name))
            yield excuses.gap(f"sockets of {host.name}", "packets", missing, ())


def _on_the_way(books: Books, source: Interface, sink: Interface, link: str, excuses: _Excuses) -> Iterator[Gap]:
    """One direction of a link: what its sender transmitted must have arrived at the other end."""
    out, into = books.ports[source.node, source.name], books.ports[sink.node, sink.name]
    place = f"link {link} from {source.node}"
    counted = _sum(into, "in_data", "in_other", *HIGH_IN)
    yield excuses.gap(f"{place}: port program", FRAMES, into["rx_packets"] - counted, ())
    if "out_data" not in out:  # a NIC: its packets are in the host's counts
        return
    frames = sum(_let_go(out)) + out["out_other"] - out["out_other_dropped"]
    data, high = _link_missing(out, into)
    yield excuses.gap(f"{place}: interface", FRAMES, frames - out["tx_packets"], (link,))
    yield excuses.gap(place, DATA, data, (link,))
    yield excuses.gap(place, HIGH, high, (link,))


def _let_go(out: Figures) -> tuple[int, int]:
    """Data and high class packets that the queues of a switch port gave to the link."""
    data = out["out_passed"] - out["queue_drops_data"]
    # Older runs have no count of dropped control packets of TCP, nor of trimmed ones.
    dropped = out.get("out_control_dropped", 0) + out.get("out_trimmed_dropped", 0) + out["queue_drops_high"]
    return data, _sum(out, "out_trimmed", *HIGH_THROUGH) - dropped


def _link_missing(out: Figures, into: Figures) -> tuple[int, int]:
    """Data and high class packets that were lost on the link itself."""
    data, high = _let_go(out)
    return data - into["in_data"], high - _sum(into, *HIGH_IN)


def _through(books: Books, plan: Plan, switch: str, excuses: _Excuses) -> Iterator[Gap]:
    data, high = _switch_missing(books, plan, switch)
    data_routeless, high_routeless = _routeless(books, plan, switch, excuses.cut)
    links = _names(plan, switch)
    yield excuses.gap(switch, DATA, data - data_routeless, links)
    yield excuses.gap(switch, HIGH, high - high_routeless, links)


def _routeless(books: Books, plan: Plan, switch: str, broken: Collection[str]) -> tuple[int, int]:
    """Data and high class packets that a switch lost because it had no route for them, as its kernel counted. Beside a
    link that was down it was the fault."""
    count = 0 if _cut(plan, switch, broken) else books.no_routes.get(switch, 0)
    if not count:
        return 0, 0
    data, high = (max(0, missing) for missing in _switch_missing(books, plan, switch))
    data = min(data, count)
    return data, min(high, count - data)


def _names(plan: Plan, node: str) -> list[str]:
    return [link.name for link in plan.links_of(node)]


def _switch_missing(books: Books, plan: Plan, switch: str) -> tuple[int, int]:
    """Data and high class packets that came in and were given to none of its ports."""
    ports = [books.ports[switch, own.name] for own, _ in plan.ports[switch]]
    data = sum(port["in_data"] - port["in_data_dropped"] - port["out_data"] for port in ports)
    high = sum(_sum(port, *HIGH_IN) - _sum(port, *HIGH_IN_DROPPED) - _sum(port, *HIGH_THROUGH) for port in ports)
    return data, high


def _out_of(books: Books, plan: Plan, host: str, excuses: _Excuses) -> Iterator[Gap]:
    missing, refused = _nic_missing(books, plan, host), _refused(books, plan, host)
    for what, left, errors in zip((DATA, HIGH), missing, refused, strict=True):
        yield excuses.gap(f"{NIC}{host}", what, left - errors, _names(plan, host))


def _nic_missing(books: Books, plan: Plan, host: str) -> tuple[int, int]:
    """Data and other packets that a host sent and its queues did not drop, and that no T0 saw."""
    figures = books.host(host)
    if figures is None:
        return 0, 0
    ends = plan.ports[host]
    own = [books.ports[port.node, port.name] for port, _ in ends]
    peers = [books.ports[port.node, port.name] for _, port in ends]
    data = figures["data_sent"] - sum(port["queue_drops_data"] for port in own) - sum(port["in_data"] for port in peers)
    given = figures["packets_out"] - figures["data_sent"] - sum(port["queue_drops_high"] for port in own)
    return data, given - sum(_sum(port, *HIGH_IN) for port in peers)


def _missing_at_host(books: Books, plan: Plan, host: str, figures: Figures) -> int:
    """Packets that came in at a host and that no socket had."""
    ports = [books.ports[own.node, own.name] for own, _ in plan.ports[host]]
    arrived = sum(_sum(port, "in_data", *HIGH_IN) for port in ports)
    dropped = sum(_sum(port, "in_data_dropped", *HIGH_IN_DROPPED) for port in ports)
    return arrived - dropped - _sum(figures, "packets_in", "strangers", "socket_drops")


def _routeless_at_host(books: Books, plan: Plan, host: str) -> tuple[int, int]:
    """Data and high class packets that came to a host and were for another one, as its kernel counted. Its books do not
    say which of both they were, and data are taken for all of them."""
    figures = books.host(host)
    if figures is None or not books.no_routes.get(host):
        return 0, 0
    lost = min(books.no_routes[host], max(0, _missing_at_host(books, plan, host, figures)))
    return lost, 0


def _sum(figures: Figures, *names: str) -> int:
    return sum(figures[name] for name in names)


def _total(ports: Ports, name: str) -> int:
    return sum(figures.get(name, 0) for figures in ports.values())
