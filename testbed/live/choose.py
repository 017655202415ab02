"""Which listener fits where the output goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from rich.console import Console

from testbed.live.live import Live
from testbed.live.model import LiveModel
from testbed.live.terminal import Terminal
from testbed.live.tty import Tty, in_foreground, without_echo
from testbed.runner.progress import PlainLines, Progress, ProgressGroup, Screen, Silent
from testbed.scenario import Scenario
from topos.plan import build_plan


@contextmanager
def terminal_of(console: Console, quiet: bool) -> Iterator[Tty | None]:
    """The terminal to draw on while this lasts; None where there is none, or one that can only take lines.

    To be entered outside the sandbox: in its PID namespace nobody knows who is in the foreground of a terminal.
    """
    if quiet or not console.is_terminal or console.is_dumb_terminal or not in_foreground(console.file):
        yield None
        return
    with without_echo(console.file), closing(Tty(console.file)) as tty:
        yield tty


def progress_for(scenario: Scenario, console: Console, quiet: bool, tty: Tty | None, *screens: Screen) -> Progress:
    """Frames for the terminal and any other screens; without a terminal plain lines, and nothing when `quiet`."""
    lines: Progress = Silent() if quiet else PlainLines(console)
    plan = build_plan(scenario.shape())
    if tty is not None:
        return Live(LiveModel(scenario, plan), Terminal(console, plan, tty), *screens)
    return ProgressGroup(lines, Live(LiveModel(scenario, plan), *screens)) if screens else lines
