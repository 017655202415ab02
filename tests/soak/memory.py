"""Memory of processes over time, and whether it grows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression

WARM_UP = 1 / 3
"""Part of the time that may fill caches and tables of events that there is room for."""
LEAST_KIB = 1536
"""Growth that says nothing: an arena more of the allocator."""
KIB_AN_HOUR = 8 * 1024
"""Growth that may be: the names of what happened."""
_ROLES = {"mrc_testbed.hosts.forker": "daemon", "mrc_testbed.testbed.web": "server", "mrc-testbed run": "command"}


@dataclass
class Watch:
    """Samples of the processes of one run, by role and number: seconds since the first, KiB of its own memory."""

    samples: dict[tuple[str, int], list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))

    def look(self, at_s: float, pids: Iterable[int]) -> None:
        """One sample of each, while there are daemons: before and afterwards is no steady time."""
        seen = {(role, pid): kib for pid in pids if (role := _role(pid)) and (kib := _own_kib(pid))}
        if any(role == "daemon" for role, _ in seen):
            for who, kib in seen.items():
                self.samples[who].append((at_s, kib))

    def growths(self) -> list[Growth]:
        """Of each process that was there for most of the time, the commands in the order in which they were begun."""
        longest = max((len(seen) for seen in self.samples.values()), default=0)
        kept = {who: seen for who, seen in sorted(self.samples.items()) if len(seen) > longest / 2}
        return [growth(f"{role} {number}", kept[role, pid]) for number, (role, pid) in enumerate(kept, 1)]


@dataclass(frozen=True)
class Growth:
    """Of one process after its warm-up. `kib`: what it grew by over `seconds`, along a straight line."""

    name: str
    end_kib: int
    kib: float
    seconds: float

    @property
    def flat(self) -> bool:
        """Whether it is within what may be."""
        return self.kib <= LEAST_KIB + KIB_AN_HOUR * self.seconds / 3600

    def __str__(self) -> str:
        rate = self.kib / max(self.seconds, 1) * 60
        word = "flat" if self.flat else "GROWS"
        return f"{self.name:<12} {self.end_kib / 1024:7.1f} MiB  {self.kib:+8.0f} KiB  {rate:+7.1f} KiB/min  {word}"


def _role(pid: int) -> str:
    """Of a process that is looked at; empty for others, such as shells of nodes."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
    return next((role for sign, role in _ROLES.items() if sign in words), "")


def _own_kib(pid: int) -> int:
    """Memory of its own; 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")), 0)


def growth(name: str, samples: list[tuple[float, int]]) -> Growth:
    """By the line of least squares through what came after the warm-up."""
    begin_s = samples[0][0] + (samples[-1][0] - samples[0][0]) * WARM_UP
    kept = [(at_s, kib) for at_s, kib in samples if at_s >= begin_s]
    seconds = kept[-1][0] - kept[0][0]
    slope = linear_regression(*zip(*kept, strict=True)).slope if seconds else 0.0
    return Growth(name, samples[-1][1], slope * seconds, seconds)


def sizes(folder: Path) -> Mapping[str, int]:
    """Bytes of each file of a run folder."""
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
