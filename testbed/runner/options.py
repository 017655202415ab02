"""Selects the parts of this machine that a run uses, from what the scenario wants and the machine offers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mrc_testbed.testbed.fabric import capabilities, privileges
from mrc_testbed.testbed.fabric.capabilities import (
    FRR,
    HASH_SEED,
    MPTCP,
    MULTIPATH,
    PATH_ORDER,
    PORT_PROGRAM,
    TCP_RTO_MIN,
    Capability,
)
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.bgp import SECOND_NS, BgpSettings
from mrc_testbed.testbed.scenario.model.evs import evs_a_plane
from mrc_testbed.testbed.switching.options import BgpOptions, FabricOptions
from mrc_testbed.testbed.transports.base import Sockets
from mrc_testbed.testbed.transports.tcp import TcpSettings
from mrc_testbed.topos.routes import Routing

_FILES_PER_DAEMON = 20
_FILES_PER_CAPTURE = 8


def require_limits(scenario: Scenario) -> None:
    """Raises MissingCapability where a run would have too few namespaces, processes or open files. To be called before
    anything is tried: what the machine refuses then looks like a feature that it lacks."""
    from mrc_testbed.testbed.fabric import limits  # here, because it loads on Linux alone

    shape = scenario.shape()
    privileges.require_namespaces(limits.namespaces_needed(shape), scenario.name)
    limits.require_processes(limits.processes_needed(shape, scenario.routing is Routing.BGP), scenario.name)
    supervisor = limits.files_needed(shape) + _FILES_PER_CAPTURE * len(scenario.captures)
    limits.require_files(max(supervisor, _FILES_PER_DAEMON + _most_sockets(scenario)), scenario.name)


def _most_sockets(scenario: Scenario) -> int:
    """Of one daemon, beside its usual ones: where the network chooses paths, each QP or EV has a socket of its own."""
    if scenario.transport.sockets is Sockets.HOST:
        return 0
    if scenario.transport.sockets is Sockets.EV:
        return scenario.shape().planes * evs_a_plane(scenario, scenario.shape(), near=False)
    qps = scenario.job.plan_job(scenario.plan()).qps
    ends = Counter(end for qp in qps for end in (qp.src, qp.dst))
    return max(ends.values(), default=0)


def fabric_options(scenario: Scenario, found: Sequence[Capability]) -> FabricOptions:
    """The fabric options. Raises MissingCapability if the scenario needs an absent part."""
    options = _chosen(scenario, found)
    if scenario.transport.of_kernel:
        _require_tcp(scenario.own, found)
    return options


def best_options(scenario: Scenario) -> FabricOptions:
    """Those of a machine that has every part. Nothing is tried."""
    return _chosen(scenario, capabilities.all_present())


def _chosen(scenario: Scenario, found: Sequence[Capability]) -> FabricOptions:
    kernel_speaks = f"transport: {scenario.transport}" if scenario.transport.of_kernel else ""
    options = capabilities.choose(found, scenario.shape(), kernel_speaks)
    if scenario.transport.subflows:
        capabilities.require_for(found, MPTCP, kernel_speaks)
        options = replace(options, subflows=True)
    if scenario.needs_port_program:
        capabilities.require_port_program(found, scenario.needs_port_program)
    if scenario.routing is not Routing.SRV6:
        options = _choosing(options, scenario, found)
    options = replace(
        options,
        marks=scenario.dscp_marks,
        trimming=scenario.trimming.rules(),
        data=scenario.transport.data,
        trims=scenario.transport.can_be_trimmed,
    )
    switch = scenario.fabric.switch
    if switch.use == "plain":
        return replace(options, switch_ports="plain shaper")
    return replace(options, thresholds=scenario.port_thresholds())


def _require_tcp(settings: TcpSettings, found: Sequence[Capability]) -> None:
    capabilities.require_congestion_control(settings.congestion_control)
    if settings.rto_min_ns != TcpSettings().rto_min_ns:
        capabilities.require_for(found, TCP_RTO_MIN, "tcp.rto_min")


def _choosing(options: FabricOptions, scenario: Scenario, found: Sequence[Capability]) -> FabricOptions:
    """With switches that choose the path. Where the kernel lets us, the seed of their hash is that of the scenario."""
    capabilities.require_for(found, MULTIPATH, f"routing: {scenario.routing}")
    ecmp = scenario.ecmp
    for key, value in (("hash", "independent"), ("hosts", "hashed")):
        if getattr(ecmp, key) == value:
            capabilities.require_for(found, HASH_SEED, f"ecmp.{key}: {value}")
    if scenario.routing is Routing.BGP:
        capabilities.require_for(found, FRR, "routing: bgp")
    return replace(
        options,
        ecmp_hash=ecmp.hash,
        repath=ecmp.repath,
        hash_ports=scenario.hosts_hash,
        adaptive=scenario.adaptive,
        hash_seed=None if options.hash_seed is None else scenario.hash_seed,
        path_order=not scenario.transport.names_paths and not _path_order_lost(found),
        bgp=_bgp_options(scenario.bgp),
    )


def _bgp_options(bgp: BgpSettings) -> BgpOptions:
    bfd_ms = bgp.bfd.interval_ns // 1_000_000 if bgp.bfd else 0
    multiplier = bgp.bfd.multiplier if bgp.bfd else BgpOptions().bfd_multiplier
    hold_s = bgp.hold.hold_ns // SECOND_NS
    return BgpOptions(bgp.hold.keepalive_ns // SECOND_NS, hold_s, bfd_ms, multiplier, bgp.routes, bgp.t1_as)


def switch_words(scenario: Scenario, found: Sequence[Capability], options: FabricOptions) -> str:
    """The kind of switch port, and the reason if it is not the port program."""
    if options.port_program:
        return "port program (marks, trims)" if scenario.transport.can_be_trimmed else "port program (marks)"
    if scenario.fabric.switch.use == "plain":
        return "plain shapers (fabric.switch: plain)"
    detail = next((each.detail for each in found if each.name == PORT_PROGRAM), "it was not tried")
    return f"plain shapers: no port program ({detail})"


def path_order_words(scenario: Scenario, found: Iterable[Capability]) -> dict[str, str]:
    """What environment.json says of the order of packets on a path; nothing where the transport takes any."""
    if scenario.transport.any_order(scenario.own):
        return {}
    lost = _path_order_lost(found)
    return {"path_order": f"not kept: {lost}" if lost else "kept: each switch takes in packets on one CPU"}


def path_order_warnings(scenario: Scenario, found: Iterable[Capability]) -> Iterator[str]:
    """Where packets may overtake each other and the transport takes that for loss."""
    if not scenario.transport.any_order(scenario.own) and (lost := _path_order_lost(found)):
        yield f"packets may overtake each other on a path here, which {scenario.transport} may take for loss: {lost}"


def _path_order_lost(found: Iterable[Capability]) -> str:
    """Why a switch cannot be given a CPU; empty where it can."""
    for one in found:
        if one.name == PATH_ORDER:
            return "" if one.present else one.detail
    return "it was not tried"
