from __future__ import annotations

import os
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.runner import fidelity
from mrc_testbed.testbed.runner.fidelity import MachineWatch
from mrc_testbed.testbed.runner.link_lateness import LinkLateness
from mrc_testbed.testbed.runner.port_rates import ShapeWatch
from mrc_testbed.testbed.switching.port_counts import COUNTS, LateArrivals, PortCounts, counts_of
from mrc_testbed.topos.shape import burst_bytes

S = 1_000_000_000
RATE_BPS = 8_000_000
RATE = RATE_BPS // 8
"""Bytes a second."""
BURST = burst_bytes(RATE_BPS) / RATE
"""What a shaper lets go at once, as a share of what it carries in a second."""


def row(port: str, sent: int, node: str = "h0") -> tuple[Any, ...]:
    """As Fabric.sample_ports gives it; what is no bytes sent is far larger, so that a wrong column shows."""
    return (node, port, sent * 9, 10**12, 0, sent, 10**12, 0)


def fed(*samples: tuple[float, list[tuple[Any, ...]]]) -> float | None:
    watch = ShapeWatch({tuple(row[:2]): RATE_BPS for _, rows in samples for row in rows})
    for t_s, rows in samples:
        watch.sample(int(t_s * S), rows)
    return watch.error


def test_there_is_no_figure_before_a_window_is_full() -> None:
    assert fed() is None
    assert fed((5, [row("port0", 0)])) is None
    assert fed((5, [row("port0", 0)]), (5.99, [row("port0", 99 * RATE)])) is None


def test_a_port_at_its_rate_has_no_error() -> None:
    assert fed((5, [row("port0", 0)]), (6, [row("port0", RATE)])) == 0.0


