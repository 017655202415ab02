"""Reads the kernel back and compares it with the plan; differences are drift, reported by node.

It reads what iproute2 makes of the kernel's dump, text where that suffices and JSON where not, and trusts nothing that
the writer remembered.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import IPv6Interface
from typing import Any

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.batch import query
from mrc_testbed.testbed.fabric.bgp.learned import learned_routes, possible_routes
from mrc_testbed.testbed.fabric.commands import MTU, PORTLESS, switch_address, without_hops
from mrc_testbed.testbed.fabric.readback_queues import PortRow, question, rows_held, rows_wanted
from mrc_testbed.testbed.fabric.readback_text import as_planned, read_routes
from mrc_testbed.testbed.switching.ecmp import switch_settings
from mrc_testbed.testbed.switching.expected import Expected
from mrc_testbed.testbed.switching.tables import routes_with
from mrc_testbed.topos import usid
from mrc_testbed.topos.overlay import MANAGEMENT
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import SID_DEVICE, NextHop, Route, RouteKind
from mrc_testbed.topos.tables import routes_of

Rows = dict[str, set[PortRow]]
Entries = dict[str, list[dict[str, Any]]]
"""What `ip -j` says of each node."""
IP_JSON = ["ip", "-6", "-j", "-batch", "-"]
_LINKS, _NEIGHBOURS, _ADDRESSES = "link show", "neigh show nud permanent", "addr show dev lo scope global"
_JSON_SPACE = re.compile(r"\s*")
_DEVICE = {"routes": 2, "mtu": 0, "neighbours": 2, "queues": 1}
"""Index of the port in a row, by what a fault may change there."""
LEARNED = "bgp"
"""The kernel's name for who wrote a route, where BGP did."""
_LINKS_SETTLE_S = 2.0
"""The kernel tells routes of carriers from a queue that it works off once a second (net/core/link_watch.c)."""
_SHOWN = 5
"""Drifts named in an error; further ones are counted."""


def verify(expected: Expected, pids: dict[str, int], nodes: Iterable[str], settled: bool = True) -> None:
    """Compare links, neighbours, routes, shapers, queues and port programs of `nodes` with the expected ones.

    Unless `settled`, routes that a routing protocol finds may be missing, and old ones may be there still.
    Raises FabricError naming every drift.
    """
    chosen = {node: pids[node] for node in nodes}
    until = time.monotonic() + _LINKS_SETTLE_S
    while drifts := _drifts(expected, chosen, settled):
        if time.monotonic() > until or not any(_may_settle(expected, node) for node, _ in drifts):
            more = f" (and {len(drifts) - _SHOWN} more)" if len(drifts) > _SHOWN else ""
            raise FabricError(drifts[0][0], "read-back", "; ".join(text for _, text in drifts[:_SHOWN]) + more)
        time.sleep(_LINKS_SETTLE_S / 20)


def _may_settle(expected: Expected, node: str) -> bool:
    """A switch that chooses among its ports holds a next hop for dead until it has heard of the port's carrier."""
    return expected.plan.switches_choose and node in expected.plan.switch_by_name


def _drifts(expected: Expected, chosen: dict[str, int], settled: bool) -> list[tuple[str, str]]:
    """(node, difference) of all differences."""
    queues_wanted = {node: set(rows_wanted(expected, node)) for node in chosen}

    def compared(what: str, word: PortRow, wanted: Rows, held: Rows) -> list[tuple[str, str]]:
        return _compare(word, _but_unplanned(expected, what, wanted), _but_unplanned(expected, what, held))

    texts = read_routes(chosen)
    odd = {node: chosen[node] for node, text in texts.items() if not as_planned(text, _routes_left(expected, node))}
    routes = compared("routes", ("route",), _routes_wanted(expected, odd), _routes_held(odd))
    entries = _entries_held(expected, chosen)
    return [
        *routes,
        *_learned_drifts(expected, chosen, settled),
        *compared("mtu", ("port",), _ports_wanted(expected, chosen), _ports_held(entries)),
        *compared("neighbours", ("neighbour",), _neighbours_wanted(expected, chosen), _neighbours_held(entries)),
        *compared("queues", (), queues_wanted, _queues_held(expected, chosen)),
        *_compare(("address",), *_addresses(expected, entries)),
        *_compare(("setting",), _settings_wanted(expected, chosen), _settings_held(expected, chosen)),
    ]


def _but_unplanned(expected: Expected, what: str, rows: Rows) -> Rows:
    """The rows without what a fault has changed by its own code; a port with a changed MTU is compared without its
    MTU."""
    left: Rows = {}
    for node, all_rows in rows.items():
        devices, column = expected.devices_without(what, node), _DEVICE[what]
        left[node] = {row for row in all_rows if row[column] not in devices}
        if what == "mtu":
            left[node] |= {(*row[:3], *row[4:]) for row in all_rows - left[node]}
    return left


