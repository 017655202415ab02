"""The nodes of a fabric that another process has built and still holds: found, entered, left when it goes."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from mrc_testbed.testbed.errors import FabricError, RunError
from mrc_testbed.testbed.fabric.nodes import SHELL_OF
from mrc_testbed.testbed.fabric.privileges import needs_user_namespace
from mrc_testbed.testbed.fabric.processes import Process, parent_of
from mrc_testbed.testbed.fabric.prompt import Failed, NoteAsked, prompt_on
from mrc_testbed.testbed.fabric.sandbox import BPFFS, enter_user_namespace_of
from mrc_testbed.testbed.fabric.switch_reading import SwitchReader
from mrc_testbed.testbed.switching.classes import TrimRules
from mrc_testbed.topos.plan import Plan

_OVER = signal.SIGUSR1
"""What the main thread is told by when the run has ended; nobody else sends it."""
_NEWS_S = 1
"""The kernel ends a run's shells first. That the run itself has ended is known this much later at most."""
_IS_OVER = "the run is over, and its fabric is gone"


class _RunIsOver(BaseException):
    """Past Mininet's prompt, which answers every Exception itself."""


def prompt_beside(
    owner: Process,
    plan: Plan,
    note_asked: NoteAsked,
    commands: Sequence[str] = (),
    addresses: Mapping[str, str] | None = None,
    trimming: TrimRules | None = None,
) -> list[Failed]:
    """Mininet's prompt on the nodes that process `owner` and its children hold, or single commands as it runs them.
    `addresses`, `note_asked`: as of `prompt_on`. `trimming`: what its switches do, where they can.

    It ends when the user leaves it, or when their supervisor ends: shells of ours would keep the run's namespaces
    alive. `owner` may go on, with the verdict or with the next run of a batch.
    Returns those commands that failed. Raises RunError where the run is not that far yet, or is over; UsageError for
    one of another user; MissingCapability without root, in a run that is not this user's own.
    """
    shells, supervisor = _found(owner, plan.node_names)
    if needs_user_namespace():
        enter_user_namespace_of(next(iter(shells.values())))
    programs = supervisor.path("root") / BPFFS.relative_to("/")

    def prompt(started: ExitStack) -> list[Failed]:
        def reader(pids: Mapping[str, int]) -> SwitchReader:
            return SwitchReader(plan, pids, programs, trimming)

        return prompt_on(reader, plan, shells, started, commands, addresses, note_asked)

    try:
        return _prompt_until_it_ends(supervisor, prompt)
    except _RunIsOver:
        raise RunError(_IS_OVER) from None


@contextmanager
def seen_from_outside(owner: Process, path: Path) -> Iterator[Path]:
    """A path of the sandbox of process `owner`, as one of the whole machine. Raises as `prompt_beside` does."""
    shells, supervisor = _found(owner)
    root = supervisor.path("root")
    if not os.access(root, os.X_OK) and needs_user_namespace():
        enter_user_namespace_of(next(iter(shells.values())))
    yield root / path.relative_to("/")


def _found(owner: Process, names: Sequence[str] = ()) -> tuple[dict[str, Process], Process]:
    """The shells of a run's nodes, and the process that holds its fabric. All of them may be entered."""
    try:
        owner.require_ours("this run")
        shells = node_shells(owner.pid)
        missing = [name for name in names if name not in shells] or ["hosts"] * (not shells)
        if missing:
            raise RunError(f"the run has no {missing[0]} yet: its fabric is being built; try again in a second")
        supervisor = Process(next(iter(shells.values())).parent)
        for each in (supervisor, *shells.values()):
            each.require_ours("this run")
    except OSError:
        raise RunError(_IS_OVER) from None
    return shells, supervisor


def _prompt_until_it_ends(supervisor: Process, prompt: Callable[[ExitStack], list[Failed]]) -> list[Failed]:
    # Nobody is told any more while shells are ended, so that all of them are.
    with ExitStack() as started, _told_when_it_ends(supervisor):
        try:
            return prompt(started)
        except FabricError:
            time.sleep(_NEWS_S)  # where the run has ended, that is the reason to tell
            raise


def node_shells(owner: int) -> dict[str, Process]:
    """The process of each node's shell among the descendants of `owner`, by the node's name."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = parent_of(stat)
        except OSError:
            continue  # it has just ended
        children.setdefault(parent, []).append(int(stat.parent.name))
    shells: dict[str, Process] = {}
    for pid in _descendants(owner, children):
        with suppress(OSError):  # it has just ended
            process = Process(pid)
            if name := _node_of(process):
                shells.setdefault(name, process)  # what a shell forks is called as it is until it executes another
    return shells


def _descendants(pid: int, children: dict[int, list[int]]) -> Iterator[int]:
    """Parents before their children."""
    for child in children.get(pid, []):
        yield child
        yield from _descendants(child, children)


def _node_of(process: Process) -> str:
    """The node whose shell this process is, or nothing. A shell's last argument says it (FabricNode)."""
    last = process.path("cmdline").read_bytes().rstrip(b"\0").rpartition(b"\0")[2].decode(errors="replace")
    return last.removeprefix(SHELL_OF) if last.startswith(SHELL_OF) else ""


@contextmanager
def _told_when_it_ends(supervisor: Process) -> Iterator[None]:
    """Raise _RunIsOver in the main thread when process `supervisor` ends. Raises RunError where it has ended."""
    try:
        process = os.pidfd_open(supervisor.pid)
        supervisor.path("stat").read_bytes()  # else the number may be that of another
    except OSError:
        raise RunError(_IS_OVER) from None
    stop, stopper = os.pipe()
    leaving = False

    def watch() -> None:
        ended, _, _ = select.select([process, stop], [], [])
        if process in ended:
            os.kill(os.getpid(), _OVER)

    def told(_number: int, _frame: object) -> None:
        if not leaving:
            raise _RunIsOver

    watcher = threading.Thread(target=watch, daemon=True)
    before = signal.signal(_OVER, told)
    try:
        watcher.start()
        yield
    finally:
        leaving = True  # Python may have the signal already, and would tell of it below
        signal.signal(_OVER, signal.SIG_IGN)
        os.close(stopper)
        watcher.join()
        signal.signal(_OVER, before)
        os.close(process)
        os.close(stop)
