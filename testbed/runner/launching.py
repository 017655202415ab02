"""Starting a process on a host: in its network, by hosts/launch.py; and ending it with all that it has started."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterable, Sequence
from typing import Protocol

from mrc_testbed.hosts.light import lighten_session
from mrc_testbed.testbed.isolated import python_command
from mrc_testbed.testbed.launcher.start import launch_in_the_run
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.program_spec import HostPlace

KILL_NS = 10**9
"""From SIGTERM to SIGKILL."""
_ROUNDS = 100
"""Of killing, while new processes come."""


class Watched:
    """A descriptor, as the loop wants one."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        """Its number."""
        return self._descriptor

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)


def families() -> dict[int | None, list[int]]:
    """All processes by the number of their UTS namespace. Whatever a program starts stays in that of the program, even
    what leaves its group and session."""
    found: dict[int | None, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            found.setdefault(_uts_of(int(name)), []).append(int(name))
    return found


def _uts_of(pid: int) -> int | None:
    """None where it has ended."""
    try:
        return os.stat(f"/proc/{pid}/ns/uts").st_ino
    except OSError:
        return None


class NetworkOf(Protocol):
    """The fabric: where hosts have their networks."""

    def network(self, host: str) -> int:
        """A descriptor of the network namespace of a host; the caller closes it."""


class Launched:
    """A process that becomes a command once it may go. `streams`: its input, output and errors. `beside`: the process
    whose folders it shares; None: it gets its own. `end` is readable when it has ended. Raises OSError."""

    def __init__(
        self,
        place: HostPlace,
        command: Sequence[str],
        fabric: NetworkOf,
        streams: Sequence[int],
        beside: int | None = None,
    ) -> None:
        go, self._go = os.pipe()
        with contextlib.ExitStack() as ours:
            ours.callback(os.close, go)
            network = fabric.network(place.host)
            ours.callback(os.close, network)
            mounts = None
            if beside is not None:
                mounts = os.open(f"/proc/{beside}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
                ours.callback(os.close, mounts)
            told = {**place.request(command), "network": network, "go": go, "mounts": mounts}
            self.process = launch_in_the_run(
                python_command("mrc_testbed.hosts.launch", json.dumps(told)),
                streams,
                [each for each in (network, go, mounts) if each is not None],
            )
        self._family: int | None = None
        self._light = {self.process.pid}
        self.end = Watched(os.pidfd_open(self.process.pid))

    def go(self) -> None:
        """Become the command."""
        with contextlib.suppress(BrokenPipeError):  # it could not be prepared, and has said so
            os.write(self._go, b"g")
        os.close(self._go)

    def signal(self, number: int) -> None:
        """To it and all of its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def terminate(self, loop: Loop) -> None:
        """SIGTERM, and SIGKILL where that does not help."""
        self.signal(signal.SIGTERM)
        loop.at(loop.now_ns() + KILL_NS, lambda: None if self.ended else self.signal(signal.SIGKILL))

    @property
    def family(self) -> int | None:
        """The number by which `families` has it and all that came of it; None until it is prepared."""
        if self._family is None:
            found = _uts_of(self.process.pid)
            self._family = None if found == _uts_of(os.getpid()) else found
        return self._family

    def lighten(self, members: Iterable[int]) -> None:
        """Sessions that it has made since the last call weigh as little as its own. `members`: of its family."""
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                session = os.getsid(pid)
                if session not in self._light:
                    self._light.add(session)
                    lighten_session(pid)

    def kill_family(self) -> None:
        """It, and all that came of it, faster than that forks."""
        for _ in range(_ROUNDS):
            found = families().get(self.family, ()) if self.family else ()
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for pid in found:
                if pid != self.process.pid:
                    with contextlib.suppress(ChildProcessError):  # not all have become children of the first process
                        os.waitpid(pid, os.WNOHANG)
            if not found:
                return

    @property
    def ended(self) -> bool:
        """It was reaped."""
        return self.process.returncode is not None

    def reap(self) -> tuple[int, int]:
        """Its status, negative for a signal, and the CPU time in ns that it and its children took. What it has left
        behind in its group is killed."""
        _, waited, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(waited)
        self.signal(signal.SIGKILL)
        self.end.close()
        return self.process.returncode, round((usage.ru_utime + usage.ru_stime) * 1e9)
