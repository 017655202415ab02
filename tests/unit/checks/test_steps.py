"""Jobs of steps and latency in hand-made run folders: warm-up, waits, both kinds of workload side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.builtin import ENDED, FINISHED, MOVED
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.metrics import bytes_wrong, goodput, steps_done
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.steps import job_steps, step_durations
from mrc_testbed.testbed.checks.windows import NoData
from mrc_testbed.testbed.expect import Window
from mrc_testbed.testbed.report.summary import summary_text
from mrc_testbed.testbed.rundir.tables import Wait
from tests.unit.checks.test_flows import FlowFolder, figure
from tests.unit.checks.test_folder import SCENARIO, RunFolder, at

WARM = SCENARIO.replace("steps: 8", "steps: 6, warm_up: 2")
LATENCY = """\
name: ping
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload:
  - incast: {to: h2, from: [h0, h1], victims: [h3->h1], for: 6s}
  - latency: {from: h2, to: h0, for: 6s, warm_up: 3, name: ping}
expect:
"""


def test_steps_of_the_warm_up_do_not_count(tmp_path: Path) -> None:
    folder = RunFolder(scenario=WARM)
    record = load_record(folder.write(tmp_path))
    assert [step.index for step in job_steps(record)] == [2, 3, 4, 5, 6, 7]
    assert steps_done(record, Window()) == 6
    # The first step that counts begins where the warm-up ended.
    assert step_durations(record, Window())[0] == pytest.approx(1.0e9)
    assert goodput(record, Window()) == pytest.approx(6 * 4 * (1 << 20) / 6.3)


def test_after_a_warm_up_the_first_step_is_clean(tmp_path: Path) -> None:
    text = SCENARIO.replace("steps: 8", "steps: 7, warm_up: 1").replace("1s, name", "100ms, name")
    record = load_record(RunFolder(scenario=text, expect=["step_time.p50 <= 2 s clean"]).write(tmp_path))
    ((wanted,),) = (record.scenario.expect,)
    assert len(step_durations(record, wanted.window)) == 5  # seven, without the two under the fault


def test_a_byte_that_was_wrong_in_the_warm_up_is_wrong(tmp_path: Path) -> None:
    folder = RunFolder(scenario=WARM)
    folder.completions[0][-1] = 3
    assert bytes_wrong(load_record(folder.write(tmp_path)), Window()) == 3


def test_every_rank_must_finish_the_warm_up_and_all_steps(tmp_path: Path) -> None:
    folder = RunFolder(scenario=WARM)
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    checks = {check.name: check for check in folder.judge(tmp_path / "whole").checks}
    assert (checks[FINISHED].status, checks[FINISHED].expected) == (Status.PASS, "== 8")
    folder.completions.pop()
    checks = {check.name: check for check in folder.judge(tmp_path / "cut").checks}
    assert checks[FINISHED].status is Status.FAIL


def test_waits_are_read_and_the_one_most_waited_for_is_shown(tmp_path: Path) -> None:
    record_folder = RunFolder(scenario=WARM).write(tmp_path)
    rows = ["h1,0,h0,900000000", "h1,2,h0,30000000", "h2,2,h3,60000000", "h0,3,h3,30000000"]
    (tmp_path / "waits.csv").write_text("\n".join(["host,step,peer,wait_ns", *rows, "h0,4,h"]))
    record = load_record(record_folder)
    assert list(record.waits)[1:] == [
        Wait("h1", 2, "h0", 30_000_000),
        Wait("h2", 2, "h3", 60_000_000),
        Wait("h0", 3, "h3", 30_000_000),
    ]
    # The warm-up does not count: 90 of 120 ms were for h3.
    assert "waiting    most waited for: h3, 75% of 120 ms (25% if all were equal)" in summary_text(
        judge(record), record
    )


def test_nobody_waited(tmp_path: Path) -> None:
    record = load_record(RunFolder().write(tmp_path))
    assert not record.waits
    assert "waiting    no host waited" in summary_text(judge(record), record)


# Latency


def ping() -> FlowFolder:
    """Halves of 20, 21, 22, ... ms; the first three messages are a warm-up of 100 ms halves."""
    folder = FlowFolder(scenario=LATENCY)
    folder.history = [line for line in folder.history if line.get("fault") != "cut"]
    for number in range(23):
        half_ns = 100_000_000 if number < 3 else (17 + number) * 1_000_000
        folder.messages.append(["h2", "h2->h0", 0, at(number * 0.25 + 0.25), 2 * half_ns])
    folder.rows += [["h0", "h2->h0", 0, at(n / 10), at((n + 1) / 10), 2, 1, 0, 0] for n in range(60)]
    folder.rows.append(["h0", "h2->h0", 0, at(6), at(6.03), 0, 0, 0, 1])
    return folder


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("latency.min", 20e6),
        ("latency.p50", 29.5e6),
        ("latency.p100 of ping", 39e6),
        ("latency.mean of h2->h0", 29.5e6),
        ("message_time.max", 50e6 + 59),
        # What the messages took that were done between 1 and 2 s.
        ("latency.max | from 1s to 2s", 24e6),
    ],
)
def test_latency_is_half_the_time_of_each_message_after_the_warm_up(tmp_path: Path, words: str, value: float) -> None:
    assert figure(ping(), tmp_path, words) == pytest.approx(value)


def test_latency_flows_have_no_rate_and_take_no_share(tmp_path: Path) -> None:
    for index, words in enumerate(("fair_share.min", "fair_share.max", "balance")):
        (tmp_path / str(index)).mkdir()
        with_ping = figure(ping(), tmp_path / str(index), f"{words} | from 4s to 6s")
        assert with_ping == pytest.approx(1.0, rel=1e-4), words


def test_latency_alone_is_told_in_the_summary(tmp_path: Path) -> None:
    folder = ping()
    folder.scenario = "\n".join(line for line in LATENCY.split("\n") if "incast" not in line)
    folder.rows = [row for row in folder.rows if row[1] == "h2->h0"]
    record = load_record(folder.write(tmp_path))
    told = summary_text(judge(record), record)
    assert "1 flow, clean latency median 29.5 ms, P99 39 ms" in told


def test_a_warm_up_of_a_write_does_not_count(tmp_path: Path) -> None:
    folder = FlowFolder()
    folder.scenario = folder.scenario.replace("for: 6s", "for: 6s, warm_up: 3s")
    # From 3 s on: 30 stretches, 5 of them at half.
    (tmp_path / "a").mkdir()
    assert figure(folder, tmp_path / "a", "fair_share.max") == pytest.approx((25 + 2.5) / 30, rel=1e-4)
    folder.messages = [["h0", "h0->h2", 0, at(2.9), 7], ["h0", "h0->h2", 0, at(3.1), 9]]
    (tmp_path / "b").mkdir()
    assert figure(folder, tmp_path / "b", "message_time.min") == 9


# Side by side


def test_a_job_and_flows_have_the_checks_and_figures_of_both(tmp_path: Path) -> None:
    folder = FlowFolder()
    folder.scenario = folder.scenario.replace("faults:", "  - sendrecv: {size: 1MiB, iterations: 7}\nfaults:")
    folder.completions = RunFolder().completions
    folder.completions[5][-1] = 2
    folder.rows[9][-2] = 5
    record = load_record(folder.write(tmp_path))
    assert bytes_wrong(record, Window()) == 7
    assert goodput(record, Window()) == pytest.approx(7 * 4 * (1 << 20) / 7.3), "that of the job"
    checks = {check.name: check.status for check in judge(record).checks}
    assert checks[FINISHED] == checks[MOVED] == checks[ENDED] == Status.PASS
    told = summary_text(judge(record), record)
    assert "7 steps, P100 1.2 s" in told
    assert "3 flows" in told


def test_a_window_that_only_one_of_them_fills_is_known(tmp_path: Path) -> None:
    folder = FlowFolder(expect=["bytes_wrong == 0 during cut"])
    folder.scenario = folder.scenario.replace("faults:", "  - sendrecv: {size: 1MiB, iterations: 7}\nfaults:")
    folder.completions = RunFolder().completions
    folder.rows = [row for row in folder.rows if row[3] > at(5)]
    record = load_record(folder.write(tmp_path))
    assert bytes_wrong(record, record.scenario.expect[0].window) == 0
    folder.completions = []
    with pytest.raises(NoData, match="no step was finished during cut"):
        bytes_wrong(load_record(folder.write(tmp_path)), record.scenario.expect[0].window)


def test_a_latency_flow_that_begins_or_ends_does_not_unsettle_the_others(tmp_path: Path) -> None:
    folder = ping()
    folder.scenario = folder.scenario.replace("for: 6s, warm_up: 3", "for: 2s, start: 2s, warm_up: 3")
    for row in folder.rows:
        if row[1] == "h0->h2" and at(2) <= row[3] < at(2.3):
            row[5] //= 2
    # Three of five stretches at half; would rates settle again at 2 s, only those from 2.4 s on counted.
    assert figure(folder, tmp_path, "fair_share.min | from 2s to 2500ms") == pytest.approx(3.5 / 5, rel=1e-4)
