"""The controller API for Python, by ctypes: layouts of API 1.0.1, written apart from the C header."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    get_errno,
)
from pathlib import Path
from typing import Any

INIT, OFFLINE, ONLINE = range(3)
STATE, CUR_STATE = 1, 2
FMT_MODE, FMT_OP = 4, 8
EV_MODE, EV_FMT_ID, EV_COUNT, EV_MIN_ACTIVE, EV_EVENT_MASK, EV_OP, EV_FIELDS_OP = (4 << bit for bit in range(7))
MODIFY_EV_STATE, QUERY_EV_STATE, QUERY_EV_ARRAY = 1, 2, 3
STEV = 1
EV_BYTES, CAP_NET_ADMIN = 32, 12


class Ev(Structure):
    """33 bytes."""

    _fields_ = [("val", c_uint8 * EV_BYTES), ("port", c_uint8)]

    @classmethod
    def of(cls, path: int, udp_port: int = 0, port: int = 0) -> Ev:
        """Plane and uplink as records have them."""
        ev = cls(port=port)
        ctypes.memmove(ev.val, (path << 16 | udp_port).to_bytes(4, "little"), 4)
        return ev

    @property
    def number(self) -> int:
        """The 32 bits."""
        assert not any(self.val[4:])
        return int.from_bytes(bytes(self.val[:4]), "little")


class DeviceAttr(Structure):
    _fields_ = [
        *((name, c_uint32) for name in ("protocol", "max_fmt", "max_profiles", "max_count", "free_count")),
        *((name, c_uint32) for name in ("max_count_profile", "align", "width", "fmt_modes", "ev_modes", "op_entries")),
        ("gap", c_uint32),
        ("max_cc", c_uint32),
        ("algorithms", POINTER(c_char_p)),
        ("port_mask", c_uint32),
        ("options", c_uint32),
    ]


class PortAttr(Structure):
    _fields_ = [("state", c_int)]


class FmtAttr(Structure):
    _fields_ = [
        ("state", c_int),
        ("cur_state", c_int),
        ("mode", c_int),
        ("gap", c_int),
        ("op", c_int),
        ("fields", c_void_p),
        ("count", c_int),
        ("gap_2", c_int),
        ("vendor", c_uint8 * 128),
    ]


class OpEntry(Structure):
    _fields_ = [("ev", Ev), ("ev_new", Ev), ("state", c_int), ("flags", c_uint32)]


class EvAttr(Structure):
    _fields_ = [
        ("state", c_int),
        ("cur_state", c_int),
        ("mode", c_int),
        ("fmt_id", c_uint64),
        ("count", c_uint32),
        ("min_active", c_uint32),
        ("event_mask", c_int),
        ("gap", c_int),
        ("op", c_int),
        ("entries", POINTER(OpEntry)),
        ("entry_count", c_int),
        ("gap_2", c_int),
        ("fields_op", c_int),
        ("fields", c_void_p),
        ("field_count", c_int),
        ("gap_3", c_int),
        ("vendor", c_uint8 * 128),
    ]


class CcAttr(Structure):
    _fields_ = [
        ("state", c_int),
        ("cur_state", c_int),
        ("algorithm", c_char_p),
        ("config", c_void_p),
        ("vendor", c_uint8 * 128),
    ]


class Event(Structure):
    _fields_ = [("profile", c_uint64), ("ev", Ev), ("drops", c_uint32), ("state", c_int)]


class Request(Structure):
    _fields_ = [
        ("id", c_uint16),
        ("gap", c_uint8 * 6),
        ("sgid", c_uint8 * 16),
        ("dgid", c_uint8 * 16),
        ("mode", c_int),
        ("ev", Ev),
        ("port_status", c_uint32),
        ("gap_2", c_uint32),
    ]


class Answer(Structure):
    _fields_ = [("id", c_uint16), ("port", c_uint8), ("rtt", c_uint32), ("adjusted", c_uint8)]


SIZES = {
    DeviceAttr: 72,
    FmtAttr: 168,
    OpEntry: 76,
    EvAttr: 216,
    CcAttr: 152,
    Event: 56,
    Request: 88,
    Answer: 12,
    Ev: 33,
}
for _type, _size in SIZES.items():
    assert ctypes.sizeof(_type) == _size, _type


class Failed(OSError):
    """A call answered with an errno."""

    entry_count = 0
    """As the call left it."""


class Controller:
    """An open device with an MRC context. Close it."""

    def __init__(self, library: ctypes.CDLL, version: int = 0) -> None:
        self._library = library
        devices = self._pointer("ibv_get_device_list", None)
        device = ctypes.cast(devices, POINTER(c_void_p))[0]
        self.verbs = self._pointer("ibv_open_device", c_void_p(device))
        library.ibv_free_device_list(c_void_p(devices))
        self.mrc = self._pointer("mrc_create_context", c_void_p(self.verbs), byref((c_uint32 * 2)(version, 0)))

    def close(self) -> None:
        """Both."""
        self.call("mrc_destroy_context", c_void_p(self.mrc))
        self.call("ibv_close_device", c_void_p(self.verbs))

    def _pointer(self, name: str, *arguments: Any) -> int:
        function = self._library[name]
        function.restype = c_void_p
        result = function(*arguments)
        if not result:
            raise Failed(get_errno(), name)
        return int(result)

    def call(self, name: str, *arguments: Any) -> None:
        """A function that returns 0 or -1. Raises Failed."""
        result = self._library[name](*arguments)
        if result:
            raise Failed(get_errno(), f"{name}: {os.strerror(get_errno())}")

    def device(self) -> DeviceAttr:
        """As API 1.0.1 asks."""
        attr, supported = DeviceAttr(), c_int(7)
        self.supported = -1
        self.call("mrc_ctl_query_device_ex", c_void_p(self.verbs), c_void_p(self.mrc), byref(attr), byref(supported))
        self.supported = supported.value
        return attr

    def port(self, number: int) -> int:
        """1 if enabled."""
        attr = PortAttr(9)
        self.call("mrc_ctl_query_port", c_void_p(self.mrc), c_uint8(number), byref(attr), 1)
        return int(attr.state)

    def set_port(self, number: int, state: int) -> None:
        """Enables (1) or disables (0) it."""
        self.call("mrc_ctl_modify_port", c_void_p(self.mrc), c_uint8(number), byref(PortAttr(state)), 1)

    def profile(self, what: str, number: int, mask: int, attr: Structure) -> Any:
        """`what`: as `modify_ev`, `query_cc`. Gives `attr` back."""
        name = f"mrc_ctl_{what}_profile"
        self.call(name, c_void_p(self.mrc), c_uint64(number), byref(attr), c_int(mask))
        return attr

    def ev_op(self, op: int, entries: Any, what: str = "modify_ev", profile: int = 0) -> EvAttr:
        """An operation on the EVs of a profile."""
        attr = EvAttr(op=op, entries=ctypes.cast(entries, POINTER(OpEntry)), entry_count=len(entries))
        try:
            self.profile(what, profile, EV_OP, attr)
        except Failed as failed:
            failed.entry_count = attr.entry_count
            raise
        return attr

    def ev_states(self) -> dict[int, int]:
        """Of all EVs, by their 32 bits."""
        attr = EvAttr()
        self.profile("query_ev", 0, EV_COUNT, attr)
        entries = (OpEntry * attr.count)()
        self.ev_op(QUERY_EV_ARRAY, entries, "query_ev")
        return {entry.ev.number: entry.state for entry in entries}

    def event_cq(self, entries: int) -> int:
        """A CQ of EV events."""
        return self._pointer("mrc_ctl_create_ev_event_cq", c_void_p(self.mrc), entries, None, None, 0)

    def destroy_cq(self, cq: int) -> None:
        """Of any kind."""
        self.call("mrc_destroy_cq", c_void_p(cq))

    def poll(self, cq: int, most: int = 16) -> list[Event]:
        """Raises Failed for a negative answer."""
        events = (Event * most)()
        count = self._library.mrc_ctl_poll_ev_event(c_void_p(cq), most, events)
        if count < 0:
            raise Failed(-count, "poll")
        return list(events[:count])

    @contextmanager
    def qp_of_profile(self, profile: int) -> Iterator[None]:
        """A QP in INIT that names this EV profile."""
        pd = self._pointer("ibv_alloc_pd", c_void_p(self.verbs))
        cq = self._pointer("mrc_create_cq", c_void_p(self.mrc), 4, None, None, 0)
        # struct mrc_qp_init_attr: context, two CQs, five capabilities, sq_sig_all, PD, and what may be 0.
        init = struct.pack("<QQQ5IIQ16x", 0, cq, cq, 4, 4, 1, 1, 0, 0, pd)
        qp = self._pointer("mrc_create_qp", c_void_p(self.mrc), ctypes.create_string_buffer(init, len(init)))
        verbs, mrc = bytearray(144), bytearray(176)
        verbs[0], verbs[129] = 1, 1
        mrc[8:16] = profile.to_bytes(8, "little")
        attributes = [ctypes.create_string_buffer(bytes(each), len(each)) for each in (verbs, mrc)]
        self.call("mrc_modify_qp", c_void_p(qp), attributes[0], 0x39, attributes[1], 0x20)
        yield
        self.call("mrc_destroy_qp", c_void_p(qp))
        self.destroy_cq(cq)
        self.call("ibv_dealloc_pd", c_void_p(pd))

    def probe(self, requests: list[Request], timeout_ns: int, op: int = 0) -> tuple[int, list[Answer]]:
        """The errno, or 0, and the answers."""
        count, answers = c_int(-5), (Answer * len(requests))()
        result = self._library.mrc_ctl_ep_batch_send_wait(
            c_void_p(self.mrc),
            c_uint8(0),
            op,
            (Request * len(requests))(*requests),
            len(requests),
            c_uint32(timeout_ns),
            answers,
            byref(count),
        )
        return get_errno() if result else 0, list(answers[: count.value])


def request(number: int, dgid: bytes, path: int, sgid: bytes = bytes(16), mode: int = STEV) -> Request:
    """A probe."""
    made = Request(id=number, mode=mode, ev=Ev.of(path))
    made.dgid[:], made.sgid[:] = dgid, sgid
    return made


@contextmanager
def controller(library: Path, version: int = 0) -> Iterator[Controller]:
    """The library, with a device open; the environment names the daemon."""
    made = Controller(ctypes.CDLL(str(library), use_errno=True), version)
    yield made
    made.close()
