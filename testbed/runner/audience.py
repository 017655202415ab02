"""Who watches a run from outside of it and may ask for faults, as the run in progress meets it."""

from __future__ import annotations

from typing import Protocol

from testbed.runner.by_hand import HandMade
from testbed.runner.loop import Loop


class Audience(Protocol):
    """`interactive`: it may ask for faults."""

    @property
    def interactive(self) -> bool: ...

    def serve(self, loop: Loop, hand_made: HandMade | None) -> None:
        """Requests may come from now on; they are for `hand_made`, or refused where that is None. In the supervisor."""
