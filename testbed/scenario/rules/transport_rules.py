"""Rules about transport, routing and layout: what goes together, and what a transport needs of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mrc_testbed.testbed.scenario.model.bgp import bfd_share, least_interval_ns
from mrc_testbed.testbed.scenario.model.endpoint import EndpointSettings
from mrc_testbed.testbed.scenario.model.folding import folded_occurrences
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.model.programs import Programs
from mrc_testbed.testbed.scenario.model.scale import ScaleFactor
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.rules.adaptive_rules import adaptive_mistakes
from mrc_testbed.testbed.scenario.rules.fault_rules import Occurrences
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.units import format_duration, format_rate
from mrc_testbed.testbed.transports import registry
from mrc_testbed.testbed.transports.base import Chooser, SettingsBeside, program_need
from mrc_testbed.topos.graph import ShapeError
from mrc_testbed.topos.in_flight import rtt_of
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import MAX_RATE_BPS, MIN_RATE_BPS, SWIFT_BELOW_NS, SWIFT_PACKET_NS, WIRE_BYTES

MOST_EVS = 256
"""Of a plane: a flow label has eight bits for the number of an EV."""
LEAST_SCALED_RTT_NS = 1_000
"""Shorter ones have too few ns for times to be told apart."""
_KERNEL_RTTS_NS = (40_000_000, 20_000_000, 5_000_000)
"""Round trips that two cores emulate, the best first."""
LEAST_TIMEOUT_RTTS = 5
"""A timeout of fewer T takes a full queue for a loss."""


def transport_mistakes(scenario: Scenario) -> Iterator[Mistake]:
    """Combinations of readable keys that cannot run."""
    yield from _wrong_routing(scenario)
    yield from _contradictions(scenario)
    if scenario.transport.timeout_code_ns:
        yield from _short_timeout(scenario)
    if not scenario.transport.has_paths:
        yield from _of_path_choosers_alone(scenario)
    if scenario.endpoint.entropies is not None:
        yield from _wrong_entropies(scenario, scenario.endpoint.entropies)
    yield from _plain_switches(scenario)
    yield from adaptive_mistakes(scenario)
    if scenario.routing is Routing.BGP:
        yield from _fast_bfd(scenario)
        yield from _nothing_to_carry(scenario)
        yield from _cold_detours(scenario)
        yield from _links_in_a_system(scenario)
    if scenario.world is WorldKind.VIRTUAL:
        yield from _kernel_only(scenario)
        yield from _too_fast(scenario)
        yield from _less_than_a_packet(scenario)
        return
    yield from _hardware_rtt(scenario)
    if scenario.transport.needs(scenario.own).pause:
        why = "no queue of the kernel can be paused without losing; run it with --virtual"
        yield Mistake((scenario.transport.group, "buffers"), f"{why}, or write `buffers: deep`")
    if scenario.scale != ScaleFactor():
        yield Mistake(("scale",), "only virtual time is faster than written; write `world: virtual` or remove this key")


def _contradictions(scenario: Scenario) -> Iterator[Mistake]:
    try:
        planes = scenario.shape().planes
    except ShapeError:  # said already
        return
    programs = [item.steps for item in scenario.workload if isinstance(item.steps, Programs)]
    verbs = any(one.verbs for one in programs)
    around = SettingsBeside(planes, scenario.folds, scenario.hosts_hash, verbs)
    for key, why in scenario.transport.contradictions(scenario.own, around):
        yield Mistake((scenario.transport.group, key), why)


def _wrong_routing(scenario: Scenario) -> Iterator[Mistake]:
    if scenario.routing in scenario.transport.routings:
        return
    if scenario.transport.names_paths:
        why = f"{scenario.transport} names the path of each packet, and switches that hash would not follow it"
        yield Mistake(("routing",), f"{why}; write `routing: srv6`, or `transport: roce` or `tcp`")
    elif scenario.routing is Routing.SRV6:
        why = f"{scenario.transport} leaves the path to the switches, and srv6 leaves it to the sender"
        yield Mistake(("routing",), f"{why}; write `routing: ecmp-static`, or `transport: {registry.USUAL}`")
    else:
        can = " or ".join(f"`routing: {one}`" for one in scenario.transport.routings)
        yield Mistake(("routing",), f"{scenario.transport} does not run over {scenario.routing}; write {can}")


def _of_path_choosers_alone(scenario: Scenario) -> Iterator[Mistake]:
    """Choices of endpoints that choose paths: with this transport they would silently do nothing."""
    usual = EndpointSettings()
    other, first = scenario.transport.group, registry.USUAL
    instead = {
        "congestion_control": f"choose that of {scenario.transport} by `{other}.congestion_control`",
        "ev_selection": "remove this key, as switches choose its paths",
    }
    for key, fix in instead.items():
        name = getattr(scenario.endpoint, key)
        if name != getattr(usual, key):
            why = f"{name!r} is for {first}, and with `transport: {scenario.transport}` nobody would use it"
            or_else = f"or write `transport: {first}` (of variants, name it in those of {first})"
            yield Mistake(("endpoint", key), f"{why}; {fix}, {or_else}")


def _wrong_entropies(scenario: Scenario, entropies: int) -> Iterator[Mistake]:
    """A number of EVs for a transport whose EVs nobody hashes, or that planes cannot share."""
    place = ("endpoint", "entropies")
    if scenario.transport.chooser is not Chooser.ENTROPY:
        fit = " or ".join(one for one in registry.known().values() if one.chooser is Chooser.ENTROPY)
        why = f"switches hash no EVs of {scenario.transport}, so nobody would use them"
        yield Mistake(place, f"{why}; remove this key, or write `transport: {fit}`")
        return
    try:
        planes = scenario.shape().planes
    except ShapeError:  # said already
        return
    if entropies % planes or entropies > MOST_EVS * planes:
        each = min(max(round(entropies / planes), 1), MOST_EVS)
        why = f"{planes} planes share {entropies} EVs, the same number each, and none has more than {MOST_EVS}"
        yield Mistake(place, f"{why}; write {each * planes}")


def _short_timeout(scenario: Scenario) -> Iterator[Mistake]:
    least_ns = LEAST_TIMEOUT_RTTS * scenario.fabric.rtt_ns
    if scenario.own.timeout_ns < least_ns:
        fits = next(code for code in range(64) if scenario.transport.timeout_code_ns << code >= least_ns)
        lasts = f"lasts {format_duration(scenario.own.timeout_ns)}, under {LEAST_TIMEOUT_RTTS} T"
        why = f"{lasts} ({format_duration(least_ns)}), so a full queue would pass for a loss"
        yield Mistake((scenario.transport.group, "timeout"), f"{why}; write at least {fits}, or a shorter `fabric.rtt`")


def _nothing_to_carry(scenario: Scenario) -> Iterator[Mistake]:
    """Routes to uSIDs that no packet has, or to hosts where none are carried."""
    if scenario.bgp.carries != "locators":
        return
    if not scenario.transport.names_paths:
        why = f"{scenario.transport} packets list no switches, so nobody would use routes to their uSIDs"
        yield Mistake(("bgp", "carries"), f"{why}; write `carries: hosts`, or `transport: mrc`")
    elif scenario.bgp.routes != "hosts":
        why = "each switch announces its own uSID with `carries: locators`, and no T0 its hosts"
        yield Mistake(("bgp", "routes"), f"{why}; remove this key, or write `carries: hosts`")


def _cold_detours(scenario: Scenario) -> Iterator[Mistake]:
    """A run begins with exactly its intact paths, and a detour answers for one that is broken."""
    if not scenario.transport.names_paths or scenario.bgp.carries != "locators" or scenario.bgp.t1_as != "each":
        return
    for index, entry in enumerate(scenario.faults):
        if entry.at.cold:
            why = "BGP finds a detour for a path that is broken before the run begins"
            yield Mistake(("faults", index, "at"), f"{why}; write a time such as `at: 2s`, or `bgp.t1_as: one`")


def _links_in_a_system(scenario: Scenario) -> Iterator[Mistake]:
    """Links of a plugin's family between switches of one tier, which are one autonomous system together."""
    try:
        family = scenario.shape().family
    except ShapeError:  # said already
        return
    if scenario.bgp.t1_as == "each":
        return
    for lower, upper, _ in family.cables():
        if lower.tier == upper.tier > 0:
            why = f"{lower} and {upper} of the family {family.word} are linked and one AS, which refuses its own routes"
            yield Mistake(("routing",), f"{why}; write `bgp: {{t1_as: each}}`, or `routing: srv6`")
            return


