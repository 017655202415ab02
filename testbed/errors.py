"""All errors that a user can meet, with their exit codes (docs/ci.md)."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NoReturn


class ExitCode(IntEnum):
    """Exit codes of `mrc-testbed`."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    MISSING = 4
    INTERRUPTED = 130


class TestbedError(Exception):
    """Root of all errors that are shown to the user as one line, without a traceback."""

    exit_code = ExitCode.INCONCLUSIVE
    __test__ = False  # or pytest takes the name for a test class


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file. `line` and `column` count from 1; `path` is the dotted key, as in `faults.0.at`."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.path}: {self.message}"


class ScenarioError(TestbedError):
    """A scenario with mistakes; `problems` holds all of them."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


class UsageError(TestbedError):
    """An impossible command line."""

    exit_code = ExitCode.USAGE


class MissingCapability(TestbedError):
    """This machine lacks a feature; names it and the fix."""

    exit_code = ExitCode.MISSING

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}. Fix: {fix}")
        self.what = what
        self.fix = fix


class FabricError(TestbedError):
    """The kernel refused a command, or differs from the plan."""

    def __init__(self, node: str, action: str, detail: str) -> None:
        super().__init__(f"{node}: {action}: {detail}")
        self.node = node
        self.action = action
        self.detail = detail


class RunError(TestbedError):
    """A run could not continue: which host or phase, and why. The transport remains unjudged."""


class NotRepeatedError(TestbedError):
    """Runs in virtual time that had to be the same and are not, so none of their figures is known."""


class MachineLateError(RunError):
    """The machine was too slow for a run to begin as it must. Another try may do better."""


class WorkloadError(TestbedError):
    """The workload failed: a QP broke, or a rank missed the time limit. This is a result."""


class UnwrittenLimitError(WorkloadError):
    """A rank missed a time limit that nobody wrote. It followed from an estimate, so it is no result."""


_FULL_DISK = "the disk is full"
_NO_MEMORY = "memory ran out; give the machine more, or raise the limit (ulimit -v)"
_LACKING = {
    "ENOSPC": _FULL_DISK,
    "EDQUOT": f"{_FULL_DISK} for this user",
    "EIO": "a disk or another device failed (input/output error)",
    "ENOMEM": _NO_MEMORY,
    "EAGAIN": "this user may start no more processes; raise the limit (ulimit -u)",
    "EMFILE": "this process may open no more files; raise the limit (ulimit -n)",
    "ENFILE": "this machine has too many open files",
}
_BY_NUMBER = {getattr(errno, name): words for name, words in _LACKING.items() if hasattr(errno, name)}
_UNLOADED = ("failed to map segment", "llocate memory")
"""What the loader of shared libraries says where memory runs out."""
_UNSET = ("error return without exception set", "without setting an exception")
"""What Python says where it failed and made no exception: short of memory it may lack that for the exception too."""

_STATUS_OF_A_LACK = int(ExitCode.INCONCLUSIVE)
"""Worked out before memory can be short."""
_RESERVE = bytearray(1 << 20)
"""Given back when memory ran out, so that there is some to say so with."""


def lack_of(error: BaseException | None) -> str:
    """What the machine lacked, where it refused a file, a process or memory: then it is no mistake of the program, nor
    does it say anything of a scenario. Else empty."""
    if isinstance(error, MemoryError | SystemError):
        _RESERVE.clear()
    if isinstance(error, MemoryError) or (
        isinstance(error, ImportError) and any(one in str(error) for one in _UNLOADED)
    ):
        return _NO_MEMORY
    if isinstance(error, SystemError) and any(one in str(error) for one in _UNSET) and memory_is_limited():
        return _NO_MEMORY
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return _LACKING["EAGAIN"]
    return _BY_NUMBER.get(error.errno or 0, "") if isinstance(error, OSError) else ""


def was_interrupted(error: Exception) -> bool:
    """Whether Ctrl-C, or a signal that counts as one, is behind it. pydantic builds validators in machine code: what is
    raised meanwhile becomes a line in the text of its SchemaError."""
    return type(error).__name__ == "SchemaError" and KeyboardInterrupt.__name__ in str(error)


def end_for(lack: str) -> NoReturn:
    """Say what the machine lacks and end at once: what Python does at its own end may lack the same."""
    try:
        os.write(2, f"mrc-testbed: {lack}\n".encode())
    finally:
        os._exit(_STATUS_OF_A_LACK)


def memory_is_limited() -> bool:
    """Whether this process has a limit of its address space."""
    try:
        import resource  # a shared library, so it may not load
    except (ImportError, MemoryError) as error:
        return bool(lack_of(error))
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
