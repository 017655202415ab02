"""A run's own mount, PID and network namespaces, which the kernel removes when the supervisor dies by any cause.

    caller  --fork-->  warden  --fork-->  supervisor, PID 1 of its PID namespace, runs `main`

When the supervisor ends (return, exception, signal, kill -9) the kernel kills every process of its PID namespace; with
the last process go the network namespaces, their links, routes and queues. When the caller or the warden dies, the
parent-death signal kills the supervisor. The caller's own namespaces stay unchanged. Who is not root of the machine
gets a user namespace as well, and is root in it. A sandbox has a folder that only its processes see
(hosts/scratch.py). Source: pid_namespaces(7), user_namespaces(7), prctl(2).
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from mrc_testbed.hosts.scratch import PRIVATE
from mrc_testbed.testbed.errors import ExitCode, FabricError, MissingCapability, RunError, TestbedError, lack_of
from mrc_testbed.testbed.fabric import privileges
from mrc_testbed.testbed.fabric.limits import lift_file_limit
from mrc_testbed.testbed.fabric.processes import Process
from mrc_testbed.testbed.interrupts import ignored_by_wish
from mrc_testbed.testbed.terminal import say

T = TypeVar("T")
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_MS_BIND = 1 << 12
_MS_PRIVATE = 1 << 18
_MS_REC = 1 << 14
_MNT_DETACH = 2
_SYSFS = Path("/sys")
BPFFS = _SYSFS / "fs" / "bpf"
_NAMES = Path("/etc/hosts")
OWN_NAMES = PRIVATE / "hosts"
"""What processes of a sandbox see as /etc/hosts."""
_PR_SET_PDEATHSIG = 1
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CRASHED = 70
"""Exit status of a supervisor whose `main` raised; the traceback is on stderr."""
Refused = Callable[[MissingCapability], None]
"""Told why there can be no sandbox."""
Signals = tuple[signal.Signals, ...]

_REFUSALS = (
    *(errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EINVAL, errno.ENODEV, errno.ENOENT),
    *(errno.ENOSPC, errno.EUSERS),
)

_libc = ctypes.CDLL(None, use_errno=True)


def run_isolated(
    main: Callable[[], int],
    passed_on: Signals = _ENDING,
    meanwhile: Callable[[], None] = lambda: None,
) -> int:
    """Run `main` in fresh namespaces and return its exit status, or 128 + N if signal N ended it.

    The supervisor receives the signals of `passed_on` that are sent to the caller; Ctrl-C also reaches it from the
    terminal, as a member of the foreground process group. The first one raises KeyboardInterrupt, later ones are
    ignored; if `main` does not catch it, the status is 130. Where the kernel refuses the namespaces the status is 4,
    and standard error says why. The caller does `meanwhile` while `main` runs.
    """
    return _run_isolated(main, passed_on, _print_refusal, meanwhile)


def _run_isolated(
    main: Callable[[], int],
    passed_on: Signals,
    refused: Refused,
    meanwhile: Callable[[], None] = lambda: None,
) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    heard = tuple(number for number in _ENDING if not ignored_by_wish(number))
    passed_on = tuple(number for number in passed_on if number in heard)
    with _held_signals():
        return run_tied(lambda: _warden(main, heard, passed_on, refused), passed_on, meanwhile)


def _print_refusal(error: MissingCapability) -> None:
    say(f"mrc-testbed: {error}", err=True)


def call_isolated(function: Callable[[], Any], meanwhile: Callable[[], None] = lambda: None) -> Any:
    """Like run_isolated, and returns the result of `function`, which must be JSON.

    Raises MissingCapability where there can be no sandbox, RunError if it failed, KeyboardInterrupt if it was
    interrupted.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as answer:

        def main() -> int:
            try:
                json.dump(function(), answer)
            except MissingCapability as error:
                refused(error)
                return error.exit_code
            answer.flush()
            return 0

        def refused(error: MissingCapability) -> None:
            json.dump([error.what, error.fix], answer)
            answer.flush()

        status = _run_isolated(main, _ENDING, refused, meanwhile)
        answer.seek(0)
        if status == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        if status == ExitCode.MISSING:
            raise MissingCapability(*json.load(answer))
        if status != 0:
            raise RunError(f"a probe in fresh namespaces ended with status {status}; its error is above")
        return json.load(answer)


def _warden(main: Callable[[], int], heard: Signals, passed_on: Signals, refused: Refused) -> int:
    """Create the namespaces; the PID namespace applies to the next child only, hence the second fork."""
    try:
        _leave_namespaces()
    except MissingCapability as error:
        refused(error)
        return error.exit_code
    return run_tied(lambda: _supervisor(main, heard, refused), passed_on)


