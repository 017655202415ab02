"""Words that people try for what has another name here, with the line to write. Pure."""

from __future__ import annotations

import re

_MEANT: tuple[tuple[str, str], ...] = (
    (
        r"plane[-_]?(slow|speeds?|rates?|bandwidths?)|slow[-_]?plane",
        'planes are alike; slow one by a fault, such as {at: 1s, link-rate: "p1-t0-*:p1-t1-*", rate: 6mbit, for: 1s}',
    ),
    (
        r"(slow|throttled?)[-_]?(link|port)|(link|port)[-_]?(slow|speed|bandwidth|throttle)",
        "the rate of a link is lowered by `link-rate: LINK, rate: 6mbit`",
    ),
    (r"(switch|t0|t1|tor|spine|leaf)[-_]?(down|crash|fail|failure|kill)", "a switch goes by `switch-reboot: p0-t1-0`"),
    (r"(nic|port)[-_]?(down|fail|failure|cut)", "a port of a host goes by `link-down: h0:p0-t0-0`"),
)


def meant(word: str) -> str:
    """What to write in place of a word; empty where nothing is known of it."""
    return next((advice for pattern, advice in _MEANT if re.fullmatch(pattern, word)), "")
