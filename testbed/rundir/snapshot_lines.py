"""A snapshot in events.jsonl: all counters of a host where their names are new, afterwards those alone that are not 0.

Of some 90 counters of an MRC endpoint some 70 stay 0 in most runs, so a line has 0.6 kB instead of 2.2. A line needs no
other one but the last before it that has all names: a run may be killed, and a reader may begin anywhere behind that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COUNTERS, NONZERO = "counters", "nonzero"
"""The key of all counters, and of those that are not 0."""


class SnapshotWriter:
    """Of one file."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def shortened(self, host: str, event: dict[str, Any]) -> dict[str, Any]:
        """The event of a host as it is written; one that is no snapshot as it is."""
        if event.get("event") != "snapshot" or COUNTERS not in event:
            return event
        counters = event[COUNTERS]
        names = list(counters)
        if self._names.get(host) != names:
            self._names[host] = names
            return event
        return _with(event, COUNTERS, NONZERO, {name: count for name, count in counters.items() if count})


class SnapshotReader:
    """Of one file, whose lines are read in their order."""

    def __init__(self) -> None:
        self._zeros: dict[str, Mapping[str, int]] = {}

    def whole(self, row: dict[str, Any]) -> dict[str, Any]:
        """A snapshot with all its counters; a row that is none as it is. Raises KeyError, TypeError, ValueError or
        AttributeError for what no run writes."""
        if row.get("event") != "snapshot":
            return row
        host = row["host"]
        if NONZERO not in row:
            self._zeros[host] = zeros_of(row)
        return restored(row, self._zeros.get(host))


def zeros_of(row: dict[str, Any]) -> Mapping[str, int]:
    """The names of a snapshot that has all, each with 0. Raises KeyError, TypeError."""
    return dict.fromkeys(row[COUNTERS], 0)


def restored(row: dict[str, Any], zeros: Mapping[str, int] | None) -> dict[str, Any]:
    """A snapshot with all its counters. `zeros`: of the last one of its host that has them; None: there was none.
    Raises TypeError, ValueError."""
    if NONZERO not in row:
        return row
    if zeros is None:
        raise ValueError("no line before it names the counters of its host")
    return _with(row, NONZERO, COUNTERS, {**zeros, **row[NONZERO]})


def _with(row: dict[str, Any], old: str, new: str, counters: Mapping[str, int]) -> dict[str, Any]:
    """The row with these counters, under another key in the same place."""
    return {new if key == old else key: counters if key == old else value for key, value in row.items()}
