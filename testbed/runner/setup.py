"""Builds each daemon's configuration from plan and scenario, and exchanges QP attributes between both ends."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from mrc_testbed.hosts.mrc.config import FORWARDINGS
from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.runner.team import Team
from mrc_testbed.testbed.scenario import Occurrence, Scenario
from mrc_testbed.testbed.scenario.model.evs import ev_ids, evs_between
from mrc_testbed.testbed.switching.ecmp import hash_seed
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.workloads.job import JobPlan
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.units import plural


def peers_of(plan: Plan, job: JobPlan, host: Host) -> list[Host]:
    """The hosts that share a QP with `host`, by number."""
    numbers = {other for qp in job.qps_of(host.index) for other in (qp.src, qp.dst)} - {host.index}
    return [plan.hosts[number] for number in sorted(numbers)]


_PROBE_WIRE_BYTES = 160
"""An EV probe with all headers, and its answer, at the most."""


def configuration(
    name: str,
    scenario: Scenario,
    plan: Plan,
    job: JobPlan,
    options: FabricOptions,
    denylist: list[dict[str, Any]],
) -> dict[str, Any]:
    """The `configure` request for host `name`, with the rows of its denylist."""
    host, shape = plan.host_by_name[name], plan.shape
    peers = peers_of(plan, job, host)
    return {
        "transport": scenario.transport.protocol,
        "host": host.index,
        "name": name,
        "planes": shape.planes,
        "rtt_ns": shape.rtt_ns,
        "delay_ns": options.one_way_delay_ns(shape) if options.delay == "endpoint" else 0,
        "port_program": options.port_program,
        "switches_trim": options.port_program,
        "dscp_trimmed": options.trimming.dscp,
        "dscp_trimmed_last_hop": options.trimming.dscp_last_hop,
        "port_rate_bps": shape.port_rate_bps,
        "seed": scenario.seed,
        "speed": shape.speed,
        "swift": scenario.swift,
        **_distance(plan, host, peers),
        **_addresses(scenario, plan, host, peers),
        **scenario.transport.request(scenario.own, scenario.endpoint.settings()),
        "denylist": denylist,
    }


def _distance(plan: Plan, host: Host, peers: Sequence[Host]) -> dict[str, int]:
    """The links on the longest way to a peer; nothing where they take no longer than the four over two tiers, which
    endpoints suppose."""
    family = plan.shape.family
    groups = {peer.group for peer in peers}
    links = ceil(max((family.span(way) for group in groups for way in family.ways_of(host.group, group)), default=0))
    return {"forwardings": links} if links > FORWARDINGS else {}


def _addresses(scenario: Scenario, plan: Plan, host: Host, peers: Sequence[Host]) -> dict[str, Any]:
    """This host's addresses and those of its peers: with a table of paths where the host names them."""
    if scenario.transport.names_paths:
        rows = [_peer_with_paths(plan, host, peer) for peer in peers]
        return {"address": host.address, "udp_port": host.udp_port, "peers": rows}
    named = [_peer_with_ports(scenario, plan, host, peer) for peer in peers]
    seed = hash_seed(plan, host.name, scenario.ecmp.hash, scenario.hash_seed)
    return {"ports": plan.host_ports(host), "peers": named, **({"hash_seed": seed} if scenario.hosts_hash else {})}


def _peer_with_ports(scenario: Scenario, plan: Plan, host: Host, peer: Host) -> dict[str, Any]:
    """A peer, and the EVs towards it where the host draws them."""
    evs = [[ev.plane, ev.uplink] for ev in ev_ids(scenario, plan, host, peer)]
    return {"host": peer.index, "name": peer.name, "ports": plan.host_ports(peer), **({"evs": evs} if evs else {})}


def _peer_with_paths(plan: Plan, host: Host, peer: Host) -> dict[str, Any]:
    """A peer and its path table: the protocol's node-specific configuration file (P1, 2.3)."""
    paths = [[path.id.plane, path.id.uplink, path.inner] for path in plan.paths(host, peer)]
    return {"host": peer.index, "name": peer.name, "address": peer.address, "udp_port": peer.udp_port, "paths": paths}


