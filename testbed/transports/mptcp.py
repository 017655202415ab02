"""Kernel MPTCP: TCP connections with a subflow in each plane."""

from __future__ import annotations

from dataclasses import replace

from mrc_testbed.testbed.transports import tcp
from mrc_testbed.testbed.transports.base import FabricLayout
from mrc_testbed.topos.cost import Cost

_DSS_BYTES = 28
"""Options of MPTCP in a packet with data: where it belongs in the whole stream, and how far that was received."""
_PACKET = (tcp.PAYLOAD_BYTES - _DSS_BYTES, tcp.HEADER_BYTES + _DSS_BYTES)

MPTCP = replace(
    tcp.TCP,
    word="mptcp",
    protocol="mptcp",
    layout=FabricLayout.AS_WRITTEN,
    cost=Cost("mptcp", 68e-6, 140e-6, 17_000.0),
    full_packet=lambda _payload_bytes, _settings: _PACKET,
    called=lambda settings: f"MPTCP, {settings.congestion_control}",
    subflows=True,
    needs=lambda _settings: tcp.needs_of("mptcp"),
    settings_words=lambda settings, time: f"{tcp.settings_words(settings, time)} with a subflow a plane",
)
