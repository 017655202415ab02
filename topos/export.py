"""A plan as plain data: the fabric part of `plan.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.graph import FULL_SPEED
from mrc_testbed.topos.nodes import Host, Interface, Link, Switch
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.shape import Shape


def plan_as_dict(plan: Plan) -> dict[str, Any]:
    """The plan as JSON types. Paths are given as a count per kind of host pair, 0 without such a pair."""
    return {
        "shape": _shape(plan.shape),
        "hosts": [_host(plan, host) for host in plan.hosts],
        "switches": [_switch(switch) for switch in plan.switches],
        "links": [_link(link, plan.shape.port_rate_bps) for link in plan.links],
        "paths_per_pair": _path_counts(plan.shape),
    }


def _shape(shape: Shape) -> dict[str, Any]:
    """Without `speed` and `cut_bytes` where they are the usual ones and what only estimates need, and with the numbers
    of two tiers beside the others: folders of runs stay as they always were."""
    found = asdict(shape)
    family = _without_usual(found.pop("family"))
    if isinstance(shape.family, Clos2):
        found = {"planes": found.pop("planes"), **family, **found}
    else:
        found["family"] = {shape.family.word: family}
    usual = {key for key, value in (("speed", 1), ("cut_bytes", 0)) if found[key] == value} | {"open_messages"}
    return {key: value for key, value in found.items() if key not in usual}


def _without_usual(keys: dict[str, Any]) -> dict[str, Any]:
    """Without the speeds of links where no key lowers them."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in keys.items() if value != FULL_SPEED
    }


def _host(plan: Plan, host: Host) -> dict[str, Any]:
    return asdict(host) | {"address": plan.address_of(host), "udp_port": host.udp_port}


def _switch(switch: Switch) -> dict[str, Any]:
    return asdict(switch) | {"usid": f"{switch.usid:#06x}"}


def _link(link: Link, usual_bps: int) -> dict[str, Any]:
    """With its rate where that is not the usual one."""
    return {
        **({} if link.rate_bps == usual_bps else {"rate_bps": link.rate_bps}),
        "name": link.name,
        "plane": link.plane,
        "is_host_link": link.is_host_link,
        "near": _interface(link.near),
        "far": _interface(link.far),
    }


def _interface(end: Interface) -> dict[str, Any]:
    return asdict(end) | {"mac": end.mac, "link_local": end.link_local}


def _path_counts(shape: Shape) -> dict[str, int]:
    return {
        "same_t0": shape.planes if max(map(len, shape.family.below)) > 1 else 0,
        "across_t0": shape.planes * shape.family.most_ways() if len(shape.family.below) > 1 else 0,
    }