def _leave_namespaces() -> None:
    others = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET
    if not privileges.needs_user_namespace():
        _call("unshare", others)
        return
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", CLONE_NEWUSER)
    try:
        privileges.become_root_of_own(uid, gid)
    except OSError as error:
        raise privileges.refusal("a user namespace", error.errno or 0) from None
    _call("unshare", others)


def _supervisor(main: Callable[[], int], heard: Signals, refused: Refused) -> int:
    _restore_signals(heard)
    lift_file_limit()
    try:
        _mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE)
        _mount(b"proc", b"/proc", b"proc", 0)
        _own_files()
    except MissingCapability as error:
        refused(error)
        return error.exit_code
    return main()


def _own_files() -> None:
    """The folder PRIVATE, and an /etc/hosts in it that may get names of hosts later, for every process here."""
    _mount(b"tmpfs", os.fsencode(PRIVATE.parent), b"tmpfs", 0)
    PRIVATE.mkdir()
    OWN_NAMES.write_bytes(_NAMES.read_bytes() if _NAMES.exists() else b"")
    if _NAMES.exists():
        _mount(os.fsencode(OWN_NAMES), os.fsencode(_NAMES), None, _MS_BIND)


def run_tied(body: Callable[[], int], passed_on: Signals, meanwhile: Callable[[], None] = lambda: None) -> int:
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
    status = _wait_passing_on(child, passed_on, meanwhile)
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
        say(f"mrc-testbed: {error}", err=True)
        status = error.exit_code
    except BaseException as error:
        lack = lack_of(error)
        say(f"mrc-testbed: {lack}\n" if lack else traceback.format_exc(), err=True, end="")
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


def _restore_signals(heard: Signals) -> None:
    for number in heard:
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


def _wait_passing_on(child: int, numbers: Signals, meanwhile: Callable[[], None]) -> int:
    passed = []

    def pass_on(number: int, _frame: object) -> None:
        passed.append(number)
        _pass_on(child, number)

    for number in _ENDING:
        signal.signal(number, pass_on if number in numbers else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    meanwhile()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 0 and passed:  # it was over already; the caller has to stop all the same
        return ExitCode.INTERRUPTED
    return code if code >= 0 else 128 - code


def _pass_on(child: int, number: int) -> None:
    try:
        os.kill(child, number)
    except ProcessLookupError:
        return  # it has just exited by itself; waitpid shows it


def mount_bpffs() -> Path:
    """Mount a private bpffs, visible in this sandbox only, over the machine's. Raises MissingCapability without kernel
    support."""
    _mount(b"bpffs", os.fsencode(BPFFS), b"bpf", 0)
    return BPFFS


def unmount_bpffs() -> None:
    """Unmount the bpffs that was mounted last."""
    _call("umount2", os.fsencode(BPFFS), _MNT_DETACH)


@contextmanager
def mounted_sysfs() -> Iterator[Path]:
    """The sysfs of the network namespace that this thread is in, in place of the machine's."""
    _mount(b"sysfs", os.fsencode(_SYSFS), b"sysfs", 0)
    try:
        yield _SYSFS
    finally:
        _call("umount2", os.fsencode(_SYSFS), _MNT_DETACH)


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int) -> None:
    _call("mount", source, target, kind, flags, None)


def _call(function: str, *arguments: object) -> None:
    if getattr(_libc, function)(*arguments) == 0:
        return
    number = ctypes.get_errno()
    if number in _REFUSALS:
        raise privileges.refusal(function, number)
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


def made_in_network_of(pid: int, node: str, make: Callable[[], T]) -> T:
    """What `make` gives in the network namespace of `node`, held by process `pid`. A thread enters it and ends there:
    from within the user namespace of a rootless sandbox there is no way back. Raises FabricError, and what `make`
    does."""
    other = open_of(pid, node, "ns/net")

    def enter_and_make() -> T:
        _call("setns", other, CLONE_NEWNET)
        return make()

    try:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(enter_and_make).result()
    finally:
        os.close(other)


def enter_user_namespace_of(process: Process) -> None:
    """Become root in the user namespace of a rootless sandbox, for good. Raises MissingCapability where it is not this
    user's own."""
    try:
        other = os.open(process.path("ns/user"), os.O_RDONLY | os.O_CLOEXEC)
        try:
            _call("setns", other, CLONE_NEWUSER)
        finally:
            os.close(other)
    except (OSError, MissingCapability):
        raise MissingCapability(
            "a prompt on the nodes of this run needs root", "run the same command with sudo"
        ) from None


def open_of(pid: int, node: str, name: str) -> int:
    """A descriptor of /proc/PID/`name` of the process that holds `node`. Raises FabricError when it is gone."""
    try:
        return os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise FabricError(node, "enter its namespace", "its shell is gone; was it killed?") from None
