"""One packet as named values, parsed by `hosts/mrc/wire.py` or `hosts/rc/wire.py`: what `mrc-testbed decode` shows.

PSNs and byte counts are plain numbers, EVs the text `plane/uplink`, codes their names, or hex where unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.wireview import roce
from mrc_testbed.testbed.wireview.frame import MRC_PORT, Foreign, Frame
from mrc_testbed.testbed.wireview.names import (
    MARKS,
    NACK_REASONS,
    OPCODES,
    OPERATIONS,
    RC_OPCODES,
    SYNDROMES,
    code_name,
    ev_name,
)
from mrc_testbed.testbed.wireview.runs import runs

FieldValues = dict[str, Any]
_MARKED = {bth.Refusal.BAD_ICRC: ("wrong ICRC",)}
"""What hinders nobody from reading the packet, and its marks."""


@dataclass(slots=True)
class Packet:
    """A packet of MRC, or of the RoCE-like transport. `ev`: of its path (RoCE-like: its UDP source port); `values`: its
    header values, by packet type; `marks`: what is odd about it, in words."""

    frame: Frame
    opcode: int
    ev: str
    values: FieldValues
    marks: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Name of the opcode."""
        return OPCODES.get(self.opcode) or RC_OPCODES[self.opcode]

    @property
    def is_data(self) -> bool:
        """A WRITE of any kind."""
        if self.opcode in RC_OPCODES:
            return roce.is_data(self.opcode)
        return self.opcode <= wire.LAST_DATA_OPCODE


def parse(frame: Frame) -> Packet | bth.Refusal | Foreign:
    """The packet, or why `hosts/mrc/wire.py` refuses it. A trimmed or cut data packet needs its headers only; a wrong
    ICRC, or another UDP port, is a mark."""
    found = _parsed(frame)
    if frame.port == MRC_PORT:
        return found
    return (
        replace(found, marks=(*found.marks, f"UDP port {frame.port}"))
        if isinstance(found, Packet)
        else Foreign.OTHER_PORT
    )


def _parsed(frame: Frame) -> Packet | bth.Refusal | Foreign:
    view = frame.payload
    if view and view[0] in RC_OPCODES:
        return _parse_roce(frame)
    if frame.cut and not _has_data_headers(view):
        return Foreign.SHORT
    incomplete = frame.trimmed or frame.cut or _was_corrected(frame)
    refusal = wire.check_trimmed(view) if incomplete else wire.check(view, _has_icrc(view))
    if refusal and refusal not in _MARKED:
        return refusal
    opcode = view[0]
    ev = ev_name(frame.flow_label << 16 | frame.source_port)
    return Packet(frame, opcode, ev, _PARSERS.get(opcode, _data)(view, frame), _marks(refusal))


def _parse_roce(frame: Frame) -> Packet | bth.Refusal:
    view = frame.payload
    refusal = roce.refusal_of(view, frame.cut, _has_icrc(view))
    if refusal and refusal not in _MARKED:
        return refusal
    return Packet(frame, view[0], f":{frame.source_port}", roce.values_of(view, frame.cut), _marks(refusal))


def _marks(refusal: bth.Refusal | None) -> tuple[str, ...]:
    return _MARKED[refusal] if refusal else ()


def _has_data_headers(view: memoryview) -> bool:
    if len(view) < bth.BTH_BYTES or view[0] > wire.LAST_DATA_OPCODE:
        return False
    return len(view) >= wire.data_header_bytes(view)


def _was_corrected(frame: Frame) -> bool:
    """Did a switch trim a data packet and correct the lengths? How much is gone nobody can tell then."""
    view = frame.payload
    is_data = len(view) >= bth.BTH_BYTES and view[0] <= wire.LAST_DATA_OPCODE
    return frame.says_trimmed and is_data and not frame.trimmed


def _has_icrc(view: memoryview) -> bool:
    """A trailer of 0 means that the sender's ICRC is off."""
    return any(view[-bth.ICRC_BYTES :])


def _data(view: memoryview, frame: Frame) -> FieldValues:
    corrected = _was_corrected(frame)
    if len(view) < wire.data_header_bytes(view):
        return _without_reth(view)
    opcode, pad, _, qpn, bits_psn, rqmsn, msn, stamp, _, address, rkey, length = wire.parse_data(view)
    start, end = wire.payload_bounds(len(view) + frame.trimmed + frame.cut, opcode, pad, bits_psn)
    values: FieldValues = {
        "qp": qpn & bth.QPN_MASK,
        "psn": bits_psn & bth.PSN_MASK,
        "message": msn,
        "immediate_message": rqmsn,
        "rtx": bool(bits_psn & wire.RETRANSMISSION),
        "ack_request": bool(bits_psn & bth.ACK_REQUEST),
        "address": address,
        "rkey": rkey,
        "write_bytes": length,
        "payload_bytes": max(len(view) - start, 0) if corrected else end - start,
        "trimmed": corrected or bool(frame.trimmed),
    }
    if bits_psn & wire.TIMESTAMP:
        values["timestamp"] = stamp
    if opcode in bth.HAS_IMMEDIATE and len(view) >= wire.data_header_bytes(view) + bth.IMMEDIATE_BYTES:
        values["immediate"] = wire.parse_immediate(view)
    return values


