"""What a library that bears a dead port makes of an outage, by its length and by the NIC's timeout, in virtual time.

    .venv/bin/python benchmarks/failover.py

A job of two hosts over four planes; one port of one host is away. A row an outage, for each timeout: what came of it,
the standstill from the cut to the next byte of the QP, and when the port had its part again, measured beside the closed
form (NCCL's defaults, docs/baselines.md). Without arguments, two minutes on one core.

"waits": a retry comes after the heal and before the eighth timeout, so nothing fails over. "returns": the port is given
up and comes back. "half for ever": it heals too late for recovery. The exit code is 1 where a measured time is further
than 0.1 s from its closed form, which leaves round trips out.
"""

from __future__ import annotations

import json
import sys
import tempfile
from math import ceil
from pathlib import Path
from typing import NamedTuple

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.report.console import open_console
from mrc_testbed.testbed.scenario import load_scenario_text

OUTAGES_S = (0.3, 1, 3, 6, 10, 14, 20)
TIMEOUTS = (14, 16, 18)
CUT_S = 2.5
PROBE_S = 0.01
GRAIN_S = 0.1
_NOTHING = -1.0
SCENARIO = """
name: failover
fabric: {{planes: 4, t0_groups: 1, t1: 0, hosts_per_t0: 2, port_rate: 3mbit, rtt: 10ms, layout: as-written}}
world: virtual
transport: roce
roce: {{congestion_control: none, failover: port, port_recovery: true, timeout: {timeout}}}
workload: [{{train: {{hosts: all, steps: {steps}, compute: 10ms, allreduce: 256KiB}}}}]
faults: [{{at: {cut}ms, link-down: "h0:p1-t0-0", for: {outage}ms}}]
expect: [bytes_wrong == 0, job_died == 0]
"""


class FailoverResult(NamedTuple):
    """Seconds after the cut; `back_s` negative: the port did not come back, or was not given up."""

    what: str
    still_s: float
    back_s: float


def closed_form(outage_s: float, timeout: int) -> FailoverResult:
    """By the defaults alone, without round trips and the time of packets."""
    once_s = 4.096e-6 * 2**timeout
    if outage_s < 8 * once_s:
        return FailoverResult("waits", ceil(outage_s / once_s) * once_s, _NOTHING)
    left_s, still_s = outage_s - 8 * once_s, 8 * once_s + PROBE_S
    for heals_s, back_s in ((0.2, 5.2), (5.2, 10.2), (10.2, 15.2)):
        if left_s <= heals_s:
            return FailoverResult("returns", still_s, 8 * once_s + back_s)
    return FailoverResult("half for ever", still_s, _NOTHING)


def measured(outage_s: float, timeout: int) -> FailoverResult:
    """Of one run. Raises RuntimeError where it did not pass."""
    expected = closed_form(outage_s, timeout)
    ends_s = CUT_S + max(outage_s, expected.back_s) + 27
    text = SCENARIO.format(timeout=timeout, cut=int(CUT_S * 1000), outage=int(outage_s * 1000), steps=int(ends_s / 0.3))
    console = open_console()
    console.quiet = True
    with tempfile.TemporaryDirectory() as out:
        outcome = run_scenario(load_scenario_text(text), Path(out), True, console)
        if outcome.folder is None or outcome.verdict is None or outcome.verdict.status.value != "pass":
            raise RuntimeError(f"{outage_s} s, timeout {timeout}: {outcome.error or outcome.verdict}")
        return _result_of(outcome.folder)


def _result_of(folder: Path) -> FailoverResult:
    def lines(name: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]

    cut = next(float(str(line["t_ns"])) for line in lines("history.jsonl") if line["op"] == "inject")
    events = lines("events.jsonl")
    stalls = [
        (float(str(event["begin_ns"])), float(str(event["end_ns"]))) for event in events if event["event"] == "stall"
    ]
    stood_still = max(stalls, key=lambda stall: stall[1] - stall[0])
    moves = [event for event in events if event["event"] == "failover"]
    back = [float(str(event["t_ns"])) for event in moves if event["state"] == "OK"]
    what = "returns" if back else "half for ever" if moves else "waits"
    return FailoverResult(what, (stood_still[1] - cut) / 1e9, (min(back) - cut) / 1e9 if back else _NOTHING)


def main() -> int:
    """Run all cells, print the table."""
    wrong = 0
    for timeout in TIMEOUTS:
        print(f"timeout {timeout}: eight of {4.096e-6 * 2**timeout:.2f} s")
        for outage_s in OUTAGES_S:
            seen, wanted = measured(outage_s, timeout), closed_form(outage_s, timeout)
            fits = seen.what == wanted.what and all(
                abs(a - b) <= GRAIN_S for a, b in zip(seen[1:], wanted[1:], strict=True)
            )
            wrong += not fits
            print(f"  {outage_s:5.1f} s  {_words(seen)}   closed form: {_words(wanted)}{'' if fits else '  DIFFERS'}")
            sys.stdout.flush()
    return int(wrong > 0)


def _words(result: FailoverResult) -> str:
    back = f"{result.back_s:5.2f} s" if result.back_s >= 0 else "      -"
    return f"{result.what:13}  still {result.still_s:5.2f} s  back {back}"


if __name__ == "__main__":
    sys.exit(main())
