"""What is odd about a scenario that loads: faults that nothing comes of, chaos that draws nothing. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby

from mrc_testbed.testbed.scenario.faults import Chaos, Occurrence
from mrc_testbed.testbed.scenario.faults.kinds.withdrawn import Deny
from mrc_testbed.testbed.scenario.model.arrival_load import arrival_load
from mrc_testbed.testbed.scenario.model.bgp import BgpSettings
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.model.wall_time import wall_time
from mrc_testbed.testbed.scenario.rules.denial_rules import Talk
from mrc_testbed.testbed.scenario.rules.program_warnings import program_warnings
from mrc_testbed.testbed.scenario.text.units import format_duration
from mrc_testbed.topos.nodes import Link
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.units import some

_SHOWN = 2
_HOUR_S = 3600
_REPAIR_NS = 80_000_000
"""What BGP needs for a detour after a carrier is gone, at any T (docs/routing.md)."""
_DETECTION_RTTS = 2.5
"""What an endpoint that chooses paths needs to leave one (docs/paper.md, Fig. 4)."""
_APART = 3
"""On real fabrics the two are factors of hundreds apart; so far at least they must be."""


def scenario_warnings(scenario: Scenario) -> Iterator[str]:
    """A line for each, for people."""
    yield from _empty_chaos(scenario)
    yield from _unmet_faults(scenario)
    yield from _late_faults(scenario)
    yield from _nothing_to_deny(scenario)
    yield from _keys_of_others(scenario)
    yield from _little_to_map(scenario)
    yield from _nothing_by_bgp(scenario)
    yield from _race(scenario)
    yield from _hours_of_flows(scenario)
    yield from program_warnings(scenario)
    yield from scenario.left_out


def _hours_of_flows(scenario: Scenario) -> Iterator[str]:
    virtual = scenario.world is WorldKind.VIRTUAL
    hours = (wall_time(scenario).most_s if virtual else scenario.estimate_ns / 1e9) / _HOUR_S
    if arrival_load(scenario).flows and hours > 1:
        takes = f"{hours:.0f} h of a core" if virtual else f"{hours:.0f} h"
        yield f"workload: its flows will take about {takes}; play fewer flows, smaller ones, or a shorter time"


def _race(scenario: Scenario) -> Iterator[str]:
    """BGP's seconds are real and T is scaled: with a long T the slower of two in a real fabric would come first."""
    detection_ns = _DETECTION_RTTS * scenario.fabric.rtt_ns
    if not scenario.plan().learns_locators or _APART * detection_ns <= _REPAIR_NS:
        return
    times = f"{scenario.transport} leaves a path after {_DETECTION_RTTS} T = {format_duration(round(detection_ns))}"
    found = f"and BGP has another after {format_duration(_REPAIR_NS)} at any T"
    most = format_duration(int(_REPAIR_NS / _APART / _DETECTION_RTTS) // 1_000_000 * 1_000_000)
    yield f"fabric.rtt: {times}, {found}: which comes first means nothing; write at most {most}"


def _nothing_by_bgp(scenario: Scenario) -> Iterator[str]:
    usual = BgpSettings()
    for key in ("carries", "t1_as"):
        if scenario.routing is not Routing.BGP and getattr(scenario.bgp, key) != getattr(usual, key):
            yield f"bgp.{key}: the routing is {scenario.routing}, so BGP carries nothing; write `routing: bgp`"


def _little_to_map(scenario: Scenario) -> Iterator[str]:
    """Without paths of their own hosts cannot say where a packet was lost, and there is nothing to deny."""
    if scenario.mapper is None or scenario.transport.names_paths:
        return
    seen = "the planes that lose packets" if scenario.transport.has_paths else "ports without carrier"
    probes = "sends no probes, " if scenario.mapper.probes else ""
    why = f"hosts choose no paths over {scenario.transport}"
    yield f"mapper: {why}, so it {probes}sees {seen} alone, and denies nothing"


def _nothing_to_deny(scenario: Scenario) -> Iterator[str]:
    if scenario.transport.names_paths:
        return
    denials = ["endpoint.denylist"] if scenario.endpoint.denylist else []
    denials += [entry.name for entry in scenario.faults if isinstance(entry, Deny)]
    for name in denials:
        yield f"{name}: {scenario.transport} has no paths that a host could leave, so nothing comes of it"


def _keys_of_others(scenario: Scenario) -> Iterator[str]:
    endpoint = scenario.endpoint
    for name in endpoint.plugins:
        if name in endpoint.model_fields_set and name not in endpoint.chosen:
            yield f"endpoint.{name}: the plugin is not chosen, so nothing comes of its keys"


def _empty_chaos(at_scale: Scenario) -> Iterator[str]:
    scenario = at_scale.as_written  # rates of chaos are never scaled, and people know the times that they wrote
    for entry in scenario.faults:
        if not isinstance(entry, Chaos):
            continue
        drawn = {occurrence.kind for occurrence in scenario.occurrences if occurrence.fault == entry.name}
        wanted = {part.model.kind: part for part in entry.kinds.written()}
        missing = [kind for kind in wanted if kind not in drawn]
        when = f"in {format_duration(entry.for_ns)}; raise the rate or make it longer"
        if not drawn:
            yield f"{entry.name}: seed {scenario.seed} draws nothing {when}"
        elif missing:
            often = ", ".join(f"{kind} ({entry.for_ns / wanted[kind].times.mean_ns:.2g} expected)" for kind in missing)
            yield f"{entry.name}: seed {scenario.seed} draws no {often} {when}"


def _late_faults(at_scale: Scenario) -> Iterator[str]:
    """Faults that find nothing to break, unless others keep the workload up until then."""
    scenario = at_scale.as_written  # people know the times that they wrote
    if scenario.job.programs:
        return
    end_ns = scenario.estimate_ns
    for name, cycles in groupby(scenario.occurrences, key=lambda one: one.fault):
        begins = [one.begin_ns for one in cycles]
        late = [begin_ns for begin_ns in begins if begin_ns >= end_ns]
        if late:
            which = f"{len(late)} of {len(begins)} cycles begin" if len(begins) > 1 else "begins"
            when = f"{which} at {format_duration(min(late))}{' or later' if len(late) > 1 else ''}"
            ended = f"when the workload has ended, after about {end_ns / 1e9:.1f} s without faults"
            yield f"{name}: {when}, {ended}; begin earlier, or make the workload longer"


def _unmet_faults(scenario: Scenario) -> Iterator[str]:
    plan = scenario.plan()
    talk = Talk.of(scenario.job, plan)
    for name in dict.fromkeys(occurrence.fault for occurrence in scenario.occurrences):
        links = _links_of(name, scenario.occurrences, plan)
        if links and not any(_carries(link, talk, plan) for link in links):
            shown = some([link.name for link in links], _SHOWN)
            yield f"{name}: no packet of the workload passes {shown}, so nothing can come of it"
    for name, sender, peer in dict.fromkeys(_ends(scenario.occurrences)):
        if peer not in talk.peers.get(sender, ()):
            yield f"{name}: {sender} and {peer} exchange nothing in the workload, so nothing can come of it"


def _ends(occurrences: Collection[Occurrence]) -> Iterator[tuple[str, str, str]]:
    """Name, sender and peer of faults that are of packets between two hosts alone."""
    for occurrence in occurrences:
        sender, peer = occurrence.parameters.sender, occurrence.parameters.peer
        if sender and peer:
            yield occurrence.fault, sender, peer


def _links_of(fault: str, occurrences: Collection[Occurrence], plan: Plan) -> list[Link]:
    """The links that its occurrences touch, none where it touches something else."""
    names = dict.fromkeys(
        name
        for occurrence in occurrences
        if occurrence.fault == fault
        for name in (*occurrence.links, *occurrence.targets)
        if name in plan.link_by_name
    )
    return [plan.link_by_name[name] for name in names]


def _carries(link: Link, talk: Talk, plan: Plan) -> bool:
    """True when data or answers of the workload can pass the link."""
    if link.is_host_link:
        return bool(talk.peers.get(link.near.node))
    group = plan.switch_by_name[link.near.node].index
    return any(host.group == group and talk.crosses(host.name, plan) for host in talk.members)
