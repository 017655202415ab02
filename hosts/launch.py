"""Becomes a program of the user on a host: in its network, with its own mounts, limits and priority; then waits.

Started as `python -m mrc_testbed.hosts.launch SPEC`, where SPEC is JSON: `network` and `go` are descriptors (the
network namespace of the host, a pipe), `mounts` one of the mounts of a program that is there already, which it joins,
or null, `name` of the host, `files` pairs of name and source, `keep` folders below /tmp and /dev/shm that stay visible,
`disk_bytes` the room of /tmp and of /dev/shm, `memory_bytes`, `nic` what is to be found in /sys/class/infiniband, or
null, `command`, `environment`. The program begins when a byte comes through `go`; at its end
without one nothing is run.

The machine has the host's name. /tmp, /dev/shm and the scratch folder are the program's own and go with it. It runs
under SCHED_IDLE: whatever it does, endpoints get the CPU first. It keeps root's rights over its own network alone. What
cannot be done is said in one line, with exit status 126, or 127 for a command that is not there.

Source: mount_namespaces(7), uts_namespaces(7), sched(7), capabilities(7), credentials(7).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from mrc_testbed.hosts.infiniband import own_nic
from mrc_testbed.hosts.light import lighten_session
from mrc_testbed.hosts.scratch import HOME, TMP, WORK

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWNET = 0x00020000, 0x04000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
_PR_CAPBSET_DROP = 24
_TAKEN = (16, 17, 19, 20, 21, 22, 23, 24, 25, 27)
"""CAP_SYS_MODULE, RAWIO, PTRACE, PACCT, ADMIN, BOOT, NICE, RESOURCE, TIME, MKNOD: rights over the whole machine, over
other processes, and over one's own limits and priority."""
_OPEN_FILES = 4096
CANNOT_RUN, NOT_FOUND = 126, 127
"""As shells say it."""

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> NoReturn:
    """Entry point of `python -m mrc_testbed.hosts.launch`."""
    spec = json.loads(sys.argv[1])
    try:
        os.setsid()
        _call("setns", spec["network"], _CLONE_NEWNET)
        os.close(spec["network"])
        _call("unshare", _CLONE_NEWUTS)
        socket.sethostname(spec["name"])
        if spec["mounts"] is None:
            sources = [(name, Path(source).read_bytes(), Path(source).stat().st_mode) for name, source in spec["files"]]
            _own_mounts(spec)
            _own_files(sources)
        else:
            _call("setns", spec["mounts"], _CLONE_NEWNS)
            os.close(spec["mounts"])
        os.chdir(WORK)
        _limit(spec["memory_bytes"])
    except OSError as error:
        _end(CANNOT_RUN, f"{spec['name']}: cannot prepare {spec['command'][0]}: {error}")
    if not os.read(spec["go"], 1):
        sys.exit(0)
    _become(spec["command"], spec["environment"])


def _own_mounts(spec: dict[str, Any]) -> None:
    _call("unshare", _CLONE_NEWNS)
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    kept = {Path(folder): os.open(folder, os.O_PATH) for folder in spec["keep"]}
    _mount("sysfs", "/sys", "sysfs", 0)
    if spec["nic"] is not None:
        own_nic(spec["nic"], _mount)
    for folder in (TMP, Path("/dev/shm")):
        _mount("tmpfs", str(folder), "tmpfs", 0, f"size={spec['disk_bytes']},mode=1777")
    for folder, descriptor in kept.items():
        folder.mkdir(parents=True, exist_ok=True)
        _mount(f"/proc/self/fd/{descriptor}", str(folder), None, _MS_BIND | _MS_REC)
        os.close(descriptor)


def _own_files(files: list[tuple[str, bytes, int]]) -> None:
    HOME.mkdir()
    WORK.mkdir()
    for name, content, mode in files:
        path = WORK / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode & 0o777)


def _limit(memory_bytes: int) -> None:
    """Where memory runs out, programs are killed first. From SCHED_IDLE a process without CAP_SYS_NICE comes back to no
    better priority than its own."""
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    lighten_session(os.getpid())
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    _unlock_memory()
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    for right in _TAKEN:
        _call("prctl", _PR_CAPBSET_DROP, right, 0, 0, 0)


def _unlock_memory() -> None:
    """Programs with verbs ask whether memory may be locked. Without root the limit stays what it is."""
    _, most = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (PermissionError, ValueError):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (most, most))


def _become(command: list[str], environment: dict[str, str]) -> NoReturn:
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python; a program would inherit that
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError:
        _end(NOT_FOUND, f"{command[0]}: there is no such command")
    except OSError as error:
        _end(CANNOT_RUN, f"{command[0]}: cannot be run: {error.strerror}")


def _end(status: int, why: str) -> NoReturn:
    sys.stderr.write(f"mrc-testbed: {why}\n")
    sys.exit(status)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = (each.encode() if each is not None else None for each in (source, target, kind))
    _call("mount", *words, flags, options.encode() if options else None)


def _call(function: str, *arguments: object) -> None:
    if getattr(_libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
