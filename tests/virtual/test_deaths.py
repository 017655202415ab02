"""One job or flow dies, and the others live: each world ends a run when all of it has ended."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.ends import How
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.scenario import load_scenario_text

HEAD = """
name: deaths
world: virtual
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 3}
time_limit: 60s
workload:
"""


def run(text: str, out: Path) -> RunRecord:
    outcome = run_scenario(load_scenario_text(text), out, True, PatientConsole(file=io.StringIO()))
    assert outcome.folder is not None
    return load_record(outcome.folder)


@pytest.mark.parametrize("seed", range(3))
def test_random_deaths_end_what_they_hit_and_nothing_else(tmp_path: Path, seed: int) -> None:
    """Pairs of hosts, each with a job or a flow of its own; all ports of some of them go down."""
    dice = random.Random(seed)
    hosts = dice.sample(range(6), 6)
    entries, faults, hit = "", "faults:\n", set()
    for number, (one, other) in enumerate(zip(hosts[::2], hosts[1::2], strict=True)):
        job = dice.random() < 0.5
        iterations = dice.randint(4, 8)
        ends = f"hosts: [h{one}, h{other}], size: 512KiB, iterations: {iterations}"
        name = f"job-{number}" if job else f"h{one}->h{other}"
        entries += f"  - allreduce: {{{ends}, name: {name}}}\n" if job else ""
        entries += "" if job else f"  - write: {{from: h{one}, to: h{other}, bytes: {iterations}MB}}\n"
        if not number or dice.random() < 0.4:
            dying = dice.choice((one, other))
            ports = ", ".join(f'"h{dying}:p{plane}-t0-{dying // 3}"' for plane in range(2))
            faults += f"  - {{at: {dice.randint(400, 900)}ms, link-down: [{ports}], for: 50s, name: f{number}}}\n"
            hit.add(name)
    record = run(HEAD + entries + faults, tmp_path)
    assert {name for name, end in record.ends.items() if end.how is How.FAULT} == hit
    assert {end.how for name, end in record.ends.items() if name not in hit} <= {How.ITSELF}
    assert record.fidelity is not None
    assert record.books is not None
    after_s = (max(line.t_ns for line in record.history if line.phase == "run") - record.end_ns) / 1e9
    assert 0.9 < after_s < 1.5, "a second after the last of them has ended"
