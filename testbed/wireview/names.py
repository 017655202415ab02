"""Names of the numbers in MRC headers and of EVs, addresses and uSIDs; all caches, since files hold many packets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address

from mrc_testbed.topos import usid
from mrc_testbed.topos.graph import MAX_TIERS
from mrc_testbed.topos.names import downlink_port, host_name, switch_name

OPCODES = {
    0xC6: "WRITE_FIRST",
    0xC7: "WRITE_MIDDLE",
    0xC8: "WRITE_LAST",
    0xC9: "WRITE_LAST_IMM",
    0xCA: "WRITE_ONLY",
    0xCB: "WRITE_ONLY_IMM",
    0xD1: "TRANSPORT_ACK",
    0xD8: "ENDPOINT_REQUEST",
    0xD9: "ENDPOINT_RESPONSE",
    0xDC: "SACK",
    0xDD: "NACK",
    0xDE: "PROBE",
}
"""BTH byte 0 (6.2)."""
RC_OPCODES = {
    0x06: "RC_WRITE_FIRST",
    0x07: "RC_WRITE_MIDDLE",
    0x08: "RC_WRITE_LAST",
    0x09: "RC_WRITE_LAST_IMM",
    0x0A: "RC_WRITE_ONLY",
    0x0B: "RC_WRITE_ONLY_IMM",
    0x0C: "RC_READ_REQUEST",
    0x10: "RC_READ_RESPONSE_ONLY",
    0x11: "RC_ACK",
    0x25: "UC_SEND_ONLY_IMM",
    0x81: "CNP",
    0xE0: "PLANE_PROBE",
    0xE1: "PLANE_ANSWER",
}
"""The same of the RoCE-like transport (InfiniBand 1.4, 9.2, and Annex A17)."""
NACK_REASONS = {
    0x01: "TRIMMED",
    0x02: "TRIMMED_LASTHOP",
    0x06: "NO_BITMAP",
    0x07: "NO_PKT_BUFFER",
    0x0A: "NO_RESOURCE",
    0x0B: "PSN_OOR_WINDOW",
    0x19: "UNEXP_EVENT",
}
"""NETH byte 2 (3.9)."""
MARKS = {0: "NONE", 1: "SKIP_ONCE", 2: "ALWAYS_SKIP"}
"""The m field of a SETH (6.5)."""
OPERATIONS = {0: "PORT_STATUS", 1: "EV_PROBE"}
"""The op field of ERTH and EETH (6.8)."""
SYNDROMES = {0x1F: "ACK", 0x61: "NAK_INVALID_REQUEST", 0x62: "NAK_REMOTE_ACCESS", 0x63: "NAK_REMOTE_OPERATION"}
"""AETH byte 0 (6.9)."""
RC_SYNDROMES = SYNDROMES | {0x60: "NAK_SEQUENCE"}
CLASSES = {0: "no-trim", 4: "data", 8: "retx", 12: "trimmed", 16: "trimmed-lasthop", 26: "roce", 46: "control"}
"""DSCP (5.3)."""
_ECN = ("", "", "", "+CE")


def code_name(names: Mapping[int, str], code: int) -> str:
    """Its name, or the number in hex when it has none."""
    return names.get(code) or f"{code:#04x}"


@lru_cache(maxsize=256)
def class_name(traffic_class: int) -> str:
    """What the DSCP means, with `+CE` when a switch marked congestion."""
    dscp = traffic_class >> 2
    return CLASSES.get(dscp, f"dscp-{dscp}") + _ECN[traffic_class & 3]


@lru_cache(maxsize=4096)
def ev_name(value: int) -> str:
    """An EV as `plane/uplink`; in hex when its version is not ours."""
    try:
        path, _ = usid.split_ev(value)
    except ValueError:
        return f"{value:#010x}"
    return f"{path.plane}/{path.uplink}"


@lru_cache(maxsize=4096)
def address_name(packed: bytes) -> str:
    """The host whose address it is, or the address as text."""
    address = str(IPv6Address(packed))
    host = int.from_bytes(packed[6:8], "big")
    if address == usid.plain_address(host):
        return host_name(host)
    try:
        return host_name(usid.split_inner(address)[0])
    except ValueError:
        return address


@lru_cache(maxsize=4096)
def still_to_go(packed: bytes) -> tuple[str, ...]:
    """The uSIDs left in an outer destination, next one first: switches, then the last T0's port to the host.

    Empty without an outer header, or for another locator block.
    """
    try:
        uids = usid.split_container(str(IPv6Address(packed)))
    except ValueError:
        return ()
    return tuple(_usid_name(value) for value in uids)


def _usid_name(value: int) -> str:
    tier, plane, index = usid.split_usid(value)
    if tier == usid.TIER_HOST:
        return downlink_port(index)
    if tier - usid.TIER_T0 in range(MAX_TIERS):
        return switch_name(plane, tier - usid.TIER_T0, index)
    return f"{value:04x}"
