"""Counts of every port and host, collected while the run is idle, for the conservation checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from mrc_testbed.testbed.switching.interface import FabricLike

PER_NODE = ("icmp_in", "icmp_out")
"""Fields of IpCounts that are one number a node."""
_SENDING = "out_"
"""Egress counts of the port program, which NICs do not run."""
_SELDOM = "out_trimmed_dropped"
"""Only where trimmed packets wait with data: left out where it is 0."""


def port_books(fabric: FabricLike, queues: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, Any]]:
    """Per node and port: the port program's counts and the kernel's interface and queue counts."""
    books: dict[str, dict[str, Any]] = {node: {} for node in fabric.plan.node_names}
    frames = {(node, port): (rx, tx) for node, port, _, rx, _, _, tx, _ in fabric.sample_ports()}
    most_queued = fabric.watermarks()
    for (node, port), counts in fabric.port_counts().items():
        switch = node in fabric.plan.switch_by_name
        kept = {
            name: count
            for name, count in asdict(counts).items()
            if (switch or not name.startswith(_SENDING)) and (count or name != _SELDOM)
        }
        rx_packets, tx_packets = frames[node, port]
        queue = queues[node][port]
        books[node][port] = {
            **kept,
            "rx_packets": rx_packets,
            "tx_packets": tx_packets,
            "queue_drops_high": queue["control_drops"],
            "queue_drops_data": queue["drops"] - queue["control_drops"],
            **({"most_queued_bytes": most_queued[node, port]} if switch else {}),
        }
    return books


def sid_books(fabric: FabricLike) -> dict[str, dict[str, dict[str, int]]]:
    """Per node and uSID the packets and bytes that it has taken."""
    return {node: {sid: counts._asdict() for sid, counts in sids.items()} for node, sids in fabric.sid_counts().items()}


def frame_books(fabric: FabricLike, asked: Mapping[str, int]) -> dict[str, Any]:
    """What the kernel counts by itself, for fabrics without the port program: `frames` per node and port, ICMPv6 per
    node. `asked`: ICMPv6 packets of hosts that it does not count."""
    nodes = fabric.ip_counts()
    frames: dict[str, dict[str, Any]] = {node: {} for node in fabric.plan.node_names}
    for node, port, _, rx, *_ in fabric.sample_ports():
        frames[node][port] = {"rx_packets": rx, "multicast": nodes[node].multicast[port]}
    per_node = {name: {node: getattr(counts, name) for node, counts in nodes.items()} for name in PER_NODE}
    for host, packets in asked.items():
        per_node["icmp_out"][host] += packets
    return {"frames": frames, **per_node}
