"""Per-record memoisation. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from mrc_testbed.testbed.checks.record import RunRecord

T = TypeVar("T")


def derived(make: Callable[[RunRecord], T]) -> Callable[[RunRecord], T]:
    """Cache the result of `make` with its record, which never changes. Callers must not change the result either."""

    @wraps(make)
    def look_up(record: RunRecord) -> T:
        if make not in record.derived:
            record.derived[make] = make(record)
        found: T = record.derived[make]
        return found

    return look_up
