"""The live view as a listener: it keeps the model of the run and has frames of it drawn at a steady, cheap pace."""

from __future__ import annotations

import gc
import time

from testbed.live.layout import EVERY_S
from testbed.live.model import LiveModel
from testbed.runner.events import PhaseBegins, RunEvent
from testbed.runner.loop import Loop
from testbed.runner.progress import Screen

SHARE = 0.02
"""Of a core at most, for making and drawing frames; a slower machine sees fewer of them."""


class Live:
    """Passes all events to the model, and draws it on all screens: at each phase, and in between on the run's loop."""

    def __init__(self, model: LiveModel, *screens: Screen) -> None:
        self._model = model
        self._screens = screens
        self._every_ns = round(EVERY_S * 1e9)

    def publish(self, event: RunEvent) -> None:
        """A phase is drawn at once: it may be one without a loop."""
        self._model.publish(event)
        if isinstance(event, PhaseBegins):
            self.draw()

    def attach(self, loop: Loop) -> None:
        """From now on the loop draws.

        Frames are many small objects, so that Python often looks for garbage. What is there by now is no garbage, and
        looking through it in a large fabric held the loop up for 50 ms.
        """
        gc.freeze()

        def again() -> None:
            self.draw()
            loop.at(time.monotonic_ns() + self._every_ns, again)

        loop.at(time.monotonic_ns() + self._every_ns, again)

    def draw(self) -> None:
        """One frame, on all screens."""
        began_ns = time.thread_time_ns()
        frame = {**self._model.frame(time.monotonic_ns()), "every_s": round(self._every_ns / 1e9, 3)}
        for screen in self._screens:
            screen.draw(frame)
        cost_ns = time.thread_time_ns() - began_ns
        due_ns = max(round(EVERY_S * 1e9), round(cost_ns / SHARE))
        self._every_ns += (due_ns - self._every_ns) // 4

    def close(self) -> None:
        """Take all screens away."""
        for screen in self._screens:
            screen.close()
