"""The machine's own figures over the measured part of a run. Judged in mrc_testbed.testbed.checks.fidelity."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mrc_testbed.hosts.stamps import clocks_apart_ns
from mrc_testbed.testbed.fabric.delay import KernelDelay
from mrc_testbed.testbed.runner.link_lateness import NOT_KNOWN, LinkLateness

_PRESSURE = Path("/proc/pressure/cpu")
_IDLE, _STEAL = (3, 4), 7
"""Columns of /proc/stat: idle and waiting for a disk; taken by other virtual machines (man 5 proc)."""
_COUNTED_AT_PORT_ONLY = (6, 10)
"""The Linux whose `enqueue_to_backlog` no longer adds a packet for a device that is not running to the drops of the
CPU's input queue ("net: enqueue_to_backlog() change vs not running device", net-next, March 2024)."""


class MachineWatch:
    """CPU pressure, CPU time that other virtual machines had, run-queue delay of the daemons and packets dropped by the
    kernel, from the beginning to `figures`; and the figures of the kernel's delay line and of links, where there are
    such."""

    def __init__(
        self,
        pids: dict[str, int],
        delay: KernelDelay | None = None,
        links: LinkLateness | None = None,
        no_routes: Callable[[], dict[str, int] | None] = lambda: None,
    ) -> None:
        """`no_routes`: what nodes had no route for; None where every route is written and stays."""
        self._pids = pids
        self._no_routes = no_routes
        self._delay, self._links = delay, links
        if delay is not None:
            delay.begin_figures()
        self._start_ns = time.monotonic_ns()
        self._pressure = _pressure_us()
        self._cpu_ticks = _cpu_ticks()
        self._waited = self._waits()
        self._softnet = _softnet_drops()
        self._apart_ns = clocks_apart_ns()
        self._stepped_ns = 0

    def figures(self) -> dict[str, Any]:
        """The part of fidelity.json that this class measures."""
        elapsed_ns = time.monotonic_ns() - self._start_ns
        pressure = _pressure_us()
        waited = self._waits()
        self._look_at_wall_clock()
        return {
            "measured_s": elapsed_ns / 1e9,
            "cpu_pressure_some": None
            if pressure is None or self._pressure is None
            else (pressure - self._pressure) * 1e3 / elapsed_ns,
            "cpu_stolen": self._stolen(),
            "run_delay": {
                host: round((waited[host] - before) / elapsed_ns, 4)
                for host, before in self._waited.items()
                if host in waited
            },
            "softnet_drops": _softnet_drops() - self._softnet,
            "wall_clock_step_ns": self._stepped_ns,
        }

    @property
    def softnet_has_dead_ports(self) -> bool:
        """`softnet_drops` has packets for ports that are down, as before Linux 6.10."""
        version = re.match(r"(\d+)\.(\d+)", platform.release())
        return version is not None and (int(version[1]), int(version[2])) < _COUNTED_AT_PORT_ONLY

    def _stolen(self) -> float:
        """Of the CPU time that this machine wanted."""
        wanted, stolen = (now - before for now, before in zip(_cpu_ticks(), self._cpu_ticks, strict=True))
        return round(stolen / wanted, 4) if wanted > 0 else 0.0

    def _look_at_wall_clock(self) -> None:
        """Figures are asked for once a second, in which a clock that is slewed moves by 0.5 ms at most."""
        apart_ns = clocks_apart_ns()
        self._stepped_ns = max(self._stepped_ns, abs(apart_ns - self._apart_ns))
        self._apart_ns = apart_ns

    def at_rest(self) -> dict[str, Any]:
        """The figures of the delay line and of links. Raises FabricError if the delay line has ended."""
        figures: dict[str, Any] = {} if self._delay is None else {"kernel_delay": asdict(self._delay.stats())}
        if self._links is not None:
            figures["late_on_links"] = self._links.figure()
        no_routes = self._no_routes()
        if no_routes is not None:
            figures["no_routes"] = no_routes
        return figures

    def unavailable(self) -> dict[str, str]:
        """Figures that this kernel does not have."""
        links = {} if self._links is not None else {"late_on_links": NOT_KNOWN}
        return (
            links
            if self._pressure is not None
            else {**links, "cpu_pressure_some": "this kernel does not count it (PSI)"}
        )

    def _waits(self) -> dict[str, int]:
        """Nanoseconds that each daemon was ready without a CPU, since its start; dead daemons are left out."""
        found = {}
        for host, pid in self._pids.items():
            try:
                found[host] = int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
        return found


def _pressure_us() -> int | None:
    """Microseconds in which some task waited for a CPU, since boot; None without PSI."""
    try:
        some = _PRESSURE.read_text(encoding="ascii").splitlines()[0]
    except OSError:
        return None
    return int(some.rpartition("total=")[2])


def _cpu_ticks() -> tuple[int, int]:
    """Since boot, over all CPUs: wanted, and of these taken by other virtual machines."""
    total = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
    ticks = [int(word) for word in total.split()[1:9]]
    return sum(count for column, count in enumerate(ticks) if column not in _IDLE), ticks[_STEAL]


def _softnet_drops() -> int:
    """Packets dropped before protocol processing because a CPU's backlog was full."""
    table = Path("/proc/net/softnet_stat").read_text(encoding="ascii")
    return sum(int(row.split()[1], 16) for row in table.splitlines())
