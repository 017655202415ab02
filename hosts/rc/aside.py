"""What failover says beside the data, as packets that an endpoint queues."""

from __future__ import annotations

from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.context import RcContext, Way


def send_read(context: RcContext, way: Way, qpn: int, generation: int, port: int, rkey: int) -> None:
    """Ask for the completion flags, because `port` has failed."""
    context.send_control(way, _emit_read, (qpn, generation, port, rkey))


def send_flags(context: RcContext, way: Way, qpn: int, generation: int, base: int, flags: bytes) -> None:
    """Answer that."""
    context.send_control(way, _emit_flags, (qpn, generation, base, flags))


def send_message(context: RcContext, way: Way, qpn: int, generation: int, immediate: int) -> None:
    """One of the messages of recovery, over the dead port."""
    context.send_control(way, _emit_message, (qpn, generation, immediate))


def _emit_read(buffer: memoryview, now_ns: int, qpn: int, generation: int, port: int, rkey: int) -> int:
    return wire.emit_read(buffer, qpn, generation, port, rkey)


def _emit_flags(buffer: memoryview, now_ns: int, qpn: int, generation: int, base: int, flags: bytes) -> int:
    return wire.emit_flags(buffer, qpn, generation, base, flags)


def _emit_message(buffer: memoryview, now_ns: int, qpn: int, generation: int, immediate: int) -> int:
    return wire.emit_message(buffer, qpn, generation, immediate)