def probe_round_ns(scenario: Scenario, plan: Plan, job: JobPlan) -> int:
    """Twice what the busiest host's ports need for a probe on each of its paths and the answers to those of its peers.

    0 where hosts have no EVs. At slow ports more probes at once would only wait for each other. Half of the time is
    left to what waits already: at ports that are always full every answer comes after its probe was given up.
    """
    if not scenario.transport.has_paths:
        return 0
    named = [plan.host_by_name[name] for name in scenario.host_names]
    a_plane = max(sum(evs_between(scenario, plan, host, peer) for peer in peers_of(plan, job, host)) for host in named)
    return 2 * a_plane * 2 * _PROBE_WIRE_BYTES * 8 * 10**9 // plan.shape.port_rate_bps


def connect_qps(team: Team, plan: Plan, job: JobPlan) -> None:
    """Opens each QP at both ends, exchanges the attributes out of band, and connects both ends."""

    def open_request(name: str) -> dict[str, Any]:
        host = plan.host_by_name[name].index
        qps = [
            {
                "id": qp.id,
                "peer": qp.dst if qp.src == host else qp.src,
                "region_bytes": _region(host, qp.dst, qp.region_bytes),
            }
            for qp in job.qps_of(host)
        ]
        return {"qps": qps}

    opened = {name: answer["qps"] for name, answer in team.ask("open_qps", open_request).items()}

    def connect_request(name: str) -> dict[str, Any]:
        host = plan.host_by_name[name].index
        other = {qp.id: plan.hosts[qp.dst if qp.src == host else qp.src].name for qp in job.qps_of(host)}
        return {"qps": {qp: opened[peer][qp] for qp, peer in other.items()}}

    team.ask("connect_qps", connect_request)


def _region(host: int, receiver: int, region_bytes: int) -> int:
    """Only the receiving end registers memory."""
    return region_bytes if host == receiver else 0


PathIds = dict[str, list[list[int]]]
"""By peer name: [plane, uplink] of each path."""


def broken_paths(
    scenario: Scenario, plan: Plan, job: JobPlan, cold: Sequence[Occurrence], slowed: bool = False
) -> dict[str, PathIds]:
    """Per host, the EVs to its peers that may cross a link which was broken before the start; none where hosts have no
    EVs.

    Where packets of one sender are lost, its answers to probes of peers are lost as well. `slowed`: also paths over a
    link that was slowed down, whose answers may come after the warm-up.
    """
    transport = scenario.transport
    found: dict[str, PathIds] = {name: {} for name in scenario.host_names}
    if not transport.has_paths:
        return found
    for name, by_peer in found.items():
        host = plan.host_by_name[name]
        for peer in peers_of(plan, job, host):
            concern = [occurrence for occurrence in cold if _concerns(occurrence, name, peer.name)]
            links = {link for occurrence in concern for link in occurrence.links}
            links |= {
                link
                for occurrence in concern
                if slowed and occurrence.parameters.rate_bps
                for link in occurrence.targets
            }
            ids = ev_ids(scenario, plan, host, peer)
            crossing = [path for path in ids if links.intersection(transport.may_cross(plan, host, peer, path))]
            if crossing:
                by_peer[peer.name] = [[path.plane, path.uplink] for path in crossing]
    return found


def _concerns(occurrence: Occurrence, host: str, peer: str) -> bool:
    return occurrence.parameters.sender in ("", host, peer) and occurrence.parameters.peer in ("", host, peer)


def refuse_silence(answers: dict[str, dict[str, Any]], broken: dict[str, PathIds], intact: bool) -> None:
    """Raises RunError when an answer to `warm_up` names a silent path that is neither broken nor slowed down, or a
    silent QP although the fabric is `intact`: which QPs cross a broken link is the network's choice."""
    for host, answer in answers.items():
        if intact and (silent_qps := answer["silent_qps"]):
            raise RunError(
                f"{host}: {plural(len(silent_qps), 'QP')} without a connection, and there is no fault; the first is"
                f" {silent_qps[0]}"
            )
        for peer, silent in answer["silent"].items():
            wrong = [path for path in silent if path not in broken[host].get(peer, [])]
            if wrong:
                plane, uplink = wrong[0]
                raise RunError(
                    f"{host}: {plural(len(wrong), 'path')} to {peer} did not answer a probe, and no fault was there;"
                    f" the first is plane {plane}, uplink {uplink}"
                )
