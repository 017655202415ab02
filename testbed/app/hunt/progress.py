"""The line that says how far a search is."""

from __future__ import annotations

import time

from mrc_testbed.testbed.app.hunt.search import Tally
from mrc_testbed.testbed.app.pack import rough
from mrc_testbed.testbed.report.console import PatientConsole

_LOG_EVERY_S = 30.0
"""Between lines where output is no terminal."""


class ProgressLine:
    """One line that is written again on a terminal; a line now and then elsewhere."""

    def __init__(self, console: PatientConsole) -> None:
        self._console = console
        self._next_s = time.monotonic() + _LOG_EVERY_S

    def show(self, tally: Tally) -> None:
        """How far it is."""
        line = f"{tally.done} of {tally.of} tries, {tally.per_minute:.0f} a minute, about {rough(tally.left_s)} left"
        if tally.failed:
            line += f"; {tally.failed} failed"
        if self._console.is_terminal:
            self._console.print(line.ljust(self._console.width - 1), end="\r", no_wrap=True)
        elif time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _LOG_EVERY_S
            self._console.print(line, soft_wrap=True)

    def end(self, tally: Tally) -> None:
        """What it came to."""
        each = f", {tally.seconds / tally.done:.2g} s each" if tally.done else ""
        tries = f"{tally.done} tr{'y' if tally.done == 1 else 'ies'}{each}"
        line = f"{tries}: {f'{tally.failed} failed' if tally.failed else 'none failed'}"
        if tally.unjudged:
            line += f"; {tally.unjudged} could not be judged, the last: {tally.problem}"
        if self._console.is_terminal:
            self._console.print(" " * (self._console.width - 1), end="\r")
        self._console.print(line, soft_wrap=True)
