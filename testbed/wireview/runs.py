"""Bits of a mask as runs, and runs as text: `67-70 72`."""

from __future__ import annotations

from collections.abc import Iterable


def runs(mask: int) -> list[tuple[int, int]]:
    """(first, last) of every run of set bits, bit 0 first."""
    found, base = [], 0
    while mask:
        zeros = (mask & -mask).bit_length() - 1
        mask >>= zeros
        ones = (~mask & mask + 1).bit_length() - 1
        found.append((base + zeros, base + zeros + ones - 1))
        mask >>= ones
        base += zeros + ones
    return found


def runs_text(pairs: Iterable[tuple[int, int]]) -> str:
    """`67-70 72`; `none` when there is no run."""
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in pairs) or "none"