def _without_reth(view: memoryview) -> FieldValues:
    """Of a data packet that a switch cut within its headers: what a NACK is made of."""
    bits_psn, stamp = wire.read_trimmed(view)
    values: FieldValues = {
        "qp": wire.destination_qpn(view),
        "psn": bits_psn & bth.PSN_MASK,
        "message": view[14] << 8 | view[15],
        "immediate_message": view[12] << 8 | view[13],
        "rtx": bool(bits_psn & wire.RETRANSMISSION),
        "ack_request": bool(bits_psn & bth.ACK_REQUEST),
        "payload_bytes": 0,
        "trimmed": True,
    }
    return values | ({"timestamp": stamp} if bits_psn & wire.TIMESTAMP else {})


def _sack(view: memoryview, _: Frame) -> FieldValues:
    sack = wire.parse_sack(view)
    cack = sack.ports_cack & bth.PSN_MASK
    values: FieldValues = {
        "qp": sack.qpn & bth.QPN_MASK,
        "cack": cack,
        "of_ev": ev_name(sack.entropy),
        "mark": code_name(MARKS, sack.flags >> 5 & 3),
        "rtx": bool(sack.bits_psn & wire.RETRANSMISSION),
        "sack_offset": sack.sack_offset,
        "bitmap": f"{sack.bitmap:#018x}",
        "received": _psn_runs(cack + sack.sack_offset, sack.bitmap),
        "ports_down": runs_of_ports(sack.ports_cack >> 24),
        "mpr": sack.mpr,
        "timestamp": sack.timestamp,
        "out_of_order": sack.out_of_order & 0x7FFF,
        "penalty": sack.penalty_received >> 24 & 0x7F,
        "restore_cwnd": bool(sack.penalty_received >> 31),
        "received_bytes": (sack.penalty_received & 0xFFFFFF) << 8,
    }
    if sack.flags & wire.SACK_PROBE_ANSWER:
        values["probe_id"] = sack.offset_or_probe
    else:
        values["trigger"] = (cack + _signed(sack.offset_or_probe)) & bth.PSN_MASK
    return values


def _nack(view: memoryview, _: Frame) -> FieldValues:
    qpn, bits_psn, reason, entropy, stamp = wire.parse_nack(view)
    return {
        "qp": qpn & bth.QPN_MASK,
        "psn": bits_psn & bth.PSN_MASK,
        "reason": code_name(NACK_REASONS, reason),
        "of_ev": ev_name(entropy),
        "rtx": bool(bits_psn & wire.RETRANSMISSION),
        "timestamp": stamp,
    }


def _probe(view: memoryview, _: Frame) -> FieldValues:
    qpn, probe_id, stamp = wire.parse_probe(view)
    return {"qp": qpn & bth.QPN_MASK, "probe_id": probe_id, "timestamp": stamp}


def _request(view: memoryview, _: Frame) -> FieldValues:
    operation, request_id, port_mask, stamp = wire.parse_request(view)[:4]
    return {
        "qp": wire.destination_qpn(view),
        "op": code_name(OPERATIONS, operation),
        "request_id": request_id,
        "ports_up": runs_of_ports(port_mask),
        "timestamp": stamp,
    }


def _response(view: memoryview, _: Frame) -> FieldValues:
    operation, request_id, entropy, port_mask, mark, stamp = wire.parse_response(view)
    return {
        "qp": wire.destination_qpn(view),
        "op": code_name(OPERATIONS, operation),
        "request_id": request_id,
        "of_ev": ev_name(entropy),
        "ports_up": runs_of_ports(port_mask),
        "mark": code_name(MARKS, mark),
        "timestamp": stamp,
    }


def _ack(view: memoryview, _: Frame) -> FieldValues:
    qpn, psn, syndrome, msn = wire.parse_ack(view)
    return {"qp": qpn, "psn": psn, "syndrome": code_name(SYNDROMES, syndrome), "message": msn}


def runs_of_ports(mask: int) -> list[tuple[int, int]]:
    """Ports of a mask as (first, last); ports count from 1 (API)."""
    return [(first + 1, last + 1) for first, last in runs(mask)]


def _psn_runs(first: int, bitmap: int) -> list[tuple[int, int]]:
    return [(first + low & bth.PSN_MASK, first + high & bth.PSN_MASK) for low, high in runs(bitmap)]


def _signed(value: int) -> int:
    return value - 0x10000 if value & 0x8000 else value


_PARSERS: dict[int, Callable[[memoryview, Frame], FieldValues]] = {
    wire.SACK: _sack,
    wire.NACK: _nack,
    wire.PROBE_REQUEST: _probe,
    wire.ENDPOINT_REQUEST: _request,
    wire.ENDPOINT_RESPONSE: _response,
    wire.TRANSPORT_ACK: _ack,
}
