"""The second reader: what the kernel holds, compared with what the plan says. Whatever differs is drift, named by node.

It reads JSON that iproute2 makes from the kernel's dump; nothing the writer remembered is trusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv6Interface
from typing import Any

from testbed.errors import FabricError
from testbed.fabric.batch import query
from testbed.fabric.commands import CLASS_CONTROL, CLASS_DATA, MTU
from topos import usid
from topos.plan import SID_DEVICE, Plan, Route, RouteKind

_ROOT = re.compile(r"qdisc \S+ \S+ root ")
_CLASS = re.compile(r"class htb (\S+) .* ceil (\d+)([KMGT]?bit) ")
_UNIT_BPS = {"bit": 1, "Kbit": 1000, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}
_PRINT_ROUNDING = 1e-3
"""tc prints a rate with at least four digits."""
_SHOWN = 5
"""Drifts named in an error; the rest is counted."""


def verify(plan: Plan, pids: dict[str, int], nodes: Iterable[str]) -> None:
    """Compare links, neighbours, routes and shapers of `nodes` with the plan. Raises FabricError naming every drift."""
    chosen = {node: pids[node] for node in nodes}
    drifts = [
        *_compare("route", _routes_wanted(plan, chosen), _routes_held(chosen)),
        *_compare("port", _ports_wanted(plan, chosen), _ports_held(chosen)),
        *_compare("neighbour", _neighbours_wanted(plan, chosen), _neighbours_held(chosen)),
        *_compare("shaper", _shapers_wanted(plan, chosen), _shapers_held(plan, chosen)),
    ]
    if drifts:
        more = f" (and {len(drifts) - _SHOWN} more)" if len(drifts) > _SHOWN else ""
        raise FabricError(drifts[0][0], "read-back", "; ".join(text for _, text in drifts[:_SHOWN]) + more)


def fib_size(plan: Plan, pids: dict[str, int], node: str) -> int:
    """How many of the plan's routes a node holds now: 0 for a switch that lost its table."""
    wanted = _routes_wanted(plan, [node])[node]
    return len(wanted & _routes_held({node: pids[node]})[node])


def _compare(
    what: str, wanted: dict[str, set[tuple[str, ...]]], held: dict[str, set[tuple[str, ...]]]
) -> list[tuple[str, str]]:
    drifts = []
    for node, rows in wanted.items():
        drifts += [(node, f"{node} lacks {what} {' '.join(row)}") for row in sorted(rows - held[node])]
        drifts += [(node, f"{node} has unplanned {what} {' '.join(row)}") for row in sorted(held[node] - rows)]
    return drifts


def _routes_wanted(plan: Plan, nodes: Iterable[str]) -> dict[str, set[tuple[str, ...]]]:
    return {node: {_wanted_row(route) for route in plan.routes(node)} for node in nodes}


def _wanted_row(route: Route) -> tuple[str, ...]:
    detail = route.target
    if route.kind is RouteKind.END:
        detail = f"next-csid {usid.LCBLOCK_BITS} {usid.LCNODE_FN_BITS}"
    elif route.kind is RouteKind.DT6:
        detail = "table local"
    return route.kind.value, _canonical(route.prefix), route.device, detail


def _routes_held(pids: dict[str, int]) -> dict[str, set[tuple[str, ...]]]:
    answers = query(["ip", "-6", "-j", "route", "show", "table", "all"], pids)
    return {node: {row for entry in json.loads(text) if (row := _held_row(entry))} for node, text in answers.items()}


