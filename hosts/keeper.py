"""Keeps a program of others: starts it, and ends it with all that it has started, whatever becomes of who asked.

    caller  --start-->  keeper  --fork-->  first, PID 1 of a PID namespace  --fork-->  program

Started as `python -m mrc_testbed.hosts.keeper SPEC`, where SPEC is JSON: `tie` is our end of a socket pair, `caller`
the PID of who asked, `command` the program, `owner` its user and group or null for ours, `network` a network namespace
to enter or null, `control` what becomes descriptor 3 or null, `then` a command to run when all is gone. It says on
`tie` how the program is kept, or the number of the error that it cannot be started by.

All ends when the program ends, when the other end of `tie` is closed, and when the caller dies. Where the machine
allows a PID namespace the kernel ends all that is in it, whatever session it is in. Else the keeper is the subreaper:
all orphans become its children, and it kills until there is none. It ends as the program ended.

Source: pid_namespaces(7), user_namespaces(7), prctl(2), pidfd_open(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

NAMESPACE, SUBREAPER, GROUP = "PID namespace", "subreaper", "process group"
"""How a program is kept; the last one on systems that are not Linux."""
CONTROL = 3
"""The descriptor of the control channel of a program that has one."""
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_MS_PRIVATE, _MS_REC = 1 << 18, 1 << 14
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_ENDING = tuple(each for each in signal.Signals if each.name in ("SIGINT", "SIGTERM", "SIGHUP"))
_LOOK_MS = 200
"""Between looks for orphans that have ended."""
_THEN_S = 20
_ROUNDS = 2000
"""Rounds of killing, while new processes come."""
_LINUX = sys.platform == "linux"


def main() -> NoReturn:
    """Entry point of `python -m mrc_testbed.hosts.keeper`."""
    spec = json.loads(sys.argv[1])
    given = [spec[name] for name in ("tie", "network", "control") if spec[name] is not None]
    tie = socket.socket(fileno=os.dup2(spec["tie"], max(CONTROL, *given) + 1, inheritable=False))
    os.close(spec["tie"])
    for number in _ENDING:
        signal.signal(number, _leave)
    status = 0
    try:
        _take_descriptors(spec)
        way = _way(spec)
        status = _keep_in_namespace(spec, tie) if way == NAMESPACE else _keep(spec, tie, way)
    except OSError as error:
        _say(tie, {"errno": error.errno})
    finally:
        if spec["then"]:
            _run(spec["then"])
    _end_as(status)


def _run(command: list[str]) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_THEN_S, check=False)


def _take_descriptors(spec: dict[str, Any]) -> None:
    """Enter the network, and put the control channel where the program looks for it. Raises OSError."""
    network, control = spec["network"], spec["control"]
    if network is not None:
        _call("setns", network, _CLONE_NEWNET)
        os.close(network)
    if control not in (None, CONTROL):
        os.dup2(control, CONTROL)
        os.close(control)


def _leave(number: int, _frame: object) -> NoReturn:
    """Ended from outside: what is kept ends first."""
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _end_as(status: int) -> NoReturn:
    """`status`: as subprocess has it, negative for a signal."""
    if status < 0:
        import resource  # not everywhere

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):  # of SIGKILL
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 128 - status)


def _say(tie: socket.socket, fields: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # nobody waits for it any more
        tie.sendall(json.dumps(fields).encode() + b"\n")


# In a PID namespace


def _way(spec: dict[str, Any]) -> str:
    """How this machine lets a program be kept. What it allows is tried by a process that ends. From a namespace of its
    own a container could not be started by everybody, and no command after its end."""
    if not _LINUX:
        return GROUP
    if spec["then"]:
        return SUBREAPER
    child = os.fork()
    if child == 0:
        os._exit(_attempt(lambda: _attempt_first()))
    return SUBREAPER if os.waitpid(child, 0)[1] else NAMESPACE


def _attempt(steps: Callable[[], object]) -> int:
    try:
        return 1 if steps() else 0
    except BaseException:
        return 1


def _attempt_first() -> int:
    _leave_namespaces()
    first = os.fork()
    if first == 0:
        os._exit(_attempt(_own_processes))
    return os.waitpid(first, 0)[1]


def _leave_namespaces() -> None:
    """The next child is the first process of a PID namespace. Who is not root gets a user namespace for that, in which
    all stay who they are."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _CLONE_NEWPID | _CLONE_NEWNS | (_CLONE_NEWUSER if user else 0))
    if user:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def _own_processes() -> None:
    """A /proc that shows the processes of this namespace."""
    _call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
    _call("mount", b"proc", b"/proc", b"proc", 0, None)


