"""Every collective in one job, and latency beside it, over a real fabric: right bytes, waits told, a warm-up."""

from __future__ import annotations

import csv
from pathlib import Path

from tests.emu.runs import Run

STEPS, WARM_UP, RANKS = 4, 1, 8
SCENARIO = f"""
name: collectives
fabric: {{planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 4, port_rate: 12.5mbit, rtt: 20ms}}
workload:
  - train:
      steps: {STEPS}
      warm_up: {WARM_UP}
      parallel: {{tensor: 2, pipeline: 2, data: 2}}
      step:
        - compute: 20ms
        - allreduce: {{over: tensor, size: 40000B, qps: 2}}
        - pipeline: {{over: pipeline, size: 9KiB, micro_batches: 3, compute: 5ms}}
        - all-to-all: {{over: data, size: 32KiB, message: 5000B}}
        - together:
            - allreduce: {{size: 64KiB}}
            - sendrecv: {{over: tensor, size: 2B}}
            - compute: 30ms
  - latency: {{from: h0, to: h7, iterations: 15, warm_up: 3, name: ping}}
expect:
  - qp_errors == 0
  - bytes_wrong == 0
  - data_on_bad_ev == 0
  - steps_done == {STEPS}
  - step_time.min > 70 ms
  - latency.min of ping >= 0.4 rtt
"""


def rows(run: Run, name: str) -> list[dict[str, str]]:
    with (run.folder / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_job_of_every_collective_passes_with_latency_beside_it(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=SCENARIO)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    steps, waits, messages = (rows(run, name) for name in ("completions.csv", "waits.csv", "messages.csv"))
    assert len(steps) == RANKS * (STEPS + WARM_UP)
    in_a_step = 4 * 2 * 40000 + 4 * 3 * (9 << 10) + 4 * (32 << 10) + 14 * (64 << 10) + 4 * 2 * 2
    assert sum(int(row["bytes"]) for row in steps) == (STEPS + WARM_UP) * in_a_step
    assert len(messages) == 18
    # The ring of all hosts makes every rank wait for the one before it in every step.
    lefts = {(f"h{host}", f"h{(host - 1) % RANKS}") for host in range(RANKS)}
    assert lefts <= {(row["host"], row["peer"]) for row in waits}
    assert all(int(row["wait_ns"]) > 0 and row["host"] != row["peer"] for row in waits)
    assert "most waited for: h" in run.output
    assert f"{STEPS} steps" in run.output
