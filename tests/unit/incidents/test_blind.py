"""What an observer may see of a case: no word of the truth, nothing in names, sizes and order, and the same each
time."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.incidents import observe
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.incidents.blind import HIDDEN_COLUMNS, _changed
from mrc_testbed.testbed.incidents.case import CaseFolder, make_case
from mrc_testbed.testbed.incidents.draw import KIND_WORDS, draw_case
from mrc_testbed.testbed.incidents.kinds import INCIDENT_KINDS
from mrc_testbed.testbed.rundir.files import read_lines
from mrc_testbed.testbed.scenario.faults import KINDS

LASTS_S = 4.0
QUIET_SEED = 19
"""Its setting has no incast of its own."""
FILES = {
    *("case.json", "topology.json", "samples.csv", "ports.csv", "events.jsonl", "snapshots.jsonl"),
    *("completions.csv", "waits.csv", "flows.csv", "messages.csv", "sizes.json"),
}
OF_THE_RUNNER = (
    *("inject", "heal", "fault", "incident", "scenario", "expect"),
    *("chaos", "occurrence", "hinder", "read-back"),
)
TOLD_BY_HOSTS = '"trigger":"deny"'
"""What a host says of a path that it was told to leave: an operator's own controller did."""


def observed(out: Path, seed: int, kind: str | None = None) -> CaseFolder:
    case = make_case(draw_case(seed, kind, LASTS_S), out)
    observe(case)
    return case


@pytest.mark.parametrize("kind", ["link-loss", "corrupt", "deny", "entry-wrong", "busy"])
@pytest.mark.nightly(keep=1)
def test_no_word_of_the_truth_is_in_what_is_seen(tmp_path: Path, kind: str) -> None:
    case = observed(tmp_path, 11, kind)
    assert {path.name for path in case.folder.iterdir()} == FILES
    words = {*KINDS, *KIND_WORDS, *OF_THE_RUNNER, *case.known()["kinds"]} - {"calm", "busy"}
    text = "\n".join(path.read_text() for path in case.folder.iterdir()).replace(TOLD_BY_HOSTS, "")
    found = {word for word in words if re.search(rf"(?<![\w-]){word}(?![\w-])", text)}
    assert not found
    assert '"f0"' not in text
    assert str(draw_case(11, kind, LASTS_S).data["seed"]) not in text
    assert not any(str(name) in text for name in (case.truth, case.folder))


def test_columns_and_rows_that_know_of_faults_stay_hidden(tmp_path: Path) -> None:
    case = observed(tmp_path, 12, "port-loss")
    run = case.run_folder()
    with (run / "ports.csv").open() as file:
        assert sum(int(row["lost"]) for row in csv.DictReader(file)) > 0, "there was something to hide"
    with (case.folder / "ports.csv").open() as file:
        assert HIDDEN_COLUMNS.isdisjoint(csv.DictReader(file).fieldnames or ())
    start_ns, end_ns = (case.about()[key] for key in ("start_ns", "end_ns"))
    for name in ("events.jsonl", "snapshots.jsonl"):
        assert all(start_ns <= line["t_ns"] <= end_ns for line in read_lines(case.folder / name))


def test_a_row_that_is_there_for_a_hidden_count_is_left_out() -> None:
    lines = ["t_ns,node,port,marked,trimmed,dropped", "1,a,x,0,0,0", "2,a,x,1,0,0", "3,a,x,1,0,0", "3,a,y,1,0,0"]
    assert [*_changed(lines)] == [lines[0], lines[2], lines[4]]


@pytest.mark.nightly
def test_the_same_seed_is_seen_the_same_to_the_byte(tmp_path: Path) -> None:
    first, second = (observed(tmp_path / name, 13) for name in ("a", "b"))
    assert first.id == second.id
    for path in first.folder.iterdir():
        assert path.read_bytes() == (second.folder / path.name).read_bytes(), path.name


def test_a_case_is_observed_once(tmp_path: Path) -> None:
    case = observed(tmp_path, 14, "calm")
    with pytest.raises(UsageError, match="was observed already"):
        observe(case)


@pytest.mark.nightly
def test_what_nothing_came_of_is_no_case(tmp_path: Path) -> None:
    """A switch that trims nothing where nothing would be trimmed: the run without it is the same to the byte."""
    draft = next(one for seed in range(99) if not (one := draw_case(seed, None, LASTS_S)).busy and not one.kinds)
    data = {**draft.data, "faults": [{"at": "1s", "trim-off": "p0-t1-0", "for": "1s", "name": "f0"}]}
    case = make_case(replace(draft, data=data, kinds=("trim-off",)), tmp_path)
    found = observe(case)
    assert found.without == ("f0",)
    assert not found.counts
    assert case.known()["without_effect"] == ["f0"]


@pytest.mark.nightly
def test_sizes_and_names_are_the_same_whatever_breaks(tmp_path: Path) -> None:
    """The events of a T0 that dies fill five times as many lines as those of a calm run."""
    seen, lines = set(), []
    for word in ("calm", "t0-silent", "port-flap", "deny", "host-pause"):
        case = observed(tmp_path / word, QUIET_SEED, word)
        seen.add(tuple((path.name, path.stat().st_size) for path in sorted(case.folder.iterdir())))
        told = (case.folder / "events.jsonl").read_text().rstrip().splitlines()
        lines.append(sum(len(line) for line in told if '"map_window"' not in line))
    assert len(seen) == 1
    assert max(lines) > 3 * min(lines)


# --- a classifier that sees only names, sizes and order


def features(case: CaseFolder, place: int) -> tuple[float, ...]:
    """All that is there without opening a file, but for when the case was run."""
    paths = sorted(case.folder.iterdir())
    sizes = [float(path.stat().st_size) for path in paths]
    times = [path.stat().st_mtime for path in paths if path.name != "case.json"]
    return (*sizes, *times, int(case.id[:6], 16), float(place), float(len(paths)))


def nearest(found: Sequence[tuple[tuple[float, ...], str]]) -> int:
    """How many labels the nearest other case guesses, each feature by its rank."""
    columns = [sorted({row[column] for row, _ in found}) for column in range(len(found[0][0]))]
    ranks = [[columns[n].index(value) / max(len(columns[n]) - 1, 1) for n, value in enumerate(row)] for row, _ in found]
    right = 0
    for number, (_, label) in enumerate(found):
        others = [other for other in range(len(found)) if other != number]
        best = min(others, key=lambda other: math.dist(ranks[number], ranks[other]))
        right += found[best][1] == label
    return right


@pytest.mark.timeout(1200)  # 60 runs, which took more than the usual 300 s beside other work
@pytest.mark.nightly
def test_a_classifier_of_names_sizes_and_order_stays_at_chance(tmp_path: Path) -> None:
    cases = [observed(tmp_path, seed) for seed in range(60)]
    cases.sort(key=lambda case: case.id)
    labels: Sequence[Callable[[CaseFolder], str]] = (
        lambda case: "some" if case.known()["kinds"] else "none",
        lambda case: INCIDENT_KINDS[case.known()["kinds"][0]].fault if case.known()["kinds"] else "none",
    )
    for label in labels:
        found = [(features(case, place), label(case)) for place, case in enumerate(cases)]
        shares = [count / len(found) for count in Counter(name for _, name in found).values()]
        chance = sum(share * share for share in shares)
        sigma = (len(found) * chance * (1 - chance)) ** 0.5
        assert nearest(found) <= len(found) * chance + 3 * sigma
