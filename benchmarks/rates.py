"""Steps at the rates and round trips of hardware, beside what `validate --predict` says of them.

    .venv/bin/python -m benchmarks.rates [--transports mrc,roce,...] [--rates 1gbit,...] [--rtts 2us,...] [--size 2MiB]
        [--compute 1ms] [--hosts 8] [--set KEY=VALUE ...]

Virtual time, `scale: 1`. A cell is the clean median of a step (compute, then a ring all-reduce of SIZE over all hosts
of two T0s with four planes) over the predicted one, and the base round trip of the warm-up over T. Transports are those
of `--against today`, and without faults or congestion all of them should need what is predicted. A cell above the limit
of docs/scenario.md has a `!`, one that is refused the reason below the table, one that is not believed a `?`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.steps import step_times
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.scenario import load_scenario_text

WITHIN = 0.06
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
fabric: {{planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: {hosts}, port_rate: {rate}, rtt: {rtt}}}
workload: [{{train: {{hosts: all, steps: 4, warm_up: 1, compute: {compute}, allreduce: {{size: {size}{qps}}}}}}}]
"""


def cell(asked: argparse.Namespace, transport: str, rate: str, rtt: str) -> str:
    """As in the table; raises ScenarioError for what is refused."""
    changes = [change for change in TRANSPORTS[transport] if not change.startswith("qps")]
    qps = ", qps: 16" if len(changes) < len(TRANSPORTS[transport]) else ""
    text = SCENARIO.format(
        hosts=asked.hosts // 2, rate=rate, rtt=rtt, compute=asked.compute, size=asked.size, qps=qps
    )
    scenario = load_scenario_text(text, overrides=[*changes, *asked.changes])
    with TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(scenario, Path(folder), True, PatientConsole(file=nowhere))
        if outcome.folder is None:
            return outcome.error or "?"
        record = load_record(outcome.folder)
        predicted_ns = scenario.jobs[0].steps(scenario.shape()).step_ns(scenario.shape())
        measured = sorted(step_times(record)) if callable(step_times) else []
    ratio = measured[len(measured) // 2] / predicted_ns if measured else float("nan")
    base = (record.base_rtt_ns or 0) / scenario.shape().rtt_ns
    mark = "" if outcome.exit_code == 0 else "?"
    return f"{ratio:.3f}{'!' if abs(ratio - 1) > WITHIN else ''}{mark} {base:.2f}"
