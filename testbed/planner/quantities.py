"""Rates and counts as people write them on a command line: `800G`, `51.2T`, `10k`."""

from __future__ import annotations

import re

from testbed.errors import UsageError

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([GT])(?:b/s|bit|bps)?", re.ASCII | re.IGNORECASE)
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kKM]|[eE]\d+)?", re.ASCII)
_GBPS = {"G": 1, "T": 1000}
_MANY = {"K": 1000, "M": 1_000_000}
_MOST = 1_000_000_000


def rate_gbps(text: str, place: str) -> int:
    """A rate in Gb/s. `place`: what the text stands for, in an error. Raises UsageError."""
    found = _RATE.fullmatch(text.strip())
    rate = float(found[1]) * _GBPS[found[2].upper()] if found else 0
    if rate < 1 or rate != int(rate):
        raise UsageError(f"{place} {text}: not a rate; write whole Gb/s, as in 800G or 51.2T")
    return int(rate)


def rate_words(gbps: int) -> str:
    """`800G`, `51.2T`."""
    return f"{gbps / 1000:g}T" if gbps > 1000 else f"{gbps}G"


def whole(text: str, place: str, least: int, most: int = _MOST) -> int:
    """A whole number from `least` to `most`; `10k` and `1e5` are taken for what they mean. Raises UsageError."""
    text = text.strip().replace(",", "")
    found = _COUNT.fullmatch(text)
    value = _value(found) if found else -1.0
    if not least <= value <= most or value != int(value):
        raise UsageError(f"{place} {text or 'nothing'}: write a whole number, {least} to {most:,}")
    return int(value)


def _value(found: re.Match[str]) -> float:
    unit = found[2] or ""
    return float(found[0]) if unit[:1] in {"e", "E"} else float(found[1]) * _MANY.get(unit.upper(), 1)


def listed(text: str) -> list[str]:
    """`1,4,8` in parts, each once, in order."""
    return list(dict.fromkeys(part.strip() for part in text.split(",")))
