"""A packet of the RoCE-like transport as named values, parsed by `hosts/rc/wire.py`.

Nothing in it says which recovery its hosts use, so a RETH that selective recovery puts into the middle of a message is
counted as payload here, as in every other reader of RoCE. It comes before the immediate, which is left out where a
packet may have one.
"""

from __future__ import annotations

from typing import Any

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire as shared
from mrc_testbed.hosts.rc import wire
from mrc_testbed.testbed.wireview.names import RC_SYNDROMES, code_name

OVERHEAD = wire.GO_BACK_N_OVERHEAD
_LONGEST_WRITE_BYTES = 512 << 20
"""Of a message, as scenarios limit them."""


def is_data(opcode: int) -> bool:
    """A WRITE of any kind."""
    return bool(OVERHEAD[opcode])


def refusal_of(view: memoryview, cut: int, with_icrc: bool) -> bth.Refusal | None:
    """Why it cannot be parsed. Of data that a capture `cut` only the headers are needed."""
    if cut and is_data(view[0]) and len(view) >= OVERHEAD[view[0]] - bth.ICRC_BYTES:
        return None
    return wire.check(view, with_icrc, OVERHEAD)


def values_of(view: memoryview, cut: int) -> dict[str, Any]:
    """Header values of a packet that is not refused."""
    opcode = view[0]
    if opcode in (wire.CNP, wire.PLANE_PROBE, wire.PLANE_ANSWER):
        return {"qp": shared.destination_qpn(view)}
    if opcode == wire.READ_REQUEST:
        address, rkey, length = wire.parse_reth(view)
        read = {"address": address, "rkey": rkey, "read_bytes": length}
        return {"qp": shared.destination_qpn(view), "psn": wire.bits_and_psn(view) & bth.PSN_MASK, **read}
    if opcode == wire.SEND_IMM:
        psn, immediate = wire.parse_message(view)
        return {"qp": shared.destination_qpn(view), "psn": psn, "immediate": immediate}
    if opcode in (wire.ACKNOWLEDGE, wire.READ_RESPONSE):
        qpn, psn, syndrome, msn = wire.parse_ack(view)
        return {"qp": qpn, "psn": psn, "syndrome": code_name(RC_SYNDROMES, syndrome), "message": msn}
    bits = wire.bits_and_psn(view)
    start, end = wire.payload_bounds(view, OVERHEAD)
    values = {
        "qp": shared.destination_qpn(view),
        "psn": bits & bth.PSN_MASK,
        "ack_request": bool(bits & bth.ACK_REQUEST),
        "payload_bytes": end - start + cut,
    }
    if opcode in wire.BEGINS_MESSAGE:
        values["address"], values["rkey"], values["write_bytes"] = wire.parse_reth(view)
    if opcode in wire.HAS_IMMEDIATE and not _may_have_reth(view, values["payload_bytes"]):
        values["immediate"] = wire.parse_immediate(view, OVERHEAD)
    return values


def _may_have_reth(view: memoryview, payload_bytes: int) -> bool:
    """Is there, in a packet that go-back-N gives no RETH, what may be one: of a message longer than this packet?"""
    left = payload_bytes - wire.RETH_BYTES
    if view[0] in wire.BEGINS_MESSAGE or left < 1 or len(view) < wire.SELECTIVE_OVERHEAD[view[0]] - bth.ICRC_BYTES:
        return False
    return left < wire.parse_reth(view)[2] <= _LONGEST_WRITE_BYTES
