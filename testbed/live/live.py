"""The live view as a listener: updates the model and draws frames at a steady, cheap rate."""

from __future__ import annotations

import gc
import time

from mrc_testbed.testbed.live.layout import EVERY_S
from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.runner.events import PhaseBegins, RunEvent, WorkloadBegins
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.progress import Screen, TimeLeft

SHARE = 0.02
"""Maximum share of a core for frames; a slower machine sees fewer of them."""


class Live:
    """Passes all events to the model and draws it on all screens: at each phase, and periodically, in the time of who
    looks at it. `left`: of a run in virtual time."""

    def __init__(self, model: LiveModel, *screens: Screen, left: TimeLeft | None = None) -> None:
        self._model = model
        self._left = left
        self._screens = screens
        self._every_ns = round(EVERY_S * 1e9)
        self._now_ns = time.monotonic_ns

    def publish(self, event: RunEvent) -> None:
        """Handle an event; a new phase is drawn at once, because it may run without a loop."""
        self._model.publish(event)
        match event:
            case PhaseBegins():
                self.draw()
            case WorkloadBegins() if self._left:
                self._left.begin(event.start_ns)

    def attach(self, loop: Loop) -> None:
        """Draw on this loop from now on, for those who watch: a run in virtual time may be much faster than they are.

        Frames are many small objects, which trigger Python's garbage collector often. Existing objects are frozen,
        because scanning them blocked the loop of a large fabric for 50 ms.
        """
        gc.freeze()
        self._now_ns = loop.now_ns

        def again() -> None:
            self.draw()
            loop.aside(self._every_ns, again)

        loop.aside(self._every_ns, again)

    def draw(self) -> None:
        """Draw one frame on all screens."""
        began_ns = time.thread_time_ns()
        now_ns = self._now_ns()
        frame = {**self._model.frame(now_ns), "every_s": round(self._every_ns / 1e9, 3)}
        if self._left:
            frame["left"] = self._left.words(now_ns)
        for screen in self._screens:
            screen.draw(frame)
        cost_ns = time.thread_time_ns() - began_ns
        due_ns = max(round(EVERY_S * 1e9), round(cost_ns / SHARE))
        self._every_ns += (due_ns - self._every_ns) // 4

    def close(self) -> None:
        """Close all screens."""
        gc.unfreeze()  # the next run in this process would keep what this one leaves
        for screen in self._screens:
            screen.close()
