"""How late this machine was while a test ran: a small process that does nothing but wake up every 5 ms, and reads how
much CPU time other virtual machines took away.

Run as `python -m tests.lateness` it is that process: for each line on standard input it writes what it has seen since
the line before. It is a process of its own, so that the test's own work in Python does not look like a late machine.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_EVERY_S = 0.005
LATE_MS = 20.0
"""T of most fabrics of the tests: a timer that is later can turn a path that works into one that is suspected."""
PRESSURE = 0.6
"""Part of the time in which some process waited for a CPU. Runs at the packet budget, which keep time, have 0.2 to 0.5
(testbed/checks/fidelity.py)."""
STOLEN = 0.05
"""Part of any 2 s. A shaper whose CPU is taken away for longer than its burst lasts (2.7 ms at 25 Mb/s) sends less than
its link carries: of seven tries of a full port the one that met 13 % fell 6 packets behind."""
_PRESSURE_FILE = Path("/proc/pressure/cpu")
_STAT_FILE = Path("/proc/stat")
_WINDOW_NS, _SHORTEST_WINDOW_NS = 2 * 10**9, 5 * 10**8


class Seen(NamedTuple):
    """The worst wake-up, the most CPU time that other machines had, and the part of the time in which some process of
    this one waited for a CPU."""

    worst_ms: float
    stolen: float
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
        self._worst_ms = self._stolen = 0.0
        *_, self._began_ns, self._began_us = self._ask()

    def seen(self) -> Seen:
        """What was seen since `begin`."""
        worst_ms, stolen, now_ns, pressure_us = self._ask()
        self._worst_ms, self._stolen = max(self._worst_ms, worst_ms), max(self._stolen, stolen)
        pressure = (pressure_us - self._began_us) * 1000 / max(now_ns - self._began_ns, 1)
        return Seen(self._worst_ms, self._stolen, pressure)

    def too_late(self) -> str:
        """In words, why nothing of this time is to be believed; empty when the machine kept time."""
        seen = self.seen()
        if seen.worst_ms > LATE_MS:
            return f"a timer of this machine was {seen.worst_ms:.0f} ms late (limit {LATE_MS:.0f})"
        if seen.stolen > STOLEN:
            return f"other virtual machines had {seen.stolen:.0%} of the CPU time for 2 s (limit {STOLEN:.0%})"
        if seen.pressure > PRESSURE:
            return f"processes waited for a CPU in {seen.pressure:.0%} of the time (limit {PRESSURE:.0%})"
        return ""

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _ask(self) -> tuple[float, float, int, int]:
        """(worst lateness since the last question in ms, most of the CPU time stolen, now in ns, time under CPU
        pressure in us)."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        worst_us, stolen = self._process.stdout.readline().split()
        return int(worst_us) / 1000, float(stolen), time.monotonic_ns(), _pressure_us()


def _pressure_us() -> int:
    """Total of `some` in /proc/pressure/cpu; 0 on kernels without it."""
    if not _PRESSURE_FILE.exists():
        return 0
    return int(_PRESSURE_FILE.read_text(encoding="ascii").split("total=")[1].split()[0])


class StolenTime:
    """The largest part of the CPU time that other virtual machines had, by windows."""

    def __init__(self, ticks: Callable[[], tuple[int, int]]) -> None:
        """`ticks`: since boot, over all CPUs: in all, and of these stolen."""
        self._ticks = ticks
        self.worst = 0.0
        self._began_ns, self._before = time.monotonic_ns(), ticks()

    def look(self, now_ns: int, least_ns: int = _WINDOW_NS) -> None:
        """End the window if it is long enough."""
        if now_ns - self._began_ns < least_ns:
            return
        ticks = self._ticks()
        total, stolen = (now - before for now, before in zip(ticks, self._before, strict=True))
        self.worst = max(self.worst, stolen / max(total, 1))
        self._began_ns, self._before = now_ns, ticks

    def take(self, now_ns: int) -> float:
        """The worst since the last call, with the window that has begun unless it is too short to say anything."""
        self.look(now_ns, _SHORTEST_WINDOW_NS)
        worst, self.worst = self.worst, 0.0
        return worst


def stolen_s() -> float:
    """CPU time since boot that other virtual machines had, of all CPUs together."""
    return _cpu_ticks()[1] / os.sysconf("SC_CLK_TCK")


def _cpu_ticks() -> tuple[int, int]:
    ticks = [int(word) for word in _STAT_FILE.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    return sum(ticks), ticks[-1]


def _wake_up_again_and_again() -> None:
    """Whatever passes between two looks at the clock beyond the planned pause is lateness, wherever it was spent."""
    worst_ns, last_ns = 0, time.monotonic_ns()
    stolen = StolenTime(_cpu_ticks)
    while True:
        asked = bool(select.select([0], [], [], _EVERY_S)[0])
        now_ns = time.monotonic_ns()
        worst_ns, last_ns = max(worst_ns, now_ns - last_ns - int(_EVERY_S * 1e9)), now_ns
        stolen.look(now_ns)
        if asked:
            if not os.read(0, 1 << 10):
                return
            sys.stdout.write(f"{worst_ns // 1000} {stolen.take(now_ns):.4f}\n")
            sys.stdout.flush()
            worst_ns = 0


if __name__ == "__main__":
    _wake_up_again_and_again()
