"""The page of the live view. It carries the token; everything else comes by its stream."""

from __future__ import annotations

from testbed.pages.assemble import assemble
from testbed.pages.terms import TERM_SCRIPTS

_STYLES = ("live.css", "drawing.css")
_SCRIPTS = ("parts.js", "drawing.js", "tiles.js", "numbers.js", "ticker.js", "faults.js", "stream.js")
"""In the order in which they build on each other."""
_TERMS = ("EV", "T1")
"""Of headings that the scripts make."""


def live_page(token: str, server: str) -> bytes:
    """The whole page of the server of that name, ready to be sent."""
    styles = [f"live/{name}" for name in _STYLES]
    scripts = [*TERM_SCRIPTS, *(f"live/{name}" for name in _SCRIPTS)]
    data = {"token": token, "server": server}
    return assemble("live/live.html", {}, data, styles, scripts, connect_self=True, terms=_TERMS).encode()
