"""JSON in one line, as short as it can be."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

_plain = json.JSONEncoder(separators=(",", ":"))


def _line_maker() -> Callable[[Any], str]:
    """`_plain.encode`, which makes the standard library's encoder in C for each call; here it is made once."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _plain.encode
    text_of = json.encoder.encode_basestring_ascii
    # No table of what is being encoded, no indent, keys as they come and none left out, NaN as it is.
    pieces = make(None, _plain.default, text_of, None, ":", ",", False, False, True)

    def line_of(value: Any) -> str:
        return "".join(pieces(value, 0))

    return line_of


as_line: Callable[[Any], str] = _line_maker()
"""The text, without an end of line. Raises TypeError for what JSON has no text for, RecursionError for what holds
itself."""
