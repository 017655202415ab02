"""Simpler forms of a fault: on fewer targets, shorter, at round times. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mrc_testbed.testbed.scenario.faults.base import SHORTEST_OUTAGE_NS
from mrc_testbed.testbed.scenario.model.single_faults import SingleFault

_ROUND_NS = (10**9, 10**8, 10**7, 10**6)
"""Round times are whole numbers of these, the roundest first."""
_SHARES = (0.125, 0.25, 0.5, 0.75)
"""How much of its length is tried."""


def simpler(fault: SingleFault) -> Iterator[SingleFault]:
    """The simplest first. Each is on fewer targets, or shorter, or at a rounder time, so they come to an end."""
    yield from (replace(fault, targets=few) for few in _fewer(fault.targets))
    yield from (replace(fault, length_ns=length) for length in _shorter(fault.length_ns))
    if not fault.cold:
        yield from (replace(fault, begin_ns=begin) for begin in _rounder(fault.begin_ns))


def _fewer(targets: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    half = len(targets) // 2
    if half:
        yield targets[:half]
        yield targets[half:]
    if half > 1:
        yield from (targets[:index] + targets[index + 1 :] for index in range(len(targets)))


def _shorter(length_ns: int) -> Iterator[int]:
    """The shortest, a part of it, or nearly all of it; as a number of two digits."""
    found = [SHORTEST_OUTAGE_NS, *(_cut(round(length_ns * share)) for share in _SHARES), _cut(length_ns)]
    yield from (length for length in dict.fromkeys(found) if SHORTEST_OUTAGE_NS <= length < length_ns)


def _cut(value_ns: int) -> int:
    """Its first two digits."""
    unit: int = 10 ** max(0, len(str(value_ns)) - 2)
    return value_ns // unit * unit


def _rounder(begin_ns: int) -> Iterator[int]:
    """The next round times before and after it, each rounder than it is."""
    for unit in _ROUND_NS:
        if begin_ns % unit == 0:
            return
        before = begin_ns // unit * unit
        yield from (before, before + unit)
