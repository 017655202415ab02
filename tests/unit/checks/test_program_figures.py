"""Numbers and steps of programs of the user, judged: no number, lines from a buffer, numbers of no step."""

from __future__ import annotations

from typing import Any

import pytest

from mrc_testbed.testbed.checks.buffered import require_apart, require_lines_in_time
from mrc_testbed.testbed.checks.programs import printed_values
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.statistics import statistic
from mrc_testbed.testbed.checks.windows import NoData
from mrc_testbed.testbed.expect import Window
from mrc_testbed.testbed.rundir.tables import Completion, PrintedValue
from mrc_testbed.testbed.scenario import load_scenario_text

MS = 10**6
TEXT = """
name: mine
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, rtt: 40ms}
workload: [{programs: {name: mine, command: env, step: done, metric: 'loss=<loss>'}}]
"""


class Record:
    """The part of a record that these figures read: two programs, whose steps end at these times."""

    def __init__(self, ends_ms: list[float], printed_ms: dict[float, float] | None = None) -> None:
        self.derived: dict[Any, Any] = {}
        self.start_ns, self.end_ns, self.base_rtt_ns = 0, 20_000 * MS, 40 * MS
        self.history: list[Any] = []
        self.occurrences: tuple[Any, ...] = ()
        self.scenario = load_scenario_text(TEXT)
        begins = [0.0, *ends_ms[:-1]]
        spans = list(zip(begins, ends_ms, strict=True))
        self.completions = [
            Completion(host, step, round(begin * MS), round(end * MS), 0, 0)
            for step, (begin, end) in enumerate(spans)
            for host in ("h0", "h1")
        ]
        values = (printed_ms or {}).items()
        self.printed = [PrintedValue("h0", "loss", round(t_ms * MS), value) for t_ms, value in values]


def in_time(*ends_ms: float) -> None:
    record: Any = Record(list(ends_ms))
    require_lines_in_time(record, ["mine"])


def test_steps_from_a_buffer_have_no_time() -> None:
    in_time(*range(100, 1500, 100))
    in_time(*range(100, 1100, 100), 1019)  # one of eleven: a late reader
    for ends_ms in ([12_000 + place / 30 for place in range(14)], [*range(1000, 13_000, 1000), 12_010, 12_011]):
        with pytest.raises(NoData, match=r"steps of h0 took less than T/2, .*: its output is buffered \(stdbuf -oL"):
            in_time(*ends_ms)


def test_lines_of_one_read_have_one_time() -> None:
    require_apart("h0", [1, 2, 3, 4])
    with pytest.raises(NoData, match="3 of 3 lines of h0 came together: its output is buffered"):
        require_apart("h0", [5, 5, 5])


def refusal(*ends_ms: float, jobs: tuple[str, ...] = ("mine",), rtt: str = "40ms") -> str:
    record: Any = Record(list(ends_ms))
    record.scenario = load_scenario_text(TEXT, overrides=[f"fabric.rtt={rtt}"])
    try:
        require_lines_in_time(record, jobs)
    except NoData as error:
        return str(error)
    return ""


def test_one_step_in_ten_may_be_shorter_than_half_of_t() -> None:
    whole = [100.0 * (step + 1) for step in range(9)]
    assert refusal(*whole, 919.999) == ""
    assert refusal(*whole[:8], 819.999, 839.998).startswith("2 of 10 steps of h0 took less than T/2")
    assert refusal(*whole[:8], 820, 840) == ""
    assert refusal(20, 40, 60) == ""
    assert refusal(19.999999, 40, 60).startswith("1 of 3 steps of h0 ")


def test_steps_of_other_jobs_are_their_own() -> None:
    assert refusal(1, 2, 3, jobs=("another",)) == ""
    assert refusal(1, 2, 3, jobs=("another", "mine")) != ""


def test_without_a_delay_a_step_takes_a_nanosecond_at_least() -> None:
    assert refusal(100, 200, 200, rtt="0s").startswith("1 of 3 steps of h0 ")
    assert refusal(100, 200, 200 + 1e-6, rtt="0s") == ""


def test_one_line_in_ten_may_come_with_another() -> None:
    require_apart("h0", [1, 1, *range(3, 11)])
    with pytest.raises(NoData, match="3 of 10 lines of h0 came together"):
        require_apart("h0", [1, 1, 1, *range(4, 11)])
    with pytest.raises(NoData, match="2 of 9 lines of h0 came together"):
        require_apart("h0", [1, 1, *range(3, 10)])


def last(ends_ms: list[float], printed_ms: dict[float, float]) -> float:
    record: Any = Record(ends_ms, printed_ms)
    return statistic(printed_values(record, Window(), "program.loss", "last"), "last")


def test_the_last_value_is_of_the_last_step() -> None:
    steps = [100.0, 200.0, 300.0]
    assert last(steps, {100: 3, 200: 2, 300: 1}) == 1, "in the line that ends a step"
    assert last(steps, {90: 3, 190: 2, 290: 1}) == 1, "before it"
    assert last(steps, {110: 3, 210: 2, 310: 1}) == 1, "behind it"
    with pytest.raises(NoData, match="h0 printed no loss in its last step"):
        last(steps, {100: 3, 200: 2})


@pytest.mark.parametrize("stat", ["median", "p99", "mean", "min", "max", "last"])
def test_what_is_no_number_is_no_statistic(stat: str) -> None:
    nothing = float("nan")
    assert str(statistic([1.0, 2.0, nothing], stat)) == "nan"
    assert [number(value) for value in (nothing, float("inf"), -float("inf"))] == ["nan", "inf", "-inf"]
