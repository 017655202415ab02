"""Variants and cases in a terminal, line by line."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.compare.comparison import Comparison, compare
from mrc_testbed.testbed.compare.determinism import DeterminismCheck
from mrc_testbed.testbed.compare.runs import ComparedRun, load_run
from mrc_testbed.testbed.compare.sequence import SequenceDiff
from mrc_testbed.testbed.compare.table import render_comparison, show_comparison
from mrc_testbed.testbed.compare.transports import StoodStill
from mrc_testbed.testbed.compare.words import TIMES
from tests.unit.checks.test_folder import HOSTS, SCENARIO, RunFolder
from tests.unit.checks.test_judge import break_off
from tests.unit.checks.test_outage import stall, watched
from tests.unit.compare.drawn import STEP, marked, one_run
from tests.unit.compare.test_words_of_tables import shown as printed

CALM = SCENARIO[: SCENARIO.index("faults:")] + SCENARIO[SCENARIO.index("expect:") :]
TCP = "transport: tcp\njudge: [mrc]\n"


def run_of(folder: Path, keys: str, scenario: str = SCENARIO, dies: bool = False) -> ComparedRun:
    """TCP stalls for 4.55 s, others for 100 ms."""
    run: RunFolder = watched(stall("h0", "h1", 3.55, 8.1 if "tcp" in keys else 3.65))
    run.scenario = f"{keys}{scenario}"
    assert run.counters is not None
    for host in HOSTS:
        run.counters["hosts"][host]["counters"] |= {"bytes_sent": 1150, "bytes_delivered": 1000}
    if scenario is CALM:
        run.history = [line for line in run.history if line["op"] not in ("inject", "heal")]
        run.events = [line for line in run.events if line["event"] == "snapshot"]
    if dies:
        break_off(run)
    folder.mkdir()
    run.write(folder)
    return load_run(folder)


def lines_of(comparison: Comparison) -> list[str]:
    return [line.replace(TIMES, "x") for line in marked(render_comparison(comparison))]


def test_a_row_a_variant(tmp_path: Path) -> None:
    lines = lines_of(compare([run_of(tmp_path / "a", ""), run_of(tmp_path / "b", TCP)]))
    begin = next(number for number, line in enumerate(lines) if "wasted" in line)
    assert [line.replace("b<", "<") for line in lines[begin - 1 : begin + 7]] == VARIANTS.splitlines()
    assert "d<How far to trust these figures:>" in lines


def cases(folder: Path) -> Comparison:
    """Two variants in two cases; the second one dies in the cut."""
    runs = [
        run_of(
            folder / f"{variant}-{case}",
            f"variant: {variant}\ncase: {case}\n{keys}",
            CALM if case == "calm" else SCENARIO,
            variant == "tcp" and case == "cut",
        )
        for variant, keys in (("tcp", TCP), ("mrc", ""))
        for case in ("calm", "cut")
    ]
    return compare(runs)


def test_a_column_a_case(tmp_path: Path) -> None:
    lines = lines_of(cases(tmp_path))
    assert lines[: len(CASES.splitlines())] == CASES.splitlines()
    assert lines[len(CASES.splitlines())] == "d<How far to trust these figures:>"


def test_sequences_come_before_tables(tmp_path: Path) -> None:
    comparison = compare([one_run({"k": group}, 1, {STEP: 1e9}) for group in "12"])
    certain = (DeterminismCheck("work", False, "8 and 7 steps"), DeterminismCheck("schedule", True, "the same 1"))
    diff = SequenceDiff(certain, (), 50_000_000)
    lines = printed(lambda console: show_comparison(comparison, diff, console), 120)
    assert lines[0] == "r<- NOT the same, although the seed decides it: work: 8 and 7 steps>"
    assert lines[1] == "- the same, as the seed decides it: schedule (the same 1)"
    assert printed(lambda console: show_comparison(comparison, None, console), 120) == lines[-8:]
    assert printed(lambda console: show_comparison(comparison, None, console), 80) == lines[-8:]


def test_a_stall_in_seconds_and_in_round_trips() -> None:
    told = [
        StoodStill(ns, rtt_ns, 40_000_000, known=known, runs=2)
        for ns, rtt_ns, known in ((4.64e9, 40_000_000, 2), (0.0, 20_000_000, 1), (0.0, 0, 2), (None, 20_000_000, 0))
    ]
    assert [one.seconds for one in told] == ["4.64 s", "under 40 ms (1 of 2 runs)", "under 40 ms", "?"]
    assert [one.in_rtts for one in told] == ["116 T", "under 2 T", "", "?"]
    assert StoodStill(4.64e9, 40_000_000, 40_000_000).seconds == "4.64 s"


VARIANTS = """\
             <   step, clean>   < worst step in>
             <        median>   <        faults>   <longest stall>   < in T>   <goodput kept>   <wasted>   <job  >
small (1)               1 s            1.2 s          100 ms     5 T           87 %     15 %   lives
d<MRC>
d<SRv6>
small (2)               1 s            1.2 s          4.55 s   228 T           87 %     15 %   lives
d<TCP, cubic>
d<ECMP>
"""
CASES = """\
b<worst step>: of the run; x: over a usual step before
      b< calm>   b<   cut>
tcp   1.2 s     died
      x1.20    4.4 s
mrc   1.2 s   b< 1.2 s>
      x1.20   b<x1.20*>
b<longest standstill>: a QP or connection had work and delivered nothing
      b<  calm>   b<    cut>
tcp   <40 ms      died
                 4.4 s
mrc   <40 ms   b<100 ms*>
b<goodput kept>: of the whole run, over that before
      b<calm>   b<  cut>
tcp   100%    died
             4.4 s
mrc   100%   b< 96%*>
d<* better than tcp in the same case, by more than 2%, or alive where its job died.>
"""
