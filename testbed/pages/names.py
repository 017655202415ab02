"""Names in running text: `p0-t0-0:p0-t1-2` is one word, and a line must not end at its hyphens. Pure."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_NAME = re.compile(r"\w+(?:[-:>]+\w+)+")
"""Of a fault, a switch, a link, a flow."""


def whole_names(text: str) -> Markup:
    """The text for a page, escaped, each name in an element of class `name`."""
    pieces, at = [], 0
    for name in _NAME.finditer(text):
        pieces += [escape(text[at : name.start()]), Markup('<span class="name">{}</span>').format(name[0])]
        at = name.end()
    return Markup("").join([*pieces, escape(text[at:])])
