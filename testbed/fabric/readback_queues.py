"""Reads back shapers, queues and port programs as `tc` shows them, and compares them with the expected ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mrc_testbed.testbed.fabric.commands import (
    CLASS_CONTROL,
    CLASS_DATA,
    STAB_OVERHEAD_BYTES,
    data_queue_bytes,
)
from mrc_testbed.testbed.fabric.port_program import hooks
from mrc_testbed.testbed.switching.expected import Expected
from mrc_testbed.testbed.switching.options import control_queue_bytes

PortRow = tuple[str, ...]

_ROOT = re.compile(r"qdisc \S+ \S+ root ")
_CLASS = re.compile(r"class htb (\S+) .* ceil (\d+)([KMGT]?bit) ")
_LEAF = re.compile(r"qdisc bfifo \S+ parent (\S+) limit ([\d.e+]+)([KM]?)b")
_STAB = re.compile(r" (?:linklayer \S+ )?overhead (\d+) ")
_PROGRAM = re.compile(r"filter .* direct-action .*id (\d+) name (\S+) ")
_UNIT_BPS = {"bit": 1, "Kbit": 1000, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}
_UNIT_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20}
_PRINT_ROUNDING = 1e-3
"""tc prints a rate with at least four digits, a size with six digits or in whole KiB."""
_SIZE_ROUNDING = 1024


def question(expected: Expected, node: str) -> str:
    """`tc -d -batch` commands whose output `rows_held` parses."""
    lines = []
    for own, _ in expected.plan.ports[node]:
        lines += [f"qdisc show dev {own.name}", f"class show dev {own.name}"]
        if expected.options.port_program:
            lines += [f"filter show dev {own.name} {hook}" for _, hook in hooks(node)]
    return "\n".join(lines)


def rows_wanted(expected: Expected, node: str) -> Iterator[PortRow]:
    """(what, device, ...) of every shaper, queue and program that the ports of a node must have."""
    rates = expected.port_rates(node)
    for own, _ in expected.plan.ports[node]:
        for handle in ("1:1", CLASS_CONTROL, CLASS_DATA):
            yield "shaper", own.name, handle, str(rates[own.name])
        if node in expected.plan.switch_by_name:
            for handle, limit in _limits(expected, expected.plan.rates_bps[own]).items():
                yield "queue", own.name, handle, str(limit)
        if expected.has_egress(node):
            yield "size table", own.name, str(STAB_OVERHEAD_BYTES)
        if expected.options.port_program:
            for name, _ in hooks(node):
                yield "program", own.name, name, f"id {expected.programs[name]}"


def _limits(expected: Expected, rate_bps: int) -> dict[str, int]:
    """Of a port of this planned rate."""
    shape = expected.plan.shape
    data = data_queue_bytes(shape, rate_bps, expected.options)
    return {CLASS_CONTROL: control_queue_bytes(shape, rate_bps), CLASS_DATA: data}


def rows_held(expected: Expected, node: str, text: str) -> Iterator[PortRow]:
    """The same, parsed from the output of `tc`."""
    # tc prints classes without their device and not as JSON; a root qdisc line begins the next device.
    devices = iter(expected.plan.ports[node])
    rates, limits, device = expected.port_rates(node), dict[str, int](), "?"
    for line in text.splitlines():
        if _ROOT.match(line):
            own, _ = next(devices)
            device, limits = own.name, _limits(expected, expected.plan.rates_bps[own])
        elif match := _CLASS.match(line):
            rate = int(match[2]) * _UNIT_BPS[match[3]]
            yield "shaper", device, match[1], _as_planned(rate, rates[device], rates[device] * _PRINT_ROUNDING)
        elif (match := _LEAF.match(line)) and node in expected.plan.switch_by_name:
            size, limit = int(float(match[2]) * _UNIT_BYTES[match[3]]), limits[match[1]]
            yield "queue", device, match[1], _as_planned(size, limit, max(limit * _PRINT_ROUNDING, _SIZE_ROUNDING))
        elif match := _STAB.match(line):
            yield "size table", device, match[1]
        elif match := _PROGRAM.match(line):
            yield "program", device, match[2], f"id {match[1]}"


def _as_planned(held: int, planned: int, rounding: float) -> str:
    return str(planned if abs(held - planned) <= rounding else held)
