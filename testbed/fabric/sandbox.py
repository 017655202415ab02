"""A run's own mount, PID and network namespaces, which the kernel removes when the supervisor dies by any cause.

    caller  --fork-->  warden  --fork-->  supervisor, PID 1 of its PID namespace, runs `main`

When the supervisor ends (return, exception, signal, kill -9) the kernel kills every process of its PID namespace; with
the last process go the network namespaces, their links, routes and queues. When the caller or the warden dies, the
parent-death signal kills the supervisor. The caller's own namespaces stay unchanged. Source: pid_namespaces(7),
prctl(2).
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from testbed.errors import ExitCode, FabricError, MissingCapability, RunError, TestbedError

CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_MS_PRIVATE = 1 << 18
_MS_REC = 1 << 14
_MNT_DETACH = 2
_BPFFS = Path("/sys/fs/bpf")
_PR_SET_PDEATHSIG = 1
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_OPEN_FILES = 1 << 16
"""Open files of the supervisor: some seven a node while all are set up at once. A login shell allows 1024."""
CRASHED = 70
"""Exit status of a supervisor whose `main` raised; the traceback is on stderr."""

_UNRESTRICTED = "run as root, outside restricted containers, with / a mount point"

_libc = ctypes.CDLL(None, use_errno=True)


def run_isolated(main: Callable[[], int], passed_on: tuple[signal.Signals, ...] = _ENDING) -> int:
    """Run `main` in fresh namespaces and return its exit status, or 128 + N if signal N ended it.

    The supervisor receives the signals of `passed_on` that are sent to the caller; Ctrl-C also reaches it from the
    terminal, as a member of the foreground process group. The first one raises KeyboardInterrupt, later ones are
    ignored; if `main` does not catch it, the status is 130. Needs root: raises MissingCapability otherwise.
    """
    if os.geteuid() != 0:
        raise MissingCapability("a fabric needs root (network namespaces)", "run the same command with sudo")
    sys.stdout.flush()
    sys.stderr.flush()
    with _held_signals():
        return _run_tied(lambda: _warden(main, passed_on), passed_on)


def call_isolated(function: Callable[[], Any]) -> Any:
    """Like run_isolated, and returns the result of `function`, which must be JSON.

    Raises RunError if it failed, KeyboardInterrupt if it was interrupted.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as answer:

        def main() -> int:
            json.dump(function(), answer)
            answer.flush()
            return 0

        status = run_isolated(main)
        if status == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        if status == ExitCode.MISSING:
            raise MissingCapability("cannot create a sandbox; the reason is above", _UNRESTRICTED)
        if status != 0:
            raise RunError(f"a probe in fresh namespaces ended with status {status}; its error is above")
        answer.seek(0)
        return json.load(answer)


def _warden(main: Callable[[], int], passed_on: tuple[signal.Signals, ...]) -> int:
    """Create the namespaces; the PID namespace applies to the next child only, hence the second fork."""
    _call("unshare", CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET)
    return _run_tied(lambda: _supervisor(main), passed_on)


def _supervisor(main: Callable[[], int]) -> int:
    _restore_signals()
    _lift_file_limit()
    _mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE)
    _mount(b"proc", b"/proc", b"proc", 0)
    return main()


def _lift_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not 0 <= soft < _OPEN_FILES:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, max(hard, _OPEN_FILES)))
    except (ValueError, OSError):  # root in a container may not lift the hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _run_tied(body: Callable[[], int], passed_on: tuple[signal.Signals, ...]) -> int:
    """Run `body` in a forked child that dies with this process, and return its exit status.

    The pipe closes the gap between fork and prctl: its end shows that this process died before the signal was set.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)
        parent_is_gone = bool(select.select([read_end], [], [], 0)[0])
        os.close(read_end)
        _child(body if not parent_is_gone else lambda: CRASHED)
    os.close(read_end)
    status = _wait_passing_on(child, passed_on)
    os.close(write_end)
    return status


def _child(body: Callable[[], int]) -> NoReturn:
    """Run `body` in a forked child and leave without the caller's exit handlers."""
    status = CRASHED
    try:
        status = body()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else CRASHED
    except KeyboardInterrupt:
        status = ExitCode.INTERRUPTED
    except TestbedError as error:  # namespaces or mounts refused; `main` answers for its own errors
        print(f"mrc-testbed: {error}", file=sys.stderr)  # noqa: T201
        status = error.exit_code
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                status = status or CRASHED
        os._exit(status)


@contextmanager
def _held_signals() -> Iterator[None]:
    """Signals that end a run are for the supervisor; the other processes wait and pass them on.

    While processes are created signals are blocked, so that each is delivered to a process that can handle it.
    """
    before = {number: signal.getsignal(number) for number in _ENDING}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _restore_signals() -> None:
    for number in _ENDING:
        signal.signal(number, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


def _interrupt(number: int, _frame: object) -> None:
    """All three end a run alike; a child forked by a library just exits.

    Further ones are ignored: the terminal and the caller may deliver the same one twice, and the first already ends the
    run.
    """
    if os.getpid() != 1:
        os._exit(128 + number)
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number).name)


def _wait_passing_on(child: int, numbers: tuple[signal.Signals, ...]) -> int:
    for number in _ENDING:
        passing = (lambda received, _frame: _pass_on(child, received)) if number in numbers else signal.SIG_IGN
        signal.signal(number, passing)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _pass_on(child: int, number: int) -> None:
    try:
        os.kill(child, number)
    except ProcessLookupError:
        return  # it has just exited by itself; waitpid shows it


def mount_bpffs() -> Path:
    """Mount a private bpffs, visible in this sandbox only, over the machine's. Raises MissingCapability without kernel
    support."""
    _mount(b"bpffs", os.fsencode(_BPFFS), b"bpf", 0)
    return _BPFFS


def unmount_bpffs() -> None:
    """Unmount the bpffs that was mounted last."""
    _call("umount2", os.fsencode(_BPFFS), _MNT_DETACH)


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int) -> None:
    _call("mount", source, target, kind, flags, None)


def _call(function: str, *arguments: object) -> None:
    if getattr(_libc, function)(*arguments) == 0:
        return
    number = ctypes.get_errno()
    if number in (errno.EPERM, errno.ENOSYS, errno.EINVAL, errno.ENODEV, errno.ENOENT):
        reason = os.strerror(number)
        raise MissingCapability(f"the kernel refused {function}: {reason}", _UNRESTRICTED)
    raise OSError(number, f"{function}: {os.strerror(number)}")


@contextmanager
def scratch_network() -> Iterator[None]:
    """A fresh network namespace, gone after the block."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("unshare", CLONE_NEWNET)
        try:
            yield
        finally:
            _call("setns", own, CLONE_NEWNET)
    finally:
        os.close(own)


@contextmanager
def network_of(pid: int, node: str) -> Iterator[None]:
    """Enter the network namespace of `node`, held by process `pid`; children started in the block stay there.

    Raises FabricError if the process is gone.
    """
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        other = open_of(pid, node, "ns/net")
        try:
            _call("setns", other, CLONE_NEWNET)
        finally:
            os.close(other)
        try:
            yield
        finally:
            _call("setns", own, CLONE_NEWNET)
    finally:
        os.close(own)


def open_of(pid: int, node: str, name: str) -> int:
    """A descriptor of /proc/PID/`name` of the process that holds `node`. Raises FabricError when it is gone."""
    try:
        return os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise FabricError(node, "enter its namespace", "its shell is gone; was it killed?") from None
