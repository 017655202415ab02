"""How many CPUs this process may use, which may be fewer than the machine has: in a container, a cgroup, a batch job.

Sources: sched_setaffinity(2); cgroup v2, "cpu.max" (Documentation/admin-guide/cgroup-v2.rst); cgroup v1,
"cpu.cfs_quota_us" (Documentation/scheduler/sched-bwc.rst).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")


def usable_cpus() -> int:
    """The CPUs that this process may run on, and no more than the quotas of its cgroups, rounded up."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux alone has it
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min([count, *(math.ceil(quota) for quota in cgroup_quotas(_OWN_CGROUPS, _CGROUPS))]))


def cgroup_quotas(own: Path, mounted: Path) -> Iterator[float]:
    """CPUs that the quota of each cgroup around this process allows. `own`: /proc/self/cgroup."""
    for folder in own_cgroups(own, mounted, "cpu"):
        period = quota = ""
        if words := _text(folder / "cpu.max").split():
            quota, period = words
        elif (words := _text(folder / "cpu.cfs_quota_us").split()) and words != ["-1"]:
            quota, period = words[0], _text(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.strip().isdigit() and int(period) > 0:
            yield int(quota) / int(period)


def own_cgroups(own: Path, mounted: Path, controller: str) -> Iterator[Path]:
    """The folders of a controller's cgroups that this process is in, innermost first, as far as they can be seen."""
    for line in _text(own).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = mounted / controllers if controllers else mounted
        folder = top / path.lstrip("/")
        yield from (each for each in (folder, *folder.parents) if each.is_relative_to(top))


def _text(file: Path) -> str:
    """Empty where there is no such file, as on other systems and in the outermost cgroup."""
    try:
        return file.read_text(encoding="ascii")
    except OSError:
        return ""
