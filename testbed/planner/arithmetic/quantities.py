"""Rates, counts, times and frequencies as people write them on a command line: `800G`, `10k`, `10us`, `14/min`."""

from __future__ import annotations

import re

from mrc_testbed.testbed.errors import UsageError

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([GT])(?:b/s|bit|bps)?", re.ASCII | re.IGNORECASE)
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kKM]|[eE]\d+)?", re.ASCII)
_GBPS = {"G": 1, "T": 1000}
_MANY = {"K": 1000, "M": 1_000_000}
_SECONDS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
    "day": 86_400.0,
    "days": 86_400.0,
}
_DURATION = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_SECONDS)})", re.ASCII)
_FREQUENCY = re.compile(r"(\S+)\s*/\s*(s|min|h|day)", re.ASCII)
_SHARE = re.compile(r"\d+(?:\.\d+)?|\.\d+", re.ASCII)
_SHOWN = (("d", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
_MOST = 1_000_000_000


def rate_gbps(text: str, place: str) -> int:
    """A rate in Gb/s. `place`: what the text is about, in an error. Raises UsageError."""
    found = _RATE.fullmatch(text.strip())
    rate = float(found[1]) * _GBPS[found[2].upper()] if found else 0
    if not 1 <= rate <= _MOST or rate != int(rate):
        raise UsageError(f"{place} {text}: not a rate; write whole Gb/s, as in 800G or 51.2T")
    return int(rate)


def rate_words(gbps: int) -> str:
    """`800G`, `51.2T`."""
    return f"{gbps / 1000:g}T" if gbps > 1000 else f"{gbps}G"


def whole(text: str, place: str, least: int, most: int = _MOST) -> int:
    """A whole number from `least` to `most`; `10k` and `1e5` are taken for what they mean. Raises UsageError."""
    text = text.strip().replace(",", "")
    if text[:1] == "0" and text[1:2].isdigit():
        raise UsageError(f"{place} {text}: write numbers of a list without commas inside, 131072 and not 131,072")
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


def duration_s(text: str, place: str) -> float:
    """`10us`, `1.5min`, `2h` in s; above 0. Raises UsageError."""
    found = _DURATION.fullmatch(text.strip())
    value = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not 0 < value < float("inf"):
        raise UsageError(
            f"{place} {text or 'nothing'}: write a time above 0 with its unit, as in 10us, 30s, 5min or 2h"
        )
    return value


def a_minute(text: str, place: str) -> float:
    """`14/min`, `800/h`, `5k/day` a minute. Raises UsageError."""
    found = _FREQUENCY.fullmatch(text.strip())
    count = _COUNT.fullmatch(found[1]) if found else None
    if not found or not count or not (value := _value(count)) < _MOST:
        raise UsageError(f"{place} {text or 'nothing'}: write how many in what time, as in 14/min, 800/h or 20k/day")
    return value * 60 / _SECONDS[found[2]]


def share(text: str, place: str) -> float:
    """0 to 1. Raises UsageError."""
    value = float(text) if _SHARE.fullmatch(text.strip()) else -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"{place} {text or 'nothing'}: write a share of 0 to 1, as in 0.2")
    return value


def duration_words(seconds: float) -> str:
    """`80 us`, `1.5 min`, `2 h`: in the largest unit that it is at least one of."""
    unit, size = next(((unit, size) for unit, size in _SHOWN if seconds >= 0.9995 * size), _SHOWN[-1])
    shown = seconds / size
    return f"{shown:.3g} {unit}" if shown < 1000 else f"{shown:,.0f} {unit}"
