"""Selects the listener for the kind of output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from rich.console import Console

from mrc_testbed.testbed.live.live import Live
from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.live.terminal import Terminal
from mrc_testbed.testbed.live.tty import Tty, in_foreground, without_echo
from mrc_testbed.testbed.runner.progress import PlainLines, Progress, ProgressGroup, Screen, Silent, TimeLeft
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind


@contextmanager
def terminal_of(console: Console, quiet: bool) -> Iterator[Tty | None]:
    """The terminal for drawing in this block; None if there is none, or one without cursor movement.

    Enter it outside the sandbox: its PID namespace does not know the foreground process of a terminal.
    """
    if quiet or not console.is_terminal or console.is_dumb_terminal or not in_foreground(console.file):
        yield None
        return
    with without_echo(console.file), closing(Tty(console.file)) as tty:
        yield tty


def progress_for(scenario: Scenario, console: Console, quiet: bool, tty: Tty | None, *screens: Screen) -> Progress:
    """Frames for the terminal and other screens; without a terminal plain lines, and nothing if `quiet`."""
    left = TimeLeft(scenario.expected_ns) if scenario.world is WorldKind.VIRTUAL else None
    lines: Progress = Silent() if quiet else PlainLines(console, left, scenario.speed)
    plan = scenario.plan()
    if tty is not None:
        return Live(LiveModel(scenario, plan), Terminal(console, plan, tty), *screens, left=left)
    return ProgressGroup(lines, Live(LiveModel(scenario, plan), *screens, left=left)) if screens else lines
