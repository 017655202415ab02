"""Rules about transport, routing and layout: what goes together, and what a transport needs of the rest."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.scenario.model.bgp import bfd_share, least_interval_ns
from mrc_testbed.testbed.scenario.model.endpoint import EndpointSettings
from mrc_testbed.testbed.scenario.model.folding import folded_occurrences
from mrc_testbed.testbed.scenario.model.scale import ScaleFactor
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.rules.fault_rules import Occurrences
from mrc_testbed.testbed.scenario.rules.parts import Parts
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.units import format_duration, format_rate
from mrc_testbed.testbed.transports import registry
from mrc_testbed.testbed.transports.base import program_need
from mrc_testbed.topos.plan import Routing
from mrc_testbed.topos.shape import MAX_RATE_BPS, ShapeError

LEAST_SCALED_RTT_NS = 1_000
"""Shorter ones have too few ns for times to be told apart."""
LEAST_TIMEOUT_RTTS = 5
"""A timeout of fewer T takes a full queue for a loss."""


def transport_mistakes(parts: Parts) -> Iterator[Mistake]:
    """Combinations of readable keys that cannot run."""
    yield from _wrong_routing(parts)
    if parts.transport.timeout_code_ns:
        yield from _short_timeout(parts)
    if not parts.transport.has_paths:
        yield from _of_path_choosers_alone(parts)
    yield from _plain_switches(parts)
    if parts.routing is Routing.BGP:
        yield from _fast_bfd(parts)
    if parts.world is WorldKind.VIRTUAL:
        yield from _kernel_only(parts)
        yield from _too_fast(parts)
        return
    if parts.transport.needs(parts.own).pause:
        why = "no queue of the kernel can be paused without losing; run it with --virtual"
        yield Mistake((parts.transport.group, "buffers"), f"{why}, or write `buffers: deep`")
    if parts.scale != ScaleFactor():
        yield Mistake(("scale",), "only virtual time is faster than written; write `world: virtual` or remove this key")


def _wrong_routing(parts: Parts) -> Iterator[Mistake]:
    if parts.routing in parts.transport.routings:
        return
    if parts.transport.names_paths:
        why = f"{parts.transport} names the path of each packet, and switches that hash would not follow it"
        yield Mistake(("routing",), f"{why}; write `routing: srv6`, or `transport: roce` or `tcp`")
    elif parts.routing is Routing.SRV6:
        why = f"{parts.transport} leaves the path to the switches, and srv6 leaves it to the sender"
        yield Mistake(("routing",), f"{why}; write `routing: ecmp-static`, or `transport: {registry.USUAL}`")
    else:
        can = " or ".join(f"`routing: {one}`" for one in parts.transport.routings)
        yield Mistake(("routing",), f"{parts.transport} does not run over {parts.routing}; write {can}")


def _of_path_choosers_alone(parts: Parts) -> Iterator[Mistake]:
    """Choices of endpoints that choose paths: with this transport they would silently do nothing."""
    usual = EndpointSettings()
    other, first = parts.transport.group, registry.USUAL
    instead = {
        "congestion_control": f"choose that of {parts.transport} by `{other}.congestion_control`",
        "ev_selection": "remove this key, as switches choose its paths",
    }
    for key, name in parts.mrc_choices.items():
        if name != getattr(usual, key):
            why = f"{name!r} is for {first}, and with `transport: {parts.transport}` nobody would use it"
            fix = f"{instead[key]}, or write `transport: {first}` (of variants, name it in those of {first})"
            yield Mistake(("endpoint", key), f"{why}; {fix}")


def _short_timeout(parts: Parts) -> Iterator[Mistake]:
    least_ns = LEAST_TIMEOUT_RTTS * parts.fabric.rtt_ns
    if parts.own.timeout_ns < least_ns:
        fits = next(code for code in range(64) if parts.transport.timeout_code_ns << code >= least_ns)
        lasts = f"lasts {format_duration(parts.own.timeout_ns)}, under {LEAST_TIMEOUT_RTTS} T"
        why = f"{lasts} ({format_duration(least_ns)}), so a full queue would pass for a loss"
        yield Mistake((parts.transport.group, "timeout"), f"{why}; write at least {fits}, or a shorter `fabric.rtt`")


def _fast_bfd(parts: Parts) -> Iterator[Mistake]:
    try:
        shape = parts.shape()
    except ShapeError:  # said already
        return
    if parts.bgp.bfd is None or parts.bgp.bfd.interval_ns >= least_interval_ns(shape):
        return
    share = bfd_share(shape, parts.bgp.bfd.interval_ns)
    links = shape.planes * shape.t0_groups * shape.t1
    takes = f"BFD on {links} links would take {share:.0%} of a core"
    yield Mistake(("bgp", "bfd"), f"{takes}; write an interval of at least {format_duration(least_interval_ns(shape))}")


def _plain_switches(parts: Parts) -> Iterator[Mistake]:
    need = program_need(parts.transport, parts.routing, parts.own, parts.ecmp.repath)
    if need and parts.fabric.switch.use == "plain":
        yield Mistake(("fabric", "switch"), f"the port program is needed by {need}; remove this key")


def _too_fast(parts: Parts) -> Iterator[Mistake]:
    speed, rtt_ns = parts.scale.speed(parts.fabric.port_rate_bps), parts.fabric.rtt_ns
    if speed > 1 and 0 < rtt_ns < LEAST_SCALED_RTT_NS * speed:
        short = f"T would be {rtt_ns / speed:.0f} ns, and the least is {LEAST_SCALED_RTT_NS} ns"
        most = max(rtt_ns // LEAST_SCALED_RTT_NS, 1)
        yield Mistake(("scale",), f"{speed} times faster {short}; write at most {most}, or a longer `fabric.rtt`")
    rate_bps = parts.fabric.port_rate_bps * speed
    if speed > 1 and rate_bps > MAX_RATE_BPS:
        most = max(MAX_RATE_BPS // parts.fabric.port_rate_bps, 1)
        yield Mistake(("scale",), f"ports would have {format_rate(rate_bps)}; write at most {most}")


def _kernel_only(parts: Parts) -> Iterator[Mistake]:
    if parts.transport.of_kernel:
        yield Mistake(
            ("transport",),
            f"{parts.transport} is the kernel's own, and virtual time has no kernel; write `world: kernel`",
        )
    elif parts.routing is Routing.BGP:
        why = "bgp is run by real daemons in real seconds, which virtual time has not"
        yield Mistake(("routing",), f"{why}; write `world: kernel`, or `routing: ecmp-static`")
    if parts.fabric.switch.use == "plain":
        yield Mistake(("fabric", "switch"), "plain shapers are the kernel's own; remove this key, or `world: virtual`")


def impossible_folding(parts: Parts) -> Iterator[Mistake]:
    """A fabric that can be built as written, but has no port as fast as all planes together."""
    if not parts.folds:
        return
    try:
        written = parts.written_shape()
    except ShapeError:  # said already
        return
    rate_bps = written.planes * written.port_rate_bps
    if rate_bps > MAX_RATE_BPS:
        most = f"over {format_rate(MAX_RATE_BPS)}"
        fix = "lower `port_rate`, or write `layout: as-written`"
        yield Mistake(("fabric", "port_rate"), f"makes {format_rate(rate_bps)} on one plane, {most}; {fix}")


def in_fabric(parts: Parts, occurrences: Occurrences) -> Occurrences:
    """The occurrences of each fault in names of the fabric that is built."""
    if not parts.folds:
        return occurrences
    return {index: folded_occurrences(each, parts.fabric.planes) for index, each in occurrences.items()}


def notices_corruption(parts: Parts) -> bool | None:
    """True if receivers notice a flipped bit: TCP has its own checksum, the others the ICRC; None if unreadable."""
    return True if parts.transport.of_kernel else parts.icrc
