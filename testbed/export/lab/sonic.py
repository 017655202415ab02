"""A switch as SONiC's CONFIG_DB. `config load` adds it to what the image says of its ports' lanes.

Sources: SONiC's designs of SRv6 static SIDs (SRV6_MY_LOCATORS, SRV6_MY_SIDS), static routes (STATIC_ROUTE) and packet
trimming (SWITCH_TRIMMING).
"""

from __future__ import annotations

import json
from ipaddress import IPv6Interface
from typing import Any

from mrc_testbed.testbed.export.lab.addressed import addressed_routes, port_address
from mrc_testbed.testbed.fabric.commands import switch_address
from mrc_testbed.testbed.switching.classes import TrimRules
from mrc_testbed.testbed.switchview.views import HIGH_QUEUE
from mrc_testbed.topos import usid
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import Route, RouteKind

LANES = 4
"""Of a port: the n-th one is called Ethernet4n."""
_TRIM_BYTES = 256
"""Where the scenario keeps all headers and says no size: SONiC wants one."""
_LOCATOR = "MAIN"


def port_names(plan: Plan, switch: str) -> dict[str, str]:
    """SONiC's names of the switch's ports, by ours."""
    return {own.name: f"Ethernet{LANES * number}" for number, (own, _) in enumerate(plan.ports[switch])}


def sonic_text(plan: Plan, switch: str, trimming: TrimRules) -> str:
    """Its CONFIG_DB as JSON: only the tables that the fabric decides."""
    tables = {
        "DEVICE_METADATA": {"localhost": {"hostname": switch, "docker_routing_config_mode": "split"}},
        "PORT": {name: {"admin_status": "up", "mtu": "9100"} for name in port_names(plan, switch).values()},
        "INTERFACE": _interfaces(plan, switch),
        "LOOPBACK_INTERFACE": _loopback(plan, switch),
        "STATIC_ROUTE": _static_routes(plan, switch),
        **_sids(plan, switch),
        "SWITCH_TRIMMING": {"GLOBAL": _trimming(trimming)},
    }
    return json.dumps({name: rows for name, rows in tables.items() if rows}, indent=2) + "\n"


def _interfaces(plan: Plan, switch: str) -> dict[str, Any]:
    named = port_names(plan, switch)
    rows: dict[str, Any] = {name: {} for name in named.values()}
    return rows | {f"{named[own.name]}|{port_address(own.ifindex)}": {} for own, _ in plan.ports[switch]}


def _loopback(plan: Plan, switch: str) -> dict[str, Any]:
    """The switch answers pings at its locator's first address."""
    address = f"{switch_address(plan, switch)}/128" if plan.answers else ""
    return {"Loopback0": {}, f"Loopback0|{address}": {}} if address else {}


def _static_routes(plan: Plan, switch: str) -> dict[str, Any]:
    named = port_names(plan, switch)
    rows = {}
    for route in addressed_routes(plan, switch):
        if route.kind is RouteKind.BLACKHOLE:
            rows[_key(route)] = {"blackhole": "true"}
        elif hops := [(hop.gateway, hop.device) for hop in route.hops] or _one_hop(route):
            gateways, devices = zip(*hops, strict=True)
            rows[_key(route)] = {"nexthop": ",".join(gateways), "ifname": ",".join(named[each] for each in devices)}
    return rows


def _one_hop(route: Route) -> list[tuple[str, str]]:
    return [(route.target, route.device)] if route.kind is RouteKind.VIA else []


def _key(route: Route) -> str:
    return f"default|{route.prefix}"


def _sids(plan: Plan, switch: str) -> dict[str, Any]:
    """One locator a switch, which is its uSID; `func_len` 0, as the locator alone is the SID (uN)."""
    if not plan.by_usid:
        return {}
    own = usid.locator(plan.switch_by_name[switch].usid)
    prefix = str(IPv6Interface(own).ip)
    return {
        "SRV6_MY_LOCATORS": {_LOCATOR: {"prefix": prefix, "func_len": "0"}},
        "SRV6_MY_SIDS": {f"{_LOCATOR}|{own}": {"action": "uN", "decap_dscp_mode": "pipe"}},
    }


def _trimming(rules: TrimRules) -> dict[str, str]:
    return {
        "size": str(rules.size_bytes or _TRIM_BYTES),
        "dscp_value": str(rules.dscp),
        "queue_index": HIGH_QUEUE.removeprefix("UC"),
    }
