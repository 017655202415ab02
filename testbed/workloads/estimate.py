"""Duration of a clean transfer, from the shape alone. Pure; for time limits, to refuse late faults, and to know what
is faster than the wire allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import ceil

from mrc_testbed.topos.shape import Shape, burst_bytes

LEAST_FRAME_BYTES = 14 + 40 + 8 + 20
"""No answer is shorter: Ethernet, IPv6, UDP and an acknowledgement of RoCE. Those of TCP and MRC are longer."""


@dataclass(frozen=True, slots=True)
class EagerShape(Shape):
    """A shape whose ports hand a packet on when its sending begins, and after a pause `packets_at_once` of them: plain
    shapers. Its links take a packet no time, but one link has its rate."""

    packets_at_once: int = 1


def eager(shape: Shape) -> EagerShape:
    """The shape with plain shapers. HTB sends while it has credit, if only for a part of the packet."""
    burst = burst_bytes(shape.port_rate_bps)
    same = {each.name: getattr(shape, each.name) for each in fields(shape)}
    return EagerShape(**same, packets_at_once=burst // shape.wire_bytes + 1)


def wire_ns(shape: Shape, size_bytes: int, message_bytes: int | None = None) -> float:
    """How long all ports of a host together are busy with `size_bytes` bytes of payload, in messages of `message_bytes`
    (None: in one): no packet holds data of two."""
    return port_ns(shape, _wire_bytes(shape, size_bytes, message_bytes)) / shape.planes


def delay_ns(shape: Shape, size_bytes: int, links: float | None = None) -> float:
    """One-way delay of a packet with `size_bytes` of payload, at most a full one, over `links` links at the port rate
    (None: those of the longest way of the fabric). Store-and-forward: on each link a packet is sent whole before the
    next one."""
    wire_bytes = min(_wire_bytes(shape, part_bytes(shape, size_bytes)), shape.wire_bytes)
    links = shape.family.span(shape.family.farthest) if links is None else links
    return shape.rtt_ns / 2 + (links - 1) * port_ns(shape, wire_bytes)


def transfer_ns(shape: Shape, size_bytes: int, message_bytes: int | None = None, links: float | None = None) -> int:
    """From posting `size_bytes` bytes, in messages of `message_bytes` (None: in one), to their arrival: serialisation
    on all planes, half a T, store-and-forward over `links`, as of `delay_ns`."""
    longest = size_bytes if message_bytes is None else min(size_bytes, message_bytes)
    return round(wire_ns(shape, size_bytes, message_bytes) + delay_ns(shape, longest, links))


def answer_ns(shape: Shape) -> int:
    """From the arrival of data to the arrival of an empty message in return."""
    return transfer_ns(shape, 1)


def links_between(shape: Shape, source: int, target: int) -> float:
    """Links on the shortest way from host number `source` to host number `target`, in links at the port rate: one at
    half of it counts as two."""
    family = shape.family
    return family.span(family.nearest(family.t0_of(source), family.t0_of(target)))


def most_links_between(shape: Shape, source: int, target: int) -> float:
    """As `links_between`, on the longest of their ways."""
    family = shape.family
    return max(map(family.span, family.ways_of(family.t0_of(source), family.t0_of(target))))


def earliest_ns(shape: Shape, messages: Iterable[int], links: float) -> float:
    """From posting messages of these sizes, all at once, until all of them are there: never sooner, however idle the
    links, if they have no credit.

    Half a T; then the full packets, spread evenly over the planes, one behind the other on the first link, and the last
    of them once more on each further link. Last packets of messages, which are not full, may travel beside them.
    Where endpoints cut messages over the ports, each port has a part of every message.
    """
    sizes = [part_bytes(shape, size) for size in messages]
    planes = sharing_ports(shape)
    full = sum(size // shape.payload_bytes for size in sizes)
    if isinstance(shape, EagerShape):
        behind = max(0, ceil(full / planes) - shape.packets_at_once)
        return shape.rtt_ns / 2 + behind * port_ns(shape, shape.wire_bytes)
    rest_bytes = max((size % shape.payload_bytes for size in sizes), default=0)
    sent_ns = links * port_ns(shape, rest_bytes + shape.header_bytes) if rest_bytes or not full else 0.0
    if full:
        sent_ns = max(sent_ns, (ceil(full / planes) + links - 1) * port_ns(shape, shape.wire_bytes))
    return shape.rtt_ns / 2 + sent_ns


def earliest_completion_ns(shape: Shape, size_bytes: int, links: float, answer_bytes: int = LEAST_FRAME_BYTES) -> float:
    """From posting a message until its acknowledgement, a frame of `answer_bytes`, is back: never sooner."""
    answer_ns = 0.0 if isinstance(shape, EagerShape) else links * port_ns(shape, answer_bytes)
    return earliest_ns(shape, (size_bytes,), links) + shape.rtt_ns / 2 + answer_ns


def part_bytes(shape: Shape, size_bytes: int) -> int:
    """The largest part of a message that one port is given where endpoints cut it; else all of it."""
    if not shape.cut_bytes:
        return size_bytes
    return min(size_bytes, ceil(size_bytes / (shape.planes * shape.cut_bytes)) * shape.cut_bytes)


def sharing_ports(shape: Shape) -> int:
    """Over how many ports the packets of a message, or of a part of it, are spread."""
    return 1 if shape.cut_bytes else shape.planes


def port_ns(shape: Shape, wire_bytes: int) -> float:
    """How long one port takes to send `wire_bytes` bytes."""
    return wire_bytes * 8e9 / shape.port_rate_bps


def _wire_bytes(shape: Shape, size_bytes: int, message_bytes: int | None = None) -> int:
    whole, rest = divmod(size_bytes, message_bytes) if message_bytes else (0, size_bytes)
    packets = whole * ceil((message_bytes or 0) / shape.payload_bytes) + ceil(rest / shape.payload_bytes)
    return size_bytes + packets * shape.header_bytes