def _held_row(entry: dict[str, Any]) -> tuple[str, ...] | None:
    """A route as the kernel shows it, None for those it made by itself (proto kernel)."""
    if entry.get("protocol") == "kernel":
        return None
    device, prefix = entry.get("dev", "?"), _canonical(entry["dst"])
    if entry.get("encap") == "seg6" and entry.get("mode") == "encap.red":
        return RouteKind.ENCAP.value, prefix, device, " ".join(entry["segs"])
    if entry.get("encap") == "seg6local" and entry["action"] == "End":
        flavors = f"{' '.join(entry.get('flavors', []))} {entry.get('lblen')} {entry.get('nflen')}"
        return RouteKind.END.value, prefix, device, flavors
    if entry.get("encap") == "seg6local":
        return entry["action"], prefix, device, f"table {entry.get('table')}"
    if entry.get("type") == "local":
        return RouteKind.LOCAL.value, prefix, device, ""
    if "gateway" in entry:
        return RouteKind.VIA.value, prefix, device, entry["gateway"]
    return str(entry.get("encap", entry.get("type", "route"))), prefix, device, str(entry.get("mode", ""))


def _canonical(prefix: str) -> str:
    if prefix == "default":
        return "::/0"
    return prefix if "::/" in prefix else str(IPv6Interface(prefix))


def _ports_wanted(plan: Plan, nodes: Iterable[str]) -> dict[str, set[tuple[str, ...]]]:
    return {
        node: {(own.name, str(own.ifindex), own.mac, f"mtu {MTU}", "up", "carrier") for own, _ in plan.ports[node]}
        for node in nodes
    }


def _ports_held(pids: dict[str, int]) -> dict[str, set[tuple[str, ...]]]:
    answers = query(["ip", "-j", "link", "show"], pids)
    return {node: {_port_row(link) for link in json.loads(text) if _is_port(link)} for node, text in answers.items()}


def _is_port(link: dict[str, Any]) -> bool:
    return link["ifname"] not in ("lo", SID_DEVICE) and link.get("link_type") == "ether"


def _port_row(link: dict[str, Any]) -> tuple[str, ...]:
    flags = link["flags"]
    return (
        link["ifname"],
        str(link["ifindex"]),
        link["address"],
        f"mtu {link['mtu']}",
        "up" if "UP" in flags else "down",
        "carrier" if "LOWER_UP" in flags else "no carrier",
    )


def _neighbours_wanted(plan: Plan, nodes: Iterable[str]) -> dict[str, set[tuple[str, ...]]]:
    return {node: {(peer.link_local, peer.mac, own.name) for own, peer in plan.ports[node]} for node in nodes}


def _neighbours_held(pids: dict[str, int]) -> dict[str, set[tuple[str, ...]]]:
    answers = query(["ip", "-6", "-j", "neigh", "show", "nud", "permanent"], pids)
    return {
        node: {(entry["dst"], entry["lladdr"], entry["dev"]) for entry in json.loads(text or "[]")}
        for node, text in answers.items()
    }


def _shapers_wanted(plan: Plan, nodes: Iterable[str]) -> dict[str, set[tuple[str, ...]]]:
    ceil = str(plan.shape.port_rate_bps)
    handles = ("1:1", CLASS_CONTROL, CLASS_DATA)
    return {node: {(own.name, handle, ceil) for own, _ in plan.ports[node] for handle in handles} for node in nodes}


def _shapers_held(plan: Plan, pids: dict[str, int]) -> dict[str, set[tuple[str, ...]]]:
    # tc prints classes without their device and not as JSON; a root qdisc line says that the next device begins.
    devices = {node: [own.name for own, _ in plan.ports[node]] for node in pids}
    ask = {
        node: "\n".join(f"qdisc show dev {name}\nclass show dev {name}" for name in ports)
        for node, ports in devices.items()
    }
    answers = query(["tc", "-batch", "-"], pids, ask)
    rate = plan.shape.port_rate_bps
    return {node: set(_class_rows(iter(devices[node]), text, rate)) for node, text in answers.items()}


def _class_rows(devices: Iterator[str], text: str, planned_bps: int) -> Iterator[tuple[str, ...]]:
    device = "?"
    for line in text.splitlines():
        if _ROOT.match(line):
            device = next(devices)
        elif match := _CLASS.match(line):
            held = int(match[2]) * _UNIT_BPS[match[3]]
            exact = abs(held - planned_bps) <= planned_bps * _PRINT_ROUNDING
            yield device, match[1], str(planned_bps if exact else held)
