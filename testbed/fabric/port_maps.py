"""The port program's maps in Python: layouts, and memory shared with the program.

Writing a value takes microseconds and no system call. The layouts are those of bpf/port.bpf.c.
"""

from __future__ import annotations

import mmap
import os
import struct
import time

from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.port_counts import VERDICTS, LateArrivals, PortCounts, PortHits, counts_of, hits_of
from mrc_testbed.testbed.switching.port_rules import RULE, RULES, PortRule
from mrc_testbed.testbed.switching.thresholds import PortLevels
from mrc_testbed.topos.nodes import FIRST_IFINDEX, Interface

PORT = struct.Struct("Q2q5Q")
QUEUE = struct.Struct("7Q")
COUNTS = struct.Struct("32Q")
LATENESS = struct.Struct("3Q")
CHOICE = struct.Struct("4I7Q")
_LAST_AT = 16
"""Of `last_ns` in it."""
_LONGEST = struct.Struct("2Q")
_LONGEST_AT = 40
"""Of `most_wait_ns` and `most_bytes` in QUEUE."""
SETTINGS = struct.Struct("Q6BH2B256s6x")
RULES_BYTES = 8 + RULES * RULE.size
VALUE_BYTES = {
    "ports": PORT.size,
    "queues": QUEUE.size,
    "egress_counts": COUNTS.size,
    "ingress_counts": COUNTS.size,
    "latenesses": LATENESS.size,
    "port_rules": RULES_BYTES,
    "choices": CHOICE.size,
}
COST_SHIFT = 20
LAST_HOP = 1
_WORD = struct.Struct("Q")
_NS_BITS = 8 * 10**9
_VERDICT_COUNTS = struct.Struct(f"{VERDICTS}Q")
"""The first of COUNTS: data, by decision."""


class SharedArray:
    """An array map in this process's memory."""

    def __init__(self, descriptor: int, entries: int, value_bytes: int) -> None:
        """Map it; takes over the descriptor."""
        self._step = -(-value_bytes // 8) * 8
        size = -(-entries * self._step // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            self.memory = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)

    def at(self, key: int) -> int:
        """Offset of the value of `key` in `memory`."""
        return key * self._step


def settings_entry(options: FabricOptions) -> bytes:
    """What operator and transport choose, for all ports: `struct settings` of bpf/packets.h."""
    marks, trimming, data = options.marks, options.trimming, options.data
    dscps = marks.control, marks.data, marks.retransmission, trimming.dscp, trimming.dscp_last_hop
    data_dscps = sum(1 << dscp for dscp in data.data_dscps(marks))
    rest = trimming.first, trimming.size_bytes, data.by_opcode, options.trims
    return SETTINGS.pack(data_dscps, *dscps, *rest, data.header_bytes)


def port_entry(levels: PortLevels, rate_bps: int, delay_ns: int, late_ns: int) -> bytes:
    """A port's configuration: its levels as times at this rate, since the program keeps its queue in ns.

    `delay_ns`: what another qdisc of the port adds. `late_ns`: from when on a packet that comes in counts as late.
    """
    times = [level * _NS_BITS // rate_bps for level in (levels.ecn_low, levels.ecn_high, levels.trim, levels.drop)]
    return PORT.pack(
        (_NS_BITS << COST_SHIFT) // rate_bps, *times, LAST_HOP if levels.last_hop else 0, delay_ns, late_ns
    )


def port_rate_bps(ports: SharedArray, key: int) -> int:
    """The rate of a port now, within a millionth."""
    (ns_per_byte,) = _WORD.unpack_from(ports.memory, ports.at(key))
    return round((_NS_BITS << COST_SHIFT) / int(ns_per_byte))


def late_arrivals(latenesses: SharedArray, key: int) -> LateArrivals:
    """What came late at a port, until now."""
    packets, most_ns, _ = LATENESS.unpack_from(latenesses.memory, latenesses.at(key))
    return LateArrivals(packets, most_ns)


def take_last_lateness(latenesses: SharedArray, key: int) -> int:
    """How late the last packet was that came in at a port, in ns; 0 where none has since the last call."""
    at = latenesses.at(key) + _LAST_AT
    late_ns: int = _WORD.unpack_from(latenesses.memory, at)[0]
    if late_ns:
        _WORD.pack_into(latenesses.memory, at, 0)
    return late_ns


def queue_ns(queues: SharedArray, key: int) -> int:
    """Backlog of a port's virtual queue, in ns at its rate."""
    (free_at_ns,) = _WORD.unpack_from(queues.memory, queues.at(key))
    return max(0, int(free_at_ns) - time.monotonic_ns())


def watermark_bytes(queues: SharedArray, key: int, rate_bps: int) -> int:
    """The longest queue that a packet has met at a port, which has this rate now."""
    wait_ns, earlier_bytes = _LONGEST.unpack_from(queues.memory, queues.at(key) + _LONGEST_AT)
    return max(int(earlier_bytes), int(wait_ns) * rate_bps // _NS_BITS)


def keep_watermark(queues: SharedArray, key: int, rate_bps: int) -> None:
    """Note it in bytes, before the rate changes."""
    longest = watermark_bytes(queues, key, rate_bps)
    _LONGEST.pack_into(queues.memory, queues.at(key) + _LONGEST_AT, 0, longest)


def stretch_queue(queues: SharedArray, key: int, old_bps: int, new_bps: int) -> None:
    """Rescale the queued bytes to another rate."""
    now = time.monotonic_ns()
    (free_at_ns,) = _WORD.unpack_from(queues.memory, queues.at(key))
    if free_at_ns > now:
        _WORD.pack_into(queues.memory, queues.at(key), now + (free_at_ns - now) * old_bps // new_bps)


def port_counts(egress: SharedArray, ingress: SharedArray, key: int) -> PortCounts:
    """The counts of a port now."""
    out = COUNTS.unpack_from(egress.memory, egress.at(key))
    into = COUNTS.unpack_from(ingress.memory, ingress.at(key))
    return counts_of(out, into)


def port_hits(egress: SharedArray, ingress: SharedArray, key: int) -> PortHits:
    """The hits of a port now, in 2 microseconds."""
    data = _VERDICT_COUNTS.unpack_from(egress.memory, egress.at(key))
    return hits_of(data, COUNTS.unpack_from(ingress.memory, ingress.at(key)))


class SharedRules:
    """The slots of rules of all ports, as the program reads them."""

    def __init__(self, rules: SharedArray) -> None:
        self._rules = rules

    def write(self, port: Interface, slot: int, rule: PortRule) -> None:
        """Fill an inactive slot, then activate it: the program may run at any moment in between."""
        start, memory = self._start(port), self._rules.memory
        at = start + 8 + slot * RULE.size
        memory[at : at + RULE.size] = rule.entry()
        (active,) = _WORD.unpack_from(memory, start)
        _WORD.pack_into(memory, start, active | 1 << slot)

    def active(self, port: Interface) -> set[int]:
        """The active slots of a port."""
        (active,) = _WORD.unpack_from(self._rules.memory, self._start(port))
        return {slot for slot in range(64) if active >> slot & 1}

    def clear(self, port: Interface, slot: int) -> int:
        """Deactivate a slot. Returns how many packets it hit."""
        start, memory = self._start(port), self._rules.memory
        (active,) = _WORD.unpack_from(memory, start)
        _WORD.pack_into(memory, start, active & ~(1 << slot))
        hits: int = RULE.unpack_from(memory, start + 8 + slot * RULE.size)[-1]
        return hits

    def _start(self, port: Interface) -> int:
        return self._rules.at(port.ifindex - FIRST_IFINDEX)
