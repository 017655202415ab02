"""Tells the process that began a run from later ones with its number.

Linux says when a process began in /proc, other systems of Unix by `ps`, Windows by its kernel32.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_PROC = Path("/proc")
_QUERY_LIMITED_INFORMATION = 0x1000
"""The access to a process that any user has (Windows SDK, winnt.h)."""


def process_start(pid: int) -> int | str | None:
    """When a process began, to be compared only: on Linux in clock ticks since boot. None if it does not exist."""
    if sys.platform == "win32":
        return _start_on_windows(pid)
    return _start_in_proc(pid) if sys.platform == "linux" else _start_by_ps(pid)


def boot_id() -> str:
    """What tells this boot from others, where times count from the boot: on Linux; empty elsewhere."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""


def _start_in_proc(pid: int) -> int | None:
    try:
        text = (_PROC / f"{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(text.rpartition(")")[2].split()[19])


def _start_by_ps(pid: int) -> str | None:
    """Date and time in whole seconds."""
    shown = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)],
        env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=False,
    )
    return shown.stdout.strip() or None


if sys.platform == "win32":
    import ctypes

    def _start_on_windows(pid: int) -> int | None:
        """In units of 100 ns since 1601. A process that has ended may still be known to others."""
        kernel = ctypes.WinDLL("kernel32")
        kernel.OpenProcess.restype = ctypes.c_void_p
        process = kernel.OpenProcess(_QUERY_LIMITED_INFORMATION, False, pid)
        if not process:
            return None
        began, ended, in_kernel, in_user = (ctypes.c_uint64() for _ in range(4))
        times = (ctypes.byref(each) for each in (began, ended, in_kernel, in_user))
        kernel.GetProcessTimes(ctypes.c_void_p(process), *times)
        kernel.CloseHandle(ctypes.c_void_p(process))
        return None if ended.value else began.value