def _fast_bfd(scenario: Scenario) -> Iterator[Mistake]:
    try:
        shape = scenario.shape()
    except ShapeError:  # said already
        return
    if scenario.bgp.bfd is None or scenario.bgp.bfd.interval_ns >= least_interval_ns(shape):
        return
    share = bfd_share(shape, scenario.bgp.bfd.interval_ns)
    links = shape.planes * shape.family.cable_count
    takes = f"BFD on {links} links would take {share:.0%} of a core"
    yield Mistake(("bgp", "bfd"), f"{takes}; write an interval of at least {format_duration(least_interval_ns(shape))}")


def _plain_switches(scenario: Scenario) -> Iterator[Mistake]:
    need = program_need(scenario.transport, scenario.routing, scenario.own, scenario.ecmp.repath, scenario.adaptive)
    if need and scenario.fabric.switch.use == "plain":
        yield Mistake(("fabric", "switch"), f"the port program is needed by {need}; remove this key")


def _too_fast(scenario: Scenario) -> Iterator[Mistake]:
    speed, rtt_ns = scenario.scale.speed(scenario.fabric.port_rate_bps), scenario.fabric.rtt_ns
    if speed > 1 and 0 < rtt_ns < LEAST_SCALED_RTT_NS * speed:
        short = f"T would be {rtt_ns / speed:.0f} ns, and the least is {LEAST_SCALED_RTT_NS} ns"
        most = max(rtt_ns // LEAST_SCALED_RTT_NS, 1)
        yield Mistake(("scale",), f"{speed} times faster {short}; write at most {most}, or a longer `fabric.rtt`")
    rate_bps = scenario.fabric.port_rate_bps * speed
    if speed > 1 and rate_bps > MAX_RATE_BPS:
        most = max(MAX_RATE_BPS // scenario.fabric.port_rate_bps, 1)
        yield Mistake(("scale",), f"ports would have {format_rate(rate_bps)}; write at most {most}")


def _hardware_rtt(scenario: Scenario) -> Iterator[Mistake]:
    """A T that only hardware has. The same number of packets is in flight at lower rates and a longer T."""
    rtt_ns, rate_bps = scenario.fabric.rtt_ns, scenario.fabric.port_rate_bps
    if not 0 < rtt_ns < SWIFT_BELOW_NS:
        return
    slower_bps, longer_ns = next(
        ((rate_bps * rtt_ns // ns, ns) for ns in _KERNEL_RTTS_NS if rate_bps * rtt_ns >= ns * MIN_RATE_BPS), None
    ) or (rate_bps, SWIFT_BELOW_NS)
    why = f"hosts of this machine need {format_duration(SWIFT_BELOW_NS)} for a round trip, and it is less"
    instead = f"`port_rate: {format_rate(slower_bps)}` and `rtt: {format_duration(longer_ns)}`"
    yield Mistake(("fabric", "rtt"), f"{why}; add `world: virtual`, or write {instead}")


def _less_than_a_packet(scenario: Scenario) -> Iterator[Mistake]:
    """Steps over fast ports that hold less than a packet in T, where they are known to take more than is predicted."""
    rate_bps = scenario.fabric.port_rate_bps
    held = rate_bps * scenario.fabric.rtt_ns / 8e9 / WIRE_BYTES
    fast = SWIFT_PACKET_NS * rate_bps > WIRE_BYTES * 8_000_000_000
    if fast and 0 < held < 1 and (what := _needs_a_packet(scenario)):
        rtt_ns = rtt_of(8 * WIRE_BYTES * 1_000_000_000, rate_bps)
        why = f"a plane holds {held:.2f} packets in one rtt, and {what} one to keep its ports busy"
        yield Mistake(("fabric", "rtt"), f"{why}; write `rtt: {format_duration(rtt_ns)}`, or a higher `port_rate`")


def _needs_a_packet(scenario: Scenario) -> str:
    """Measured steps over predicted ones: lossless RoCE 9 to 30, MRC with 2 or 4 QPs up to 2.4, as each QP may have a
    packet under way, and 1.1 with weights of planes."""
    if getattr(scenario.own, "recovery", "") == "lossless":
        return "lossless RoCE needs"
    if scenario.transport.group != "endpoint" or not scenario.jobs:
        return ""
    if scenario.endpoint.ev_selection == "weighted-planes":
        return "weights of planes need"
    pairs = Counter((qp.src, qp.dst) for job in scenario.jobs for qp in job.steps(scenario.shape()).qps())
    return "several QPs between two hosts need" if max(pairs.values(), default=0) > 1 else ""


def _kernel_only(scenario: Scenario) -> Iterator[Mistake]:
    if scenario.transport.of_kernel:
        yield Mistake(
            ("transport",),
            f"{scenario.transport} is the kernel's own, and virtual time has no kernel; write `world: kernel`",
        )
    elif scenario.routing is Routing.BGP:
        why = "bgp is run by real daemons in real seconds, which virtual time has not"
        instead = f"`routing: {scenario.transport.usual_routing}`"
        yield Mistake(("routing",), f"{why}; write `world: kernel`, or {instead}")
    if scenario.fabric.switch.use == "plain":
        yield Mistake(("fabric", "switch"), "plain shapers are the kernel's own; remove this key, or `world: virtual`")


def impossible_folding(scenario: Scenario) -> Iterator[Mistake]:
    """A fabric that can be built as written, but has no port as fast as all planes together."""
    if not scenario.folds:
        return
    try:
        written = scenario.written_shape()
    except ShapeError:  # said already
        return
    rate_bps = written.planes * written.port_rate_bps
    if rate_bps > MAX_RATE_BPS and scenario.world is not WorldKind.VIRTUAL:
        most = f"over {format_rate(MAX_RATE_BPS)}"
        fix = "lower `port_rate`, or write `layout: as-written`"
        yield Mistake(("fabric", "port_rate"), f"makes {format_rate(rate_bps)} on one plane, {most}; {fix}")


def in_fabric(scenario: Scenario, occurrences: Occurrences) -> Occurrences:
    """The occurrences of each fault in names of the fabric that is built."""
    if not scenario.folds:
        return occurrences
    return {index: folded_occurrences(each, scenario.fabric.planes) for index, each in occurrences.items()}


def notices_corruption(file: Readable) -> bool | None:
    """True if receivers notice a flipped bit: TCP has its own checksum, the others the ICRC; None if unreadable."""
    if file.scenario.transport.of_kernel:
        return True
    return None if file.loses("endpoint", "icrc") else file.scenario.endpoint.icrc
