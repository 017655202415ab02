"""Steps at the rates and round trips of hardware, beside what `validate --predict` says of them.

    .venv/bin/python -m benchmarks.rates [--transports mrc,roce,...] [--rates 1gbit,...] [--rtts 2us,...] [--size 2MiB]
        [--compute 1ms] [--hosts 8]
        [--set KEY=VALUE ...]

Virtual time, `scale: 1`. A cell is the median step (compute, then a ring all-reduce of SIZE over the hosts of two T0s
with four planes) over the predicted one, and the base round trip of the warm-up over T. Transports are those of
`--against today`; nothing is broken, and rings keep to their T0 but for two hops, so all of them should need what is
predicted. A cell outside the limit of docs/scenario.md has a `!`, one that is not believed a `?`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.steps import step_durations
from mrc_testbed.testbed.errors import ExitCode, ScenarioError
from mrc_testbed.testbed.expect import Window
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.scenario import load_scenario_text

WITHIN = 0.06
RATES = ("1gbit", "10gbit", "100gbit", "400gbit")
RTTS = ("2us", "10us", "100us", "1ms", "10ms", "100ms")
AS_WRITTEN = ("transport=roce", "fabric.layout=as-written")
LOSSLESS = (*AS_WRITTEN, "roce.recovery=lossless", "roce.buffers=deep", "ecmp.choose=adaptive")
TRANSPORTS = {
    "mrc": ("transport=mrc",),
    "production": ("transport=mrc", "endpoint.preset=production"),
    "weighted": ("transport=mrc", "endpoint.ev_selection=weighted-planes"),
    "hashed": ("transport=mrc-hashed", "endpoint.entropies=32"),
    "roce-1": ("transport=roce",),
    "roce-16": (*AS_WRITTEN, "qps=16"),
    "failover": (*AS_WRITTEN, "roce.failover=port"),
    "adaptive": (*LOSSLESS, "qps=16"),
    "balanced": (*LOSSLESS, "roce.planes=balanced"),
}
SCENARIO = """
name: rates
world: virtual
fabric: {{planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: {half}, port_rate: {rate}, rtt: {rtt}}}
workload: [{{train: {{hosts: all, steps: 4, warm_up: 1, compute: {compute}, allreduce: {size}{qps}}}}}]
"""


def cell(asked: argparse.Namespace, transport: str, rate: str, rtt: str) -> str:
    """As in the table, or `refused`."""
    changes = [*TRANSPORTS[transport], *asked.changes]
    qps = ", qps: 16" if "qps=16" in changes else ""
    text = SCENARIO.format(half=asked.hosts // 2, rate=rate, rtt=rtt, compute=asked.compute, size=asked.size, qps=qps)
    try:
        scenario = load_scenario_text(text, overrides=[one for one in changes if one != "qps=16"])
    except ScenarioError as error:
        return f"refused: {error.problems[0].message}"
    with TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(scenario, Path(folder), True, PatientConsole(file=nowhere))
        if outcome.folder is None:
            return outcome.error or "?"
        record = load_record(outcome.folder)
        shape, steps = scenario.shape(), step_durations(record, Window())
    ratio = median(steps) / scenario.jobs[0].steps(shape).step_ns(shape) if steps else float("nan")
    marks = ("!" if not abs(ratio - 1) <= WITHIN else "") + ("" if outcome.exit_code is ExitCode.PASS else "?")
    return f"{ratio:.3f}{marks:2} {(record.base_rtt_ns or 0) / shape.rtt_ns:6.2f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, usual in (("transports", TRANSPORTS), ("rates", RATES), ("rtts", RTTS)):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), default=list(usual))
    parser.add_argument("--size", default="2MiB")
    parser.add_argument("--compute", default="1ms")
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--set", dest="changes", action="append", default=[])
    asked = parser.parse_args()
    for transport in asked.transports:
        print(f"{transport:10} " + " ".join(f"{rtt:>14}" for rtt in asked.rtts))
        for rate in asked.rates:
            cells = [cell(asked, transport, rate, rtt) for rtt in asked.rtts]
            print(f"  {rate:8} " + " ".join(f"{one:>14}" for one in cells), flush=True)


if __name__ == "__main__":
    main()
