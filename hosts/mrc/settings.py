"""Fields of `configure` that a variant of the protocol would change, read into settings of the endpoint.

Each has the name that it has in `EndpointConfig`. What is left out keeps the value that it has there.
"""

from __future__ import annotations

from typing import Any

from mrc_testbed.hosts.control import Request

NUMBERS = {
    "ev_active": 1,
    "ev_min_active": 1,
    "payload_bytes": 1,
    "mpr": 1,
    "dynamic_mpr": 0,
    "forwardings": 1,
    "max_wimm": 1,
    "timeout": 0,
    "linear_tries": 0,
    "exponential_tries": 0,
    "reorder_ns": 0,
    "reorder_packets": 0,
    "probe_interval_ns": 0,
    "probe_successes": 1,
    "bad_after_losses": 1,
    "dscp_data": 0,
    "dscp_retransmission": 0,
    "dscp_no_trim": 0,
    "dscp_control": 0,
    "dscp_trimmed": 0,
    "dscp_trimmed_last_hop": 0,
}
"""Whole numbers, and the least that each can be."""
FLAGS = ("icrc", "trim_nack", "reinfer", "switches_trim")
NAMES = ("congestion_control", "ev_selection", "probe_class", "busy_port", "allow_to")
"""Of implementations, which the endpoint knows, and words."""
OF_ALL_PACKETS = ("payload_bytes", "icrc")
"""Those that any transport has whose packets are made here."""


def read_settings(request: Request) -> dict[str, Any]:
    """Those that the request has. Raises CommandError for one of the wrong kind."""
    found: dict[str, Any] = {key: request.number(key, least) for key, least in NUMBERS.items() if request.has(key)}
    found |= {key: request.flag(key) for key in FLAGS if request.has(key)}
    return found | {key: request.text(key) for key in NAMES if request.has(key)}
