"""Counts of every port and host, collected while the run is idle, for the conservation check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from testbed.fabric.interface import FabricLike

PLAIN = "plain shapers at the switch ports do not count by class"
_SENDING = "out_"
"""Egress counts of the port program, which NICs do not run."""


def port_books(fabric: FabricLike, queues: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, Any]]:
    """Per node and port: the port program's counts and the kernel's interface and queue counts."""
    books: dict[str, dict[str, Any]] = {node: {} for node in fabric.plan.node_names}
    frames = {(node, port): (rx, tx) for node, port, _, rx, _, _, tx, _ in fabric.sample_ports()}
    for (node, port), counts in fabric.port_counts().items():
        switch = node in fabric.plan.switch_by_name
        kept = {name: count for name, count in asdict(counts).items() if switch or not name.startswith(_SENDING)}
        rx_packets, tx_packets = frames[node, port]
        queue = queues[node][port]
        books[node][port] = {
            **kept,
            "rx_packets": rx_packets,
            "tx_packets": tx_packets,
            "queue_drops_high": queue["control_drops"],
            "queue_drops_data": queue["drops"] - queue["control_drops"],
        }
    return books