def _keep_in_namespace(spec: dict[str, Any], tie: socket.socket) -> int:
    """The program's status."""
    _leave_namespaces()
    told, telling = os.pipe()
    alive, held = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(held)
        os._exit(_attempt(lambda: _first(spec, tie, alive, telling)))
    os.close(telling)
    os.close(alive)
    statuses: dict[int, int] = {}
    try:
        _let_go(spec)
        _wait(spec, tie, first, statuses)
    finally:
        if first not in statuses:
            os.kill(first, signal.SIGKILL)
            os.waitpid(first, 0)  # which returns when all of the namespace is gone
    return int(os.read(told, 16) or -signal.SIGKILL)


def _first(spec: dict[str, Any], tie: socket.socket, alive: int, telling: int) -> None:
    """The first process of the namespace: with its end all others end."""
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if select.select([alive], [], [], 0)[0]:  # the keeper died before that was said
        return
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    _own_processes()
    try:
        program = _started(spec)
    except OSError as error:
        _say(tie, {"errno": error.errno})
        return
    _say(tie, {"kept_by": NAMESPACE})
    tie.close()
    while True:
        pid, status = os.wait()
        if pid == program:
            os.write(telling, str(os.waitstatus_to_exitcode(status)).encode())
            return


# By the keeper itself


def _keep(spec: dict[str, Any], tie: socket.socket, way: str) -> int:
    """The program's status."""
    if way == SUBREAPER:
        _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    program = _started(spec)
    _say(tie, {"kept_by": way})
    statuses: dict[int, int] = {}
    try:
        _wait(spec, tie, program, statuses)
    finally:
        _kill_all(program, statuses)
    return statuses.get(program, -signal.SIGKILL)


def _kill_all(program: int, statuses: dict[int, int]) -> None:
    """Faster than that forks."""
    for _ in range(_ROUNDS):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(program, signal.SIGKILL)
        for pid in _descendants():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not _reap(statuses):
            return
        select.select([], [], [], 0.001)


def _descendants() -> list[int]:
    """All processes below this one, by /proc where there is one."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc") if _LINUX else ()):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = Path(f"/proc/{name}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(name))
    found = [os.getpid()]
    for pid in found:
        found += children.get(pid, [])
    return found[1:]


# Both


def _wait(spec: dict[str, Any], tie: socket.socket, child: int, statuses: dict[int, int]) -> None:
    """Until the child has ended, or is to end."""
    poll, watched = select.poll(), []
    poll.register(tie, select.POLLIN)
    for pid in (spec["caller"], child) if _LINUX else ():
        with contextlib.suppress(ProcessLookupError):
            watched.append(os.pidfd_open(pid))
            poll.register(watched[-1], select.POLLIN)
    if os.getppid() != spec["caller"]:
        return
    while child not in statuses and not poll.poll(_LOOK_MS):
        _reap(statuses)
    _reap(statuses)


def _reap(statuses: dict[int, int]) -> bool:
    """Take note of all children that have ended. Returns whether there are others."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return True
            statuses[pid] = os.waitstatus_to_exitcode(status)
    return False


def _started(spec: dict[str, Any]) -> int:
    """The PID of the program. Raises OSError."""
    owner = spec["owner"]
    rights: dict[str, Any] = {"user": owner[0], "group": owner[1], "extra_groups": []} if owner else {}
    process = subprocess.Popen(
        spec["command"], pass_fds=_only_of_the_program(spec), start_new_session=True, preexec_fn=_as_at_first, **rights
    )
    process.returncode = 0  # it is waited for by its number
    _let_go(spec)
    return process.pid


def _only_of_the_program(spec: dict[str, Any]) -> tuple[int, ...]:
    return () if spec["control"] is None else (CONTROL,)


def _let_go(spec: dict[str, Any]) -> None:
    """Gives up descriptors that the program alone is to hold, so that its end is the end of its streams."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, *_only_of_the_program(spec)):
        os.dup2(nowhere, each, inheritable=False)
    os.close(nowhere)


def _as_at_first() -> None:
    """Undoes settings of the keeper that the program would inherit."""
    if _LINUX:
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for number in _ENDING:
        signal.signal(number, signal.SIG_DFL)


def _call(function: str, *arguments: object) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
