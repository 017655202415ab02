"""Durations, rates and sizes as text: `100ms`, `25mbit`, `4MiB`; parsed and formatted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

_NUMBER = re.compile(r"([+-]?)(\d{1,18}(?:\.\d{1,18})?)\s*(\S*)", re.ASCII)
_LARGEST = 1 << 63


class UnitError(ValueError):
    """An unreadable quantity; the text says what was expected, with an example."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A kind of quantity: its units as multiples of the base unit, and examples for messages."""

    noun: str
    units: Mapping[str, int] = field(hash=False)
    example: str

    def parse(self, value: object) -> int:
        """The value in base units, a whole number. Raises UnitError for any other text or type."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise UnitError(f"must be {self.noun}, such as {self.example}")
        match = _NUMBER.fullmatch(str(value).strip())
        if match is None:
            raise UnitError(f"{str(value)!r} is not {self.noun}; write a number and a unit, such as {self.example}")
        sign, number, unit = match.groups()
        if sign == "-" and Decimal(number) != 0:
            raise UnitError(f"{value} is negative; write {self.noun}, such as {self.example}")
        return self._scaled(str(value).strip(), Decimal(number), unit)

    def _scaled(self, text: str, number: Decimal, unit: str) -> int:
        if not unit:
            raise UnitError(f"{text} has no unit; write {self.noun}, such as {self.example}")
        if unit not in self.units:
            raise UnitError(f"{text!r} has an unknown unit {unit!r}{self._hint(unit)}, such as {self.example}")
        scaled = number * self.units[unit]
        if scaled != int(scaled):
            raise UnitError(f"{text} is too fine; the smallest is {self._smallest()}")
        if scaled >= _LARGEST:
            raise UnitError(f"{text} is too large for {self.noun}")
        return int(scaled)

    def _hint(self, unit: str) -> str:
        same = [known for known in self.units if known.lower() == unit.lower()]
        return f"; did you mean {same[0]!r}? Write {self.noun}" if same else f"; use one of {' '.join(self.units)}"

    def _smallest(self) -> str:
        unit = min(self.units, key=lambda unit: self.units[unit])
        return f"{Decimal(1) / self.units[unit]:f}{unit}"


DURATION = Quantity(
    "a duration",
    {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9},
    "6s or 100ms",
)
"""Base unit: nanoseconds."""
RATE = Quantity("a rate", {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}, "25mbit or 12.5mbit")
"""Base unit: bits per second."""
SIZE = Quantity(
    "a size",
    {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
    "4MiB or 512KiB",
)
"""Base unit: bytes."""
SHARE = Quantity("a percentage", {"%": 10**4}, "20% or 0.1%")
"""Base unit: millionths."""


def format_duration(value_ns: int) -> str:
    """Nanoseconds in the largest decimal unit that leaves a number of at least 1: `1.5s`. Exact."""
    return _decimal(value_ns, {"s": 10**9, "ms": 10**6, "us": 10**3}, "ns")


def format_rate(value_bps: int) -> str:
    """Bits per second, exact: `12.5mbit`."""
    return _decimal(value_bps, {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3}, "bit")


def format_size(value_bytes: int) -> str:
    """Bytes in the largest binary unit that divides them: `4MiB`, `1000B`."""
    for unit in ("GiB", "MiB", "KiB"):
        if value_bytes and value_bytes % SIZE.units[unit] == 0:
            return f"{value_bytes // SIZE.units[unit]}{unit}"
    return f"{value_bytes}B"


def format_share(millionths: int) -> str:
    """A share as a percentage, exact: `0.1%`."""
    return f"{Decimal(millionths) / SHARE.units['%']:f}%"


def _decimal(value: int, units: Mapping[str, int], base: str) -> str:
    for unit, scale in units.items():
        if value >= scale:
            whole, rest = divmod(value, scale)
            fraction = str(rest).rjust(len(str(scale)) - 1, "0").rstrip("0")
            return f"{whole}.{fraction}{unit}" if fraction else f"{whole}{unit}"
    return f"{value}{base}"
