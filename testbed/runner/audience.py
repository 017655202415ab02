"""Who watches a run from outside of it and may ask for faults, as the run in progress meets it."""

from __future__ import annotations

from typing import Protocol

from testbed.runner.interactive import InteractiveFaults
from testbed.runner.loop import Loop


class Audience(Protocol):
    """`interactive`: it may ask for faults."""

    @property
    def interactive(self) -> bool: ...

    def serve(self, loop: Loop, interactive: InteractiveFaults | None) -> None:
        """Requests may come from now on; `interactive` does them; None: all are refused. In the supervisor."""
