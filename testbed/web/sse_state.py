"""State of the event stream: a browser gets the newest event of each kind when it connects, then new ones."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

SCENE, FRAME, VERDICT, PAST, BYE = "scene", "frame", "verdict", "past", "bye"
LESSON, GRADE = "lesson", "grade"
"""What is shown beside all runs."""
SERIES_BEGIN, SERIES, SERIES_END = SERIES_KINDS = "series begin", "series", "series end"
"""What is told of metrics: of ports before a run, of the run, and of its verdict. No browser hears of it."""
LINGER, SCRAPED = "linger", "scraped"
"""Let scrapers read the verdict, and that they have."""
TOKEN = "token"
"""Of the run's messages, the one that is no event."""
_PAST = 150
"""Frames of 30 s."""


class SseState:
    """The newest event of each kind, numbered in order. A new scene clears those of the last run."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0
        self._newest: dict[str, tuple[int, bytes]] = {}
        self._past: deque[tuple[float, float]] = deque(maxlen=_PAST)
        self._readers = 0

    def put(self, kind: str, body: bytes) -> None:
        """Publish an event. `body` is JSON in one line."""
        with self._changed:
            if kind == SCENE:
                for of_a_run in (SCENE, FRAME, VERDICT):
                    self._newest.pop(of_a_run, None)
                self._past.clear()
            if kind == FRAME:
                self._remember(json.loads(body))
            self._number += 1
            self._newest[kind] = (self._number, body)
            self._changed.notify_all()

    def _remember(self, frame: dict[str, Any]) -> None:
        if frame.get("t_s") is not None:
            total = sum(host["goodput_bps"] for host in frame["hosts"].values())
            self._past.append((frame["t_s"], total))

    def read(self, patience_s: float) -> Iterator[list[tuple[str, bytes]]]:
        """Yields lists of new events in order until the end was shown; an empty list after `patience_s` without one.

        A slow reader misses frames. The first list includes recent goodput.
        """
        seen = 0
        with self._changed:
            self._readers += 1
        try:
            while True:
                events, seen = self._newer(seen, patience_s)
                yield events
                if any(kind == BYE for kind, _ in events):
                    return
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    def _newer(self, seen: int, patience_s: float) -> tuple[list[tuple[str, bytes]], int]:
        with self._changed:
            self._changed.wait_for(lambda: self._number > seen, patience_s)
            fresh = sorted((item, kind) for kind, item in self._newest.items() if item[0] > seen)
            events = [(kind, body) for (_, body), kind in fresh]
            if seen == 0 and self._past:
                events.append((PAST, json.dumps(list(self._past)).encode()))
            return events, self._number

    def wait_until_read(self, at_most_s: float) -> None:
        """After the last event: wait until all readers have got it."""
        with self._changed:
            self._changed.wait_for(lambda: self._readers == 0, at_most_s)

    @property
    def showing(self) -> bool:
        """True between the start of a run and its verdict."""
        return SCENE in self._newest and VERDICT not in self._newest