def test_a_port_below_its_rate_has_no_error() -> None:
    assert fed((5, [row("port0", 0)]), (6, [row("port0", RATE // 2)])) == 0.0


def test_the_burst_of_a_slow_port_is_no_error() -> None:
    watch = ShapeWatch({("h0", "port0"): 100_000})
    for t_s, sent in ((5, 0), (6, 12_500 + burst_bytes(100_000)), (7, 25_000 + burst_bytes(100_000))):
        watch.sample(t_s * S, [row("port0", sent)])
    assert watch.error == 0.0


def test_the_excess_is_a_share_of_the_rate() -> None:
    assert fed((5, [row("port0", 0)]), (6, [row("port0", RATE * 11 // 10)])) == pytest.approx(0.1 - BURST)


def test_a_window_that_came_late_counts_as_long_as_it_was() -> None:
    assert fed((5, [row("port0", 0)]), (7, [row("port0", 3 * RATE)])) == pytest.approx(0.5 - BURST / 2)


def test_counters_begin_anywhere() -> None:
    assert fed((5, [row("port0", 500 * RATE)]), (6, [row("port0", 501 * RATE)])) == 0.0


def test_the_worst_port_of_the_worst_window_is_kept() -> None:
    def both(h0: float, h1: float) -> list[tuple[Any, ...]]:
        return [row("port0", int(h0 * RATE)), row("port0", int(h1 * RATE), "h1")]

    samples = [(5.0, both(0, 0)), (6.0, both(0.5, 1.2)), (7.0, both(1.0, 1.7)), (8.0, both(1.5, 2.2))]
    assert fed(*samples) == pytest.approx(0.2 - BURST)


def test_windows_overlap_so_that_a_burst_cannot_hide_between_two() -> None:
    """1.5 rates between 5.5 and 6.5 s; windows from 5 to 6 and 6 to 7 alone would see 1.25."""
    sent = {5.0: 0.0, 5.5: 0.5, 6.0: 1.25, 6.5: 2.0, 7.0: 2.5}
    assert fed(*((t_s, [row("port0", int(rates * RATE))]) for t_s, rates in sent.items())) == pytest.approx(0.5 - BURST)


class Proc:
    """The files of /proc that the watch reads, under a folder of the test's."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.now_ns = 50 * S
        monkeypatch.setattr(fidelity, "Path", lambda path: self.at(str(path)))
        monkeypatch.setattr(fidelity, "_PRESSURE", self.at("/proc/pressure/cpu"))
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now_ns)
        monkeypatch.setattr(time, "time_ns", lambda: self.now_ns + 7 * S)
        self.pressure(770_000)
        self.softnet(0, 0)
        self.cpu(wanted=5_000, stolen=100)

    def at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def write(self, path: str, text: str) -> None:
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).write_text(text)

    def pressure(self, some_us: int) -> None:
        self.write(
            "/proc/pressure/cpu",
            f"some avg10=1.74 avg60=3.51 avg300=7.59 total={some_us}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n",
        )

    def cpu(self, wanted: int, stolen: int) -> None:
        """Ticks since boot: `stolen` of those that were `wanted`; idle and waiting for a disk beside them."""
        self.write("/proc/stat", f"cpu  {wanted - stolen - 60} 10 20 7777 888 10 20 {stolen} 5 5\ncpu0 1 2 3\n")

    def softnet(self, *drops: int) -> None:
        self.write("/proc/net/softnet_stat", "".join(f"0146aaa4 {n:08x} 00000002 {0:08x}\n" for n in drops))

    def waited(self, pid: int, wait_ns: int) -> None:
        self.write(f"/proc/{pid}/schedstat", f"425712 {wait_ns} 2\n")


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    return Proc(tmp_path, monkeypatch)


def test_the_figures_are_those_of_the_measured_part(proc: Proc) -> None:
    proc.waited(7, 10 * S)
    proc.waited(8, 0)
    proc.softnet(3, 0x10)
    watch = MachineWatch({"h0": 7, "h1": 8})
    proc.now_ns += 4 * S
    proc.pressure(1_770_000)
    proc.waited(7, 11 * S)
    proc.waited(8, S // 2)
    proc.softnet(5, 0x1A)
    proc.cpu(wanted=5_600, stolen=250)
    assert watch.figures() == {
        "measured_s": 4.0,
        "cpu_pressure_some": 0.25,
        "cpu_stolen": 0.25,
        "run_delay": {"h0": 0.25, "h1": 0.125},
        "softnet_drops": 12,
        "wall_clock_step_ns": 0,
    }


@pytest.mark.parametrize(
    ("release", "counted"),
    [("6.1.0-18-amd64", True), ("5.15.0", True), ("6.9.12", True), ("6.10.0-rc1", False), ("7.0", False)],
)
def test_before_linux_6_10_packets_for_dead_ports_are_among_the_drops(
    monkeypatch: pytest.MonkeyPatch, release: str, counted: bool
) -> None:
    monkeypatch.setattr("platform.release", lambda: release)
    assert MachineWatch({}).softnet_has_dead_ports is counted


def test_a_daemon_that_died_is_left_out(proc: Proc) -> None:
    proc.waited(7, 0)
    proc.waited(8, 0)
    watch = MachineWatch({"h0": 7, "h1": 8, "h2": 9})
    proc.at("/proc/7/schedstat").unlink()
    proc.now_ns += S
    assert watch.figures()["run_delay"] == {"h1": 0.0}


def test_a_kernel_without_pressure_figures_says_so(proc: Proc) -> None:
    proc.at("/proc/pressure/cpu").unlink()
    watch = MachineWatch({})
    proc.now_ns += S
    assert watch.figures()["cpu_pressure_some"] is None


@pytest.mark.parametrize(
    ("moves_ns", "step_ns"),
    [
        ([0, 300_000_000, 0], 300_000_000),
        ([-300_000_000], 300_000_000),
        ([300_000_000, -300_000_000], 300_000_000),
        ([500_000] * 60, 500_000),
        ([3600 * S], 3600 * S),
    ],
    ids=["on", "back", "on and back", "slewed for a minute", "asleep for an hour"],
)
def test_a_step_of_the_wall_clock_is_a_figure(
    proc: Proc, monkeypatch: pytest.MonkeyPatch, moves_ns: list[int], step_ns: int
) -> None:
    """While a machine sleeps CLOCK_MONOTONIC stops, and the wall clock goes on."""
    apart_ns = [0]
    monkeypatch.setattr(fidelity, "clocks_apart_ns", lambda: apart_ns[0])
    watch = MachineWatch({})
    for move_ns in moves_ns:
        proc.now_ns += S
        apart_ns[0] -= move_ns
        watch.figures()
    proc.now_ns += S
    assert watch.figures()["wall_clock_step_ns"] == step_ns


def test_this_kernel_can_be_read() -> None:
    watch = MachineWatch({"self": os.getpid()})
    figures = watch.figures()
    assert figures["measured_s"] > 0
    assert figures["run_delay"].keys() <= {"self"}
    assert figures["softnet_drops"] >= 0


def arrivals(**late: tuple[int, int, int]) -> tuple[dict[Any, LateArrivals], dict[Any, PortCounts]]:
    """By port of h0: packets that came in, how many late, and the latest."""
    at = {("h0", port): seen for port, seen in late.items()}
    nothing = [0] * COUNTS
    counts = {port: counts_of(nothing, [packets, *nothing[1:]]) for port, (packets, *_) in at.items()}
    return {port: LateArrivals(*seen[1:]) for port, seen in at.items()}, counts


def test_the_link_with_the_most_late_packets_since_the_start_counts() -> None:
    caught_up = count(3)
    now = arrivals(port0=(500, 400, 9), port1=(0, 0, 0), port2=(50, 0, 0))
    links = LinkLateness(lambda: now[0], lambda: now[1], lambda: next(caught_up))
    now = arrivals(port0=(1500, 401, 9), port1=(1000, 30, 8), port2=(70, 2, 7))
    worst = {"share": 0.03, "node": "h0", "port": "port1", "packets": 1000, "late": 30, "most_ns": 8}
    assert links.figure() == {**worst, "caught_up": 1}
    now = arrivals(port0=(1500, 441, 9), port1=(1000, 30, 8), port2=(70, 2, 7))
    assert links.figure()["most_ns"] == 0, "that was before"


def test_a_share_of_a_few_packets_is_one_of_a_hundred() -> None:
    caught_up = count()
    now = arrivals(port0=(0, 0, 0))
    links = LinkLateness(lambda: now[0], lambda: now[1], lambda: next(caught_up))
    now = arrivals(port0=(2, 1, 7))
    assert links.figure()["share"] == 0.01
