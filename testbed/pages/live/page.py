"""The page of the live view. All data of a run come by the event stream, and the token is in the page's address."""

from __future__ import annotations

from mrc_testbed.testbed.pages.assemble import assemble
from mrc_testbed.testbed.pages.terms import TERM_SCRIPTS

_STYLES = ("live.css", "drawing.css", "lesson.css")
_SCRIPTS = ("parts.js", "drawing.js", "tiles.js", "numbers.js", "ticker.js", "faults.js", "lesson.js", "stream.js")
"""In dependency order."""
_TERMS = ("EV", "T1", "T2")
"""Of headings that the scripts make."""


def live_page(server: str) -> bytes:
    """The complete page of the server of that name."""
    styles = [f"live/{name}" for name in _STYLES]
    scripts = [*TERM_SCRIPTS, *(f"live/{name}" for name in _SCRIPTS)]
    data = {"server": server}
    return assemble("live/live.html", {}, data, styles, scripts, connect_self=True, terms=_TERMS).encode()
