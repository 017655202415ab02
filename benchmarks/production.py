"""The tables of docs/production.md: what today's endpoint settings and trimming change, in virtual time.

    python -m benchmarks.production stories [NAME ...]   # six stories by three settings
    python -m benchmarks.production trims                # 7 and 15 to one: three sizes, by port and with one DSCP
    python -m benchmarks.production tail                 # the last packets of a message are lost, at real scale
    python -m benchmarks.production window               # 512 PSNs over 800 Gb/s, 13 us and further

Runs of one seed, of MRC alone; a ratio is to the run with our defaults. Times are of virtual time, so a run is the same
on every machine; a table takes one to four minutes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mrc_testbed.testbed.app.finished import FinishedRun
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.scenario import Scenario, load_scenario, load_scenario_text

PRODUCTION = ("endpoint.preset=production",)
SYMMETRIC = ("trimming.dscp=48", "trimming.dscp_last_hop=48")
VENDORS = (*PRODUCTION, "trimming.size=128B", *SYMMETRIC)
SETTINGS = {"ours": (), "production": PRODUCTION, "and 128 B, one DSCP": VENDORS}
STORIES = {
    "one-flap-kills-a-job": ("step_time.median", "step_time.p100"),
    "lost-nic-port": ("step_time.median", "step_time.p100"),
    "reboot-at-noon": ("step_time.median", "step_time.p100"),
    "two-jobs": ("step_time.median of job-a", "step_time.p100"),
    "grey-switch": ("flow_goodput.min", "stall.p100"),
    "hundreds-of-paths": ("flow_goodput.min", "stall.p100"),
}
"""Of each story what its picture shows: the middle, and the worst."""
COUNTS = ("packets_lost", "trims", "timeouts", "evs_retired")

SIZES = ("headers", "128B", "256B")
INCAST = """
name: incast-{n}
world: virtual
fabric: {{planes: 4, t0_groups: 2, t1: 8, hosts_per_t0: {hosts}, port_rate: 12.5mbit, rtt: 40ms}}
workload: [{{incast: {{to: h{hosts}, from: [{senders}], victims: [{victim}], for: 8s}}}}]
"""
FRAME_BYTES = 4238
HEADER_BYTES = {"headers": 138, "128B": 128, "256B": 256}

TAIL = """
name: tail
world: virtual
scale: {scale}
fabric: {{planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 40ms}}
workload: [{{latency: {{from: h0, to: h2, message: 64KiB, iterations: 30}}}}]
faults: [{{at: 500ms, link-loss: "h0:p0-t0-0", loss: 40%, for: 1s}}]
time_limit: 20h
"""


def run(scenario: Scenario) -> FinishedRun:
    """The run of a scenario, in a folder of its own below the temporary ones."""
    folder = Path(tempfile.mkdtemp(prefix="production-"))
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        return FinishedRun(run_scenario(scenario, folder, True, PatientConsole(file=nowhere)))


def asked(finished: FinishedRun, figure: str) -> str:
    """A figure in words, `-` where the run has none."""
    try:
        return str(finished.metric(figure))
    except AssertionError:
        return "-"


def ratio(one: FinishedRun, usual: FinishedRun, figure: str) -> str:
    """Of a run to that with our defaults."""
    try:
        return f"{one.metric(figure) / usual.metric(figure):.2f}"
    except (AssertionError, ZeroDivisionError):
        return "-"


def stories(names: Sequence[str]) -> Iterator[str]:
    """Each story with each of SETTINGS."""
    yield f"| story | settings | middle | worst | {' | '.join(COUNTS)} |"
    yield "|---" * (4 + len(COUNTS)) + "|"
    for name in names or STORIES:
        usual: FinishedRun | None = None
        for words, changes in SETTINGS.items():
            changed = ["world=virtual", *changes]
            done = run(load_scenario(f"stories/{name}", changed, judged=False))
            usual = usual or done
            figures = [f"{asked(done, each)} (x{ratio(done, usual, each)})" for each in STORIES[name]]
            counts = [asked(done, each) for each in COUNTS]
            yield f"| {name} | {words} | {' | '.join((*figures, *counts))} |"


def incast(senders: int, changes: Sequence[str]) -> Scenario:
    """This number of hosts of one rack send to one of the other, and one more to its neighbour there."""
    hosts = senders + 1
    text = INCAST.format(
        n=senders,
        hosts=hosts,
        senders=", ".join(f"h{number}" for number in range(senders)),
        victim=f"h{senders}->h{hosts + 1}",
    )
    return load_scenario_text(text, overrides=changes)


def trims(_names: Sequence[str]) -> Iterator[str]:
    """Incasts by size and by DSCP."""
    columns = ("trims", "ecn_skips", "fair_share.min of incast from 5s to 8s", "flow_goodput.min of victims")
    yield f"| senders | size | DSCP | headers' share, by formula | {' | '.join(columns)} |"
    yield "|---" * (4 + len(columns)) + "|"
    for senders in (7, 15):
        for size in SIZES:
            left = HEADER_BYTES[size]
            share = (senders - 1) * left / (FRAME_BYTES - left)
            for words, changes in (("by port", ()), ("one for all", SYMMETRIC)):
                done = run(incast(senders, (*PRODUCTION, f"trimming.size={size}", *changes)))
                figures = " | ".join(asked(done, each) for each in columns)
                yield f"| {senders} | {size} | {words} | {share:.2f} | {figures} |"


def tail(_names: Sequence[str]) -> Iterator[str]:
    """Messages whose last packets may be lost, at both scales."""
    columns = ("latency.median", "latency.p100", "timeouts", "packets_lost")
    yield f"| scale | settings | {' | '.join(columns)} |"
    yield "|---" * (2 + len(columns)) + "|"
    for scale in ("1", "real"):
        for words, changes in (("ours", ()), ("production", PRODUCTION)):
            done = run(load_scenario_text(TAIL.format(scale=scale), overrides=changes))
            yield f"| {scale} | {words} | {' | '.join(asked(done, each) for each in columns)} |"


WINDOW = """
name: window
world: virtual
scale: real
fabric: {{planes: 8, t0_groups: 2, t1: 4, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: {rtt}}}
workload: [{{write: {{from: h0, to: h1, message: 1MiB, qps: {qps}, for: 9s}}}}]
"""


def window(_names: Sequence[str]) -> Iterator[str]:
    """One flow of one QP and of two over 8 x 100 Gb/s, by round trip; the file's times are 8000 times as long."""
    yield "| T | settings | QPs | goodput |"
    yield "|---" * 4 + "|"
    for shown, rtt in (("13 us", "104ms"), ("26 us", "208ms")):
        for words, changes, qps in (("ours", (), 1), ("production", PRODUCTION, 1), ("production", PRODUCTION, 2)):
            done = run(load_scenario_text(WINDOW.format(rtt=rtt, qps=qps), overrides=changes))
            line = done.metric("goodput", "B/s") / (8e11 / 8 * 4096 / FRAME_BYTES)
            yield f"| {shown} | {words} | {qps} | {line:.2f} line |"


TABLES: dict[str, Callable[[Sequence[str]], Iterator[str]]] = {
    "stories": stories,
    "trims": trims,
    "tail": tail,
    "window": window,
}


def main() -> None:
    for line in TABLES[sys.argv[1] if sys.argv[1:] else "stories"](sys.argv[2:]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
