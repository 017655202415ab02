"""What a peer says of its QP, checked before it is believed.

With an `mtu` of 0 a message has no end, with an `mpr` or `max_wimm` of 0 nothing may ever be sent, and the rest would
not fit its field on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping

from mrc_testbed.hosts.common.attributes import check_integers
from mrc_testbed.hosts.common.errors import PeerAttributeError

_RANGES = {
    "qpn": (0, (1 << 24) - 1),
    "psn": (0, (1 << 24) - 1),
    "mtu": (1, (1 << 16) - 1),
    "mpr": (1, (1 << 8) - 1),
    "max_wimm": (1, (1 << 15) - 1),
    "region_address": (0, (1 << 64) - 1),
    "region_bytes": (0, (1 << 64) - 1),
    "rkey": (0, (1 << 32) - 1),
    "planes": (0, 32),
    "port_mask": (0, (1 << 32) - 1),
    "timeout": (0, 24),
    "linear": (0, 255),
    "exp": (0, 255),
    "tsr_unit_ns": (1, (1 << 63) - 1),
}
"""Least and most. `mpr` is 8 bits in the API; RQMSNs are compared in half of their 16 bits."""
_FLAGS = ("dynamic_mpr", "trim_nack", "svc_time")


def check_peer(values: Mapping[str, object]) -> None:
    """`values`: by name of the attribute. Raises `PeerAttributeError` for the first that cannot be."""
    check_integers(values, _RANGES)
    for name in _FLAGS:
        value = values.get(name, False)
        if type(value) is not bool:
            raise PeerAttributeError(name, value, "true or false")