def fib_size(plan: Plan, pids: dict[str, int], node: str) -> int:
    """How many of the plan's routes a node holds now: 0 for a switch that lost its table."""
    wanted = {row for route in routes_of(plan, node) for row in _wanted_rows(route)}
    return len(wanted & _routes_held({node: pids[node]})[node])


def _compare(
    what: PortRow, wanted: dict[str, set[tuple[str, ...]]], held: dict[str, set[tuple[str, ...]]]
) -> list[tuple[str, str]]:
    drifts = []
    for node, rows in wanted.items():
        lacks, unplanned = sorted(rows - held[node]), sorted(held[node] - rows)
        drifts += [(node, f"{node} lacks {' '.join((*what, *row))}") for row in lacks]
        drifts += [(node, f"{node} has unplanned {' '.join((*what, *row))}") for row in unplanned]
    return drifts


def _routes_wanted(expected: Expected, nodes: Iterable[str]) -> dict[str, set[tuple[str, ...]]]:
    """A port that is down loses its routes; a switch that is off has those of no port neither."""
    return {node: {row for route in _routes_left(expected, node) for row in _wanted_rows(route)} for node in nodes}


def _routes_left(expected: Expected, node: str) -> Iterator[Route]:
    devices = _dead_ports(expected, node)
    for route in routes_with(expected.misled, expected.plan, node):
        if route.device not in devices and not (route.kind in PORTLESS and node in expected.off):
            yield without_hops(route, devices)


def _dead_ports(expected: Expected, node: str) -> set[str]:
    """Ports whose routes the kernel does not use: those that are down. A switch that chooses among its ports also
    leaves out those without carrier."""
    plan = expected.plan
    chooses = plan.switches_choose and node in plan.switch_by_name
    return {own.name for own, peer in plan.ports[node] if own in expected.down or (chooses and peer in expected.down)}


def _wanted_rows(route: Route) -> Iterator[tuple[str, ...]]:
    """One row a next hop: a route with one that is left is a plain one to the kernel."""
    prefix = _canonical(route.prefix)
    if route.kind in (RouteKind.VIA, RouteKind.MULTIPATH):
        several = route.kind is RouteKind.MULTIPATH
        for hop in route.hops if several else [NextHop(route.target, route.device)]:
            yield _via_row(prefix, hop.device, hop.gateway, route.source)
        return
    detail = route.target
    if route.kind is RouteKind.END:
        detail = f"next-csid {usid.LCBLOCK_BITS} {usid.LCNODE_FN_BITS}"
    elif route.kind is RouteKind.DT6:
        detail = "table local"
    yield route.kind.value, prefix, route.device, detail


def _via_row(prefix: str, device: str, gateway: str, source: str = "", weight: int = 1) -> tuple[str, ...]:
    detail = gateway + (f" src {source}" if source else "") + (f" weight {weight}" if weight != 1 else "")
    return RouteKind.VIA.value, prefix, device, detail


def _learned_drifts(expected: Expected, pids: dict[str, int], settled: bool) -> list[tuple[str, str]]:
    """Routes that BGP should have found and has not, and those it should not have. While it may be at work, only routes
    that it has never had a reason for."""
    plan = expected.plan
    if not plan.learns:
        return []
    held = _rows_by_node(query(["ip", "-6", "-j", "route", "show", "proto", LEARNED], pids), _learned_rows)
    bgp, lost = expected.options.bgp, expected.lost_links()
    if settled:
        wanted = {node: _rows_of(learned_routes(plan, node, bgp, lost)) for node in pids}
    else:
        wanted = {node: _rows_of(possible_routes(plan, node, bgp)) & held[node] for node in pids}
    return _compare(("route", "of", "BGP"), wanted, held)


def _rows_of(routes: Iterable[Route]) -> set[PortRow]:
    return {row for route in routes for row in _wanted_rows(route)}


def _routes_held(pids: dict[str, int]) -> dict[str, set[tuple[str, ...]]]:
    answers = query(["ip", "-6", "-j", "route", "show", "table", "all"], pids) if pids else {}
    return _rows_by_node(answers, _route_rows)


def _rows_by_node(answers: Mapping[str, str], rows_of: Callable[[str], Iterator[PortRow]]) -> Rows:
    return {node: set(rows_of(text)) for node, text in answers.items()}


def _learned_rows(text: str) -> Iterator[tuple[str, ...]]:
    for entry in json.loads(text or "[]"):
        yield from _via_rows_held(entry)


def _route_rows(text: str) -> Iterator[tuple[str, ...]]:
    for entry in json.loads(text):
        if entry.get("protocol") in ("kernel", LEARNED):  # the kernel made it by itself; or nobody wrote it
            continue
        if "nexthops" in entry or "gateway" in entry:
            yield from _via_rows_held(entry)
        else:
            yield _held_row(_flat(entry))


