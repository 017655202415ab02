"""A fault that met no packet is said in the summary, the verdict line, the page and the reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.unmet import unmet_faults
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.scenario import load_scenario_text

SCENARIO = """\
name: small
world: virtual
fabric: {{planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}}
transport: {transport}
workload: [{{write: {{from: h0, to: {to}, for: {lasts}}}}}]
faults: [{{at: {at}, {fault}, for: {time}, name: cut}}]
"""
IDLE = "link-down: p0-t0-1:p0-t1-0"
"""Between groups, and h0 and h1 are in one."""


def ran(tmp_path: Path, fault: str, to: str = "h1", time: str = "600ms", at: str = "500ms", **rest: str) -> RunOutcome:
    values = {"transport": "mrc", "lasts": "2s", **rest}
    text = SCENARIO.format(fault=fault, to=to, time=time, at=at, **values)
    return run_scenario(load_scenario_text(text), tmp_path, quiet=True)


def unmet(outcome: RunOutcome) -> tuple[str, ...]:
    assert outcome.folder
    return unmet_faults(load_record(outcome.folder))


def test_it_is_said_wherever_a_run_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = ran(tmp_path, IDLE)
    assert outcome.folder
    assert unmet(outcome) == ("cut",)
    assert "warning: no packet met cut" in capsys.readouterr().out.splitlines()
    assert "no packet met cut: the run does not show what it does" in (outcome.folder / "summary.txt").read_text()
    assert "no packet met cut" in (outcome.folder / "report.html").read_text()
    assert "no packet met cut" in outcome.warnings
    assert "warning: no packet met cut" in (outcome.folder / "junit.xml").read_text()


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("goodput_back.p100 <= 100 ms during cut", Status.INCONCLUSIVE),
        ("goodput_back.p100 >= 100 ms during faults", Status.INCONCLUSIVE),
        ("fair_after.p100 <= 1 s during cut", Status.INCONCLUSIVE),
        ("flow_goodput.min >= 0.99 line during cut", Status.INCONCLUSIVE),  # of two ports one is idle too
        ("packets_lost >= 1 during cut", Status.INCONCLUSIVE),
        ("packets_lost == 0 during cut", Status.PASS),
    ],
)
def test_it_fails_nothing(tmp_path: Path, line: str, status: Status) -> None:
    text = SCENARIO.format(fault=IDLE, to="h1", time="600ms", at="500ms", transport="mrc", lasts="2s")
    text += "expect:\n" + (f"  - {line}\n" if "0.99" not in line else f"  - {line.replace('0.99', '1')}\n")
    outcome = run_scenario(load_scenario_text(text), tmp_path, quiet=True)
    assert outcome.verdict
    check = outcome.verdict.checks[0]
    assert check.status is status
    if status is Status.INCONCLUSIVE:
        assert check.why in ("no packet met cut", "no packet met a fault")


@pytest.mark.parametrize(
    ("fault", "time"),
    [
        (IDLE, "60ms"),
        ("link-loss: p0-t0-1:p0-t1-0, loss: 5%", "600ms"),
        ("link-rate: p0-t0-1:p0-t1-0, rate: 2mbit", "600ms"),
        ("switch-reboot: p0-t1-0, boot: 100ms", "600ms"),
        ("port-flap: h2:p0-t0-1, period: 200ms, count: 2", ""),
    ],
    ids=["shorter than two readings", "loss", "rate", "switch", "port of a host that does nothing"],
)
def test_of_each_kind(tmp_path: Path, fault: str, time: str) -> None:
    if not time:
        fault, time = fault, "600ms"
    text = SCENARIO.format(fault=fault, to="h1", time=time, at="500ms", transport="mrc", lasts="2s")
    text = text.replace(", for: 600ms", "") if "boot" in fault or "flap" in fault else text
    outcome = run_scenario(load_scenario_text(text), tmp_path, quiet=True)
    assert unmet(outcome) == ("cut",)


@pytest.mark.parametrize("transport", ["mrc", "roce"])
@pytest.mark.parametrize(
    ("fault", "to"),
    [
        ("link-down: p0-t0-0:p0-t1-0", "h2"),
        ("link-loss: h0:p0-t0-0, loss: 0.001%", "h1"),
        ("link-rate: h1:p0-t0-0, rate: 10mbit", "h1"),
        ("link-down: h0:p0-t0-0", "h1"),
    ],
)
def test_what_met_packets_is_not_said(tmp_path: Path, fault: str, to: str, transport: str) -> None:
    both = fault.replace("p0-t0-0:p0-t1-0", '["p0-t0-0:p0-t1-0", "p0-t0-0:p0-t1-1", "p1-t0-0:p1-t1-0"]')
    assert unmet(ran(tmp_path, both, to, transport=transport)) == ()


def test_between_two_steps_no_packet_comes_by(tmp_path: Path) -> None:
    """On links that the workload uses at other times."""
    text = SCENARIO.format(fault="link-down: h0:p0-t0-0", to="h1", time="500ms", at="1s", transport="mrc", lasts="1s")
    steps = "train: {hosts: all, steps: 2, compute: 2s, allreduce: 64KiB}"
    outcome = run_scenario(
        load_scenario_text(text.replace("write: {from: h0, to: h1, for: 1s}", steps)), tmp_path, True
    )
    assert unmet(outcome) == ("cut",)
