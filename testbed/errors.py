"""Everything that can go wrong for a user, with the exit code it ends in (design, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


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
    """A scenario that cannot be run; `problems` holds every mistake of it at once."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


class UsageError(TestbedError):
    """A command line that asks for something impossible."""

    exit_code = ExitCode.USAGE


class MissingCapability(TestbedError):
    """This machine lacks something: what, and what to do about it."""

    exit_code = ExitCode.MISSING

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}. Fix: {fix}")
        self.what = what
        self.fix = fix


class FabricError(TestbedError):
    """The kernel refused something, or does not hold what the plan says."""

    def __init__(self, node: str, action: str, detail: str) -> None:
        super().__init__(f"{node}: {action}: {detail}")
        self.node = node
        self.action = action
        self.detail = detail


class RunError(TestbedError):
    """A run could not go on: which host (or phase) and why. Nothing is known about the transport then."""


class MachineLateError(RunError):
    """The machine was too slow for a run to begin as it must. Another try may do better."""


class WorkloadError(TestbedError):
    """The workload itself failed: a QP broke, or a rank did not finish in time. That is a result."""
