"""From plan and scenario to what each daemon is told, and the exchange of QP attributes between both ends."""

from __future__ import annotations

from typing import Any

from testbed.fabric.options import FabricOptions
from testbed.runner.team import Team
from testbed.scenario import Scenario
from testbed.workloads.job import JobPlan
from topos.plan import Host, Plan


def configuration(name: str, scenario: Scenario, plan: Plan, job: JobPlan, options: FabricOptions) -> dict[str, Any]:
    """The `configure` request for host `name`."""
    host = plan.host_by_name[name]
    shape = plan.shape
    numbers = sorted({other for qp in job.qps_of(host.index) for other in (qp.src, qp.dst)} - {host.index})
    return {
        "host": host.index,
        "name": name,
        "address": host.address,
        "planes": shape.planes,
        "udp_port": host.udp_port,
        "rtt_ns": shape.rtt_ns,
        "delay_ns": options.one_way_delay_ns(shape) if options.delay == "endpoint" else 0,
        "port_rate_bps": shape.port_rate_bps,
        "ev_active": scenario.endpoint.ev_active,
        "icrc": scenario.endpoint.icrc,
        "seed": scenario.seed,
        "peers": [_peer(plan, host, plan.hosts[number]) for number in numbers],
    }


def _peer(plan: Plan, host: Host, peer: Host) -> dict[str, Any]:
    """A peer and the path table towards it: what the protocol's node-specific configuration file holds (P1, 2.3)."""
    paths = [[path.id.plane, path.id.uplink, path.inner] for path in plan.paths(host, peer)]
    return {"host": peer.index, "name": peer.name, "address": peer.address, "paths": paths}


def connect_qps(team: Team, plan: Plan, job: JobPlan) -> None:
    """Both ends open each QP; the attributes are carried across out of band; both connect."""

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
    """Only the receiving end registers memory that the peer may write."""
    return region_bytes if host == receiver else 0
