"""MRC over switches that hash: its EVs are UDP source ports, and no SRv6 names a path.

The endpoint is MRC's own, with all it does: it sprays, retires EVs, probes them and takes them back; switches trim and
mark. What is not there is the map from an EV to a path. Two EVs may share an uplink while another has none, and a
sender leaves a dead link only with those EVs that happen to be hashed to it.
"""

from __future__ import annotations

from dataclasses import replace

from mrc_testbed.testbed.transports.base import Chooser, Sockets
from mrc_testbed.testbed.transports.mrc import MRC
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import HEADER_BYTES

_OUTER_HEADER_BYTES = 40
"""Of the second IPv6 header, which carries the path in SRv6."""

MRC_HASHED = replace(
    MRC,
    word="mrc-hashed",
    protocol="mrc-hashed",
    routings=(Routing.ECMP_STATIC,),
    chooser=Chooser.ENTROPY,
    cost=replace(MRC.cost, of="mrc-hashed"),
    full_packet=lambda payload_bytes, _settings: (payload_bytes, HEADER_BYTES - _OUTER_HEADER_BYTES),
    called=lambda _settings: "MRC, hashed",
    answer_bytes=MRC.answer_bytes - _OUTER_HEADER_BYTES,
    sockets=Sockets.EV,
)
