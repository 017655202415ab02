"""MRC: every packet sprayed over EVs that name its path by SRv6 (docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mrc_testbed.testbed.switching.classes import MRC_DATA
from mrc_testbed.testbed.transports.base import Chooser, FabricLayout, Sockets, Transport
from mrc_testbed.topos.cost import STANDARD_COST
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import HEADER_BYTES

LOST_PREFIX = "lost_"
"""Of the counters that say by what a packet was taken for lost."""
COUNTED: Mapping[str, str] = {
    "Data packets taken for lost, by sender": f"{LOST_PREFIX}*",
    "Retransmissions, by sender": "retransmitted",
    "Data packets out of order, by receiver": "reordered",
    "Trimmed packets received, by receiver": "trimmed_received",
    "Answers that told of ECN marks, by sender": "sacks_with_ce",
    "Packets that endpoints refused, by receiver": "refused_* unknown_*",
}


def request(_settings: Any, endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of `endpoint`, all of them its own."""
    return dict(endpoint)


MRC = Transport(
    "mrc",
    protocol="mrc",
    group="endpoint",
    routings=(Routing.SRV6, Routing.BGP),
    layout=FabricLayout.AS_WRITTEN,
    chooser=Chooser.SENDER,
    cost=STANDARD_COST,
    full_packet=lambda payload_bytes, _settings: (payload_bytes, HEADER_BYTES),
    called=lambda _settings: "MRC",
    request=request,
    counted=COUNTED,
    has_paths=True,
    can_be_trimmed=True,
    data=MRC_DATA,
    any_order=lambda _settings: True,
    answer_bytes=14 + 40 + 40 + 8 + 52,  # a SACK behind two IPv6 headers
    sockets=Sockets.HOST,
)