def _via_rows_held(entry: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A row each next hop that is in use."""
    for hop in entry.get("nexthops", [entry]):
        if "dead" not in hop.get("flags", ()):
            gateway, source = hop.get("gateway", "?"), entry.get("prefsrc", "")
            yield _via_row(_canonical(entry["dst"]), hop.get("dev", "?"), gateway, source, hop.get("weight", 1))


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    """A route as iproute2 6.1 prints it. Newer ones nest the encapsulation: `"encap": {"encap_type": "seg6", ...}`."""
    encap = entry.get("encap")
    return {**entry, **encap, "encap": encap.get("encap_type")} if isinstance(encap, dict) else entry


def _held_row(entry: dict[str, Any]) -> tuple[str, ...]:
    """A route without a gateway as the kernel shows it."""
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
    return str(entry.get("encap", entry.get("type", "route"))), prefix, device, str(entry.get("mode", ""))


def _canonical(prefix: str) -> str:
    if prefix == "default":
        return "::/0"
    return prefix if "::/" in prefix else str(IPv6Interface(prefix))


def _ports_wanted(expected: Expected, nodes: Iterable[str]) -> dict[str, set[tuple[str, ...]]]:
    """A port loses carrier when the port at the other end of the link is down."""
    return {
        node: {
            (
                *(own.name, str(own.ifindex), own.mac, f"mtu {MTU}"),
                "down" if own in expected.down else "up",
                "no carrier" if own in expected.down or peer in expected.down else "carrier",
            )
            for own, peer in expected.plan.ports[node]
        }
        for node in nodes
    }


def _entries_held(expected: Expected, pids: dict[str, int]) -> Entries:
    """All entries of a node by one process: permanent neighbours, addresses of a switch that answers, and links: last,
    for after them `ip` forgets that it was told to speak of IPv6."""
    lines = {node: [_NEIGHBOURS, *([_ADDRESSES] if _answers(expected, node) else []), _LINKS] for node in pids}
    answers = query(IP_JSON, pids, {node: "\n".join(asked) for node, asked in lines.items()})
    return {node: list(_entries(text)) for node, text in answers.items()}


def _entries(text: str) -> Iterator[dict[str, Any]]:
    """Of all lists in the output of a batch, which has one for each line, or nothing for a line without entries."""
    decoder, at = json.JSONDecoder(), 0
    while (at := _JSON_SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        entries, at = decoder.raw_decode(text, at)
        yield from entries


def _ports_held(entries: Entries) -> Rows:
    return {node: {_port_row(each) for each in held if _is_port(each)} for node, held in entries.items()}


def _is_port(link: dict[str, Any]) -> bool:
    return link.get("link_type") == "ether" and link["ifname"] not in ("lo", SID_DEVICE, MANAGEMENT)


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


def _neighbours_wanted(expected: Expected, nodes: Iterable[str]) -> dict[str, set[tuple[str, ...]]]:
    ends = {node: (pair for pair in expected.plan.ports[node] if pair[0] not in expected.down) for node in nodes}
    return {
        node: {
            (address, peer.mac, own.name)
            for own, peer in pairs
            for address in expected.plan.neighbour_addresses(own, peer)
        }
        for node, pairs in ends.items()
    }


def _neighbours_held(entries: Entries) -> Rows:
    return {
        node: {(each["dst"], each["lladdr"], each["dev"]) for each in held if "dst" in each}
        for node, held in entries.items()
    }


def _answers(expected: Expected, node: str) -> bool:
    return expected.plan.answers and node in expected.plan.switch_by_name


def _addresses(expected: Expected, entries: Entries) -> tuple[Rows, Rows]:
    """Of the switches that answer: wanted, and held."""
    switches = [node for node in entries if _answers(expected, node)]
    wanted: Rows = {node: {(switch_address(expected.plan, node),)} for node in switches}
    return wanted, {node: set(_address_rows(entries[node])) for node in switches}


def _address_rows(entries: Iterable[dict[str, Any]]) -> Iterator[PortRow]:
    for device in entries:
        # iproute2 6.1 leaves an empty object in place of each address that a filter has taken out.
        yield from ((address["local"],) for address in device.get("addr_info", ()) if address)


def _queues_held(expected: Expected, pids: dict[str, int]) -> dict[str, set[PortRow]]:
    answers = query(["tc", "-d", "-batch", "-"], pids, {node: question(expected, node) for node in pids})
    return {node: set(rows_held(expected, node, text)) for node, text in answers.items()}


def _settings_wanted(expected: Expected, nodes: Iterable[str]) -> Rows:
    return {node: set(_setting_rows(switch_settings(expected.plan, node, expected.options))) for node in nodes}


def _setting_rows(settings: Mapping[str, int]) -> Iterator[PortRow]:
    return ((file.removeprefix("/proc/sys/"), str(value)) for file, value in settings.items())


def _settings_held(expected: Expected, pids: dict[str, int]) -> Rows:
    held: Rows = {node: set() for node in pids}
    switches = {node: pid for node, pid in pids.items() if switch_settings(expected.plan, node, expected.options)}
    if switches:
        files = list(switch_settings(expected.plan, next(iter(switches)), expected.options))
        for node, text in query(["cat", *files], switches).items():
            held[node] = set(_setting_rows(dict(zip(files, map(int, text.split()), strict=True))))
    return held
