"""Interface counters, cheap enough for frequent sampling (0.4 ms for 48 nodes); queue and socket counters for the
end."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mrc_testbed.testbed.fabric.batch import query
from mrc_testbed.testbed.fabric.commands import CLASS_CONTROL
from mrc_testbed.testbed.fabric.sandbox import open_of
from mrc_testbed.testbed.switching.port_counts import IpCounts, SidCounts
from mrc_testbed.topos import usid
from mrc_testbed.topos.overlay import DEVICE, MANAGEMENT
from mrc_testbed.topos.routes import SID_DEVICE

_SKIPPED = ("lo", "sid0", DEVICE, MANAGEMENT)
_ICMP = ("Echos", "EchoReplies", "DestUnreachs", "PktTooBigs", "TimeExcds", "ParmProblems")
"""What kernels and `ping` say to a single node; the rest of ICMPv6 is multicast."""


class PortCounters:
    """One open descriptor per node on /proc/PID/net/dev; opening it each time costs more than reading it."""

    def __init__(self, pids: dict[str, int]) -> None:
        self._files = {node: open_of(pid, node, "net/dev") for node, pid in pids.items()}

    def read(self) -> Iterator[tuple[str, str, int, int, int, int, int, int]]:
        """(node, port, rx bytes, rx packets, rx drops, tx bytes, tx packets, tx drops) for every port."""
        for node, descriptor in self._files.items():
            for line in _whole(descriptor).decode("ascii").splitlines()[2:]:
                name, _, numbers = line.partition(":")
                port = name.strip()
                if port not in _SKIPPED:
                    field = numbers.split()
                    rx, tx = field[0:4], field[8:12]
                    yield (node, port, int(rx[0]), int(rx[1]), int(rx[3]), int(tx[0]), int(tx[1]), int(tx[3]))

    def close(self) -> None:
        """Close every descriptor."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()


def _whole(descriptor: int) -> bytes:
    """Reads a whole /proc file; one read returns at most a page, some 34 ports."""
    text = b""
    while part := os.pread(descriptor, 1 << 16, len(text)):
        text += part
    return text


def queue_counters(pids: dict[str, int]) -> dict[str, dict[str, dict[str, int]]]:
    """Packets sent and dropped by every shaper since its creation: `{node: {port: {sent_packets, drops,
    control_drops}}}`.

    `control_drops`, a part of `drops`, are control packets and trimmed headers.
    """
    answers = query(["tc", "-s", "-j", "qdisc", "show"], pids)
    return {node: dict(_shapers(json.loads(text))) for node, text in answers.items()}


def _shapers(qdiscs: list[dict[str, object]]) -> Iterator[tuple[str, dict[str, int]]]:
    control = {qdisc["dev"]: int(str(qdisc["drops"])) for qdisc in qdiscs if qdisc.get("parent") == CLASS_CONTROL}
    for qdisc in qdiscs:
        if qdisc.get("kind") == "htb":
            device, packets, drops = str(qdisc["dev"]), int(str(qdisc["packets"])), int(str(qdisc["drops"]))
            yield device, {"sent_packets": packets, "drops": drops, "control_drops": control.get(device, 0)}


def ip_counters(pids: dict[str, int], ports: Mapping[str, Collection[str]]) -> dict[str, IpCounts]:
    """What IPv6 of every node counted since its creation, and at these ports of it."""
    return {node: _ip_counts(pid, node, ports[node]) for node, pid in pids.items()}


def _ip_counts(pid: int, node: str, ports: Collection[str]) -> IpCounts:
    rows = _table(open_of(pid, node, "net/snmp6"))
    icmp_in, icmp_out = (sum(rows[f"Icmp6{way}{name}"] for name in _ICMP) for way in ("In", "Out"))
    header_errors = rows["Ip6InHdrErrors"]
    # A port whose MTU is below IPv6's least has no IPv6 and no such file.
    held = os.listdir(f"/proc/{pid}/net/dev_snmp6")
    if DEVICE in held:  # what programs say to each other came through no port
        theirs = _table(open_of(pid, node, f"net/dev_snmp6/{DEVICE}"))
        icmp_in, icmp_out = (
            total - sum(theirs[f"Icmp6{way}{name}"] for name in _ICMP)
            for way, total in (("In", icmp_in), ("Out", icmp_out))
        )
        header_errors -= theirs["Ip6InHdrErrors"]
    multicast = {
        port: _table(open_of(pid, node, f"net/dev_snmp6/{port}"))["Ip6OutMcastPkts"] if port in held else 0
        for port in ports
    }
    # A node without an address sends errors from ::1, which the next one refuses.
    return IpCounts(icmp_in + header_errors, icmp_out, multicast)


def sid_counts(pids: Mapping[str, int]) -> dict[str, dict[str, SidCounts]]:
    """What the kernel did with each uSID of every node since its route was written."""
    answers = query(["ip", "-s", "-6", "-j", "route", "show", "root", usid.BLOCK_PREFIX, "dev", SID_DEVICE], pids)
    return {node: dict(_sids(json.loads(text or "[]"))) for node, text in answers.items()}


def _sids(routes: list[dict[str, Any]]) -> Iterator[tuple[str, SidCounts]]:
    for entry in routes:
        # iproute2 6.1 has the counts beside the route's prefix, newer ones in `encap`.
        nested = entry.get("encap")
        counts = (nested if isinstance(nested, dict) else entry).get("stats64")
        if counts is not None:
            yield entry["dst"], SidCounts(counts["packets"], counts["bytes"])


def without_sid(pids: Mapping[str, int]) -> dict[str, int]:
    """By node, packets for whose destination its kernel had neither a uSID nor a route."""
    return {node: _table(open_of(pid, node, "net/snmp6"))["Ip6InNoRoutes"] for node, pid in pids.items()}


def no_routes(pids: Mapping[str, int]) -> dict[str, int]:
    """By node, packets for which its kernel had no route, or whose hop limit ended there, as in a loop that lasts while
    routes change; those nodes that had any."""
    tables = {node: _table(open_of(pid, node, "net/snmp6")) for node, pid in pids.items()}
    counts = {node: table["Ip6InNoRoutes"] + table["Ip6InHdrErrors"] for node, table in tables.items()}
    return {node: count for node, count in counts.items() if count}


def _table(descriptor: int) -> dict[str, int]:
    with open(descriptor, encoding="ascii") as table:
        return {name: int(count) for name, count in (line.split() for line in table)}


def udp_losses(pids: dict[str, int]) -> dict[str, tuple[int, int]]:
    """By node: datagrams dropped because a receive buffer was full, and all datagrams without a receiving socket."""
    losses = {}
    for node, pid in pids.items():
        rows = _table(open_of(pid, node, "net/snmp6"))
        losses[node] = rows["Udp6RcvbufErrors"], rows["Udp6InErrors"] + rows["Udp6NoPorts"]
    return losses
