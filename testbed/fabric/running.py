"""The nodes of a fabric that another process has built and still holds: found, entered, left when it goes."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mrc_testbed.testbed.errors import FabricError, RunError
from mrc_testbed.testbed.fabric.nodes import SHELL_OF
from mrc_testbed.testbed.fabric.privileges import needs_user_namespace
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
    owner: int,
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
    Returns those commands that failed. Raises RunError where the run is not that far yet, or is over;
    MissingCapability without root, in a run that is not this user's own.
    """
    shells = node_shells(owner)
    missing = [name for name in plan.node_names if name not in shells]
    if missing:
        raise RunError(f"the run has no {missing[0]} yet: its fabric is being built; try again in a second")
    if needs_user_namespace():
        enter_user_namespace_of(next(iter(shells.values())))
    try:
        supervisor = _supervisor_of(next(iter(shells.values())))
        programs = Path(f"/proc/{supervisor}/root") / BPFFS.relative_to("/")
        reader = SwitchReader(plan, shells, programs, trimming)
        rest = commands, addresses, note_asked
        return _prompt_until_it_ends(supervisor, lambda started: prompt_on(reader, shells, started, *rest))
    except _RunIsOver:
        raise RunError(_IS_OVER) from None


def seen_from_outside(owner: int, path: Path) -> Path:
    """A path of the sandbox of process `owner`, as one of the whole machine. Raises RunError, MissingCapability as
    `prompt_beside` does."""
    shells = node_shells(owner)
    if not shells:
        raise RunError("the run has no hosts yet: its fabric is being built; try again in a second")
    shell = next(iter(shells.values()))
    root = Path(f"/proc/{_supervisor_of(shell)}/root")
    if not os.access(root, os.X_OK) and needs_user_namespace():
        enter_user_namespace_of(shell)
    return root / path.relative_to("/")


def _prompt_until_it_ends(supervisor: int, prompt: Callable[[ExitStack], list[Failed]]) -> list[Failed]:
    # Nobody is told any more while shells are ended, so that all of them are.
    with ExitStack() as started, _told_when_it_ends(supervisor):
        try:
            return prompt(started)
        except FabricError:
            time.sleep(_NEWS_S)  # where the run has ended, that is the reason to tell
            raise


def _supervisor_of(shell: int) -> int:
    """The process that holds the fabric. Raises RunError where it has ended."""
    try:
        return _parent_of(Path(f"/proc/{shell}/stat"))
    except OSError:
        raise RunError(_IS_OVER) from None


def _parent_of(stat: Path) -> int:
    """Raises OSError where the process has ended."""
    return int(stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1])


def node_shells(owner: int) -> dict[str, int]:
    """The process of each node's shell among the descendants of `owner`, by the node's name."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = _parent_of(stat)
        except OSError:
            continue  # it has just ended
        children.setdefault(parent, []).append(int(stat.parent.name))
    shells: dict[str, int] = {}
    for pid in _descendants(owner, children):
        if name := _node_of(pid):
            shells.setdefault(name, pid)  # what a shell forks is called as the shell until it executes something else
    return shells


def _descendants(pid: int, children: dict[int, list[int]]) -> Iterator[int]:
    """Parents before their children."""
    for child in children.get(pid, []):
        yield child
        yield from _descendants(child, children)


def _node_of(pid: int) -> str:
    """The node whose shell this process is, or nothing. A shell's last argument says it (FabricNode)."""
    try:
        last = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").rpartition(b"\0")[2].decode(errors="replace")
    except OSError:
        return ""
    return last.removeprefix(SHELL_OF) if last.startswith(SHELL_OF) else ""


@contextmanager
def _told_when_it_ends(supervisor: int) -> Iterator[None]:
    """Raise _RunIsOver in the main thread when process `supervisor` ends. Raises RunError where it has ended."""
    try:
        process = os.pidfd_open(supervisor)
    except ProcessLookupError:
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
