"""Interface to a display outside the run that may request faults."""

from __future__ import annotations

from typing import Protocol

from mrc_testbed.testbed.runner.interactive import InteractiveFaults
from mrc_testbed.testbed.runner.loop import Loop


class Audience(Protocol):
    """`interactive`: requests for faults are allowed."""

    @property
    def interactive(self) -> bool: ...

    def serve(self, loop: Loop, interactive: InteractiveFaults | None) -> None:
        """Accept requests from now on, in the supervisor. `interactive` executes them; None: refuse all."""
