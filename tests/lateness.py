"""How late this machine was while a test ran: a small process that does nothing but wake up every 5 ms.

Run as `python -m tests.lateness` it is that process: for each line on standard input it writes what it has seen since
the line before. It is a process of its own, so that the test's own work in Python does not look like a late machine.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

_EVERY_S = 0.005
LATE_MS = 20.0
"""T of most fabrics of the tests: a timer that is later can turn a path that works into one that is suspected."""
PRESSURE = 0.6
"""Part of the time in which some process waited for a CPU. Runs at the packet budget, which keep time, have 0.2 to 0.5
(testbed/checks/fidelity.py)."""
_PRESSURE_FILE = Path("/proc/pressure/cpu")


class Seen(NamedTuple):
    """The worst wake-up, and the part of the time in which some process of the machine waited for a CPU."""

    worst_ms: float
    pressure: float


class Lateness:
    """The watching process, as its user sees it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.lateness"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        self.begin()

    def begin(self) -> None:
        """Forget what was seen so far."""
        self._worst_ms = 0.0
        _, self._began_ns, self._began_us = self._ask()

    def seen(self) -> Seen:
        """What was seen since `begin`."""
        worst_ms, now_ns, pressure_us = self._ask()
        self._worst_ms = max(self._worst_ms, worst_ms)
        return Seen(self._worst_ms, (pressure_us - self._began_us) * 1000 / max(now_ns - self._began_ns, 1))

    def too_late(self) -> str:
        """In words, why nothing of this time is to be believed; empty when the machine kept time."""
        seen = self.seen()
        if seen.worst_ms > LATE_MS:
            return f"a timer of this machine was {seen.worst_ms:.0f} ms late (limit {LATE_MS:.0f})"
        if seen.pressure > PRESSURE:
            return f"processes waited for a CPU in {seen.pressure:.0%} of the time (limit {PRESSURE:.0%})"
        return ""

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _ask(self) -> tuple[float, int, int]:
        """(worst lateness since the last question in ms, now in ns, time under CPU pressure in us)."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        worst_us = int(self._process.stdout.readline())
        return worst_us / 1000, time.monotonic_ns(), _pressure_us()


def _pressure_us() -> int:
    """Total of `some` in /proc/pressure/cpu; 0 on kernels without it."""
    if not _PRESSURE_FILE.exists():
        return 0
    return int(_PRESSURE_FILE.read_text(encoding="ascii").split("total=")[1].split()[0])


def _wake_up_again_and_again() -> None:
    """Whatever passes between two looks at the clock beyond the planned pause is lateness, wherever it was spent."""
    worst_ns, last_ns = 0, time.monotonic_ns()
    while True:
        asked = bool(select.select([0], [], [], _EVERY_S)[0])
        now_ns = time.monotonic_ns()
        worst_ns, last_ns = max(worst_ns, now_ns - last_ns - int(_EVERY_S * 1e9)), now_ns
        if asked:
            if not os.read(0, 1 << 10):
                return
            sys.stdout.write(f"{worst_ns // 1000}\n")
            sys.stdout.flush()
            worst_ns = 0


if __name__ == "__main__":
    _wake_up_again_and_again()
