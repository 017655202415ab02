"""Readable quantities: `25 Mb/s`, `20 ms`, `23.6 k`."""

from __future__ import annotations

from collections.abc import Sequence

_RATES = ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"))
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))


def rate_text(bps: float) -> str:
    """A rate in the largest unit that leaves at least 1 before it."""
    return _scaled(bps, _RATES, "b/s")


def time_text(ns: float) -> str:
    """A time, given in nanoseconds."""
    return _scaled(ns, _TIMES, "ns")


def count_text(count: float) -> str:
    """A number with separated thousands; one decimal if it is small and not whole."""
    return f"{count:,.0f}" if count >= 100 or count == int(count) else f"{count:.1f}"


def plural(count: int, noun: str) -> str:
    """`1 host`, `2 hosts`, `24 switches`."""
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{ending}"


def some(names: Sequence[str], most: int = 4) -> str:
    """`h0, h1 and 2 more`: as many names as `most`, and how many others there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _scaled(value: float, units: tuple[tuple[float, str], ...], base: str) -> str:
    for size, unit in units:
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g} {base}"
