"""A figure asked for in the words of the expectation language: an expectation without its comparison. Pure."""

from __future__ import annotations

import re

from testbed.expect import ExpectError, parse_expectation
from testbed.expect.metrics import METRICS
from testbed.expect.vocabulary import Dimension

_UNITS = {Dimension.COUNT: "", Dimension.BYTES: "B", Dimension.TIME: "s", Dimension.RATE: "B/s"}
"""In which figures are given when nobody asks for another unit."""


def with_bound(text: str, unit: str | None = None) -> str:
    """The same as an expectation with some bound in `unit`: it stands before the window, tried from the end.

    Raises ValueError for a text that is no figure.
    """
    metric = METRICS.get(re.split(r"[.\s]", text.strip(), maxsplit=1)[0])
    if unit is None:
        unit = _UNITS[metric.dimension] if metric else ""
    errors = []
    for place in reversed([*(gap.start() for gap in re.finditer(r"\s+", text)), len(text)]):
        candidate = f"{text[:place]} == 0 {unit}{text[place:]}"
        try:
            parse_expectation(candidate)
        except ExpectError as error:
            errors.append(error)
        else:
            return candidate
    raise ValueError(f"{text}: {max(errors, key=lambda error: error.column).message}")
