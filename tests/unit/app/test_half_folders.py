"""Half of a damaged folder is no answer: each verb over each damaged file refuses in one line, or says what it says of
the whole folder."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.incidents import observe
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.incidents.case import CaseFolder, make_case
from mrc_testbed.testbed.incidents.draw import draw_case
from mrc_testbed.testbed.rundir.sizes import SIZES
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.calls import Call, Ended

TEXT = """\
name: whole
world: virtual
seed: 5
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 20ms}
workload:
  - train: {hosts: all, steps: 6, compute: 20ms, allreduce: 128KiB}
  - write: {from: h0, to: h1, bytes: 300KB, name: bulk}
faults:
  - {at: 200ms, one-way: "p1-t0-0:p1-t1-1", direction: up, for: 500ms, name: grey}
expect: [bytes_wrong == 0, "step_time.p100 <= 60s"]
"""
NOISE = bytes(range(1, 256)) * 3


def missing(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut_in_a_line(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2].rstrip(b"\n"))


def cut_at_a_line_end(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: max(1, len(lines) * 2 // 3)]))


def garbage(path: Path) -> None:
    path.write_bytes(NOISE)


def other_types(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b":1", b':"1"').replace(b": 1", b': ["1"]').replace(b",1", b",x"))


def no_numbers(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b":1", b":NaN").replace(b": 1", b": NaN").replace(b",1", b",nan"))


def folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


Damage = Callable[[Path], None]
DAMAGES: list[Damage] = [
    *(missing, empty, cut_in_a_line, cut_at_a_line_end),
    *(garbage, other_types, no_numbers, folder_in_its_place),
]
FILES = (
    *("scenario.yaml", "plan.json", "environment.json", "history.jsonl", "events.jsonl", "counters.json"),
    *("fidelity.json", "samples.csv", "ports.csv", "completions.csv", "waits.csv", "flows.csv", "messages.csv"),
    *("routes.csv", "verdict.json", SIZES),
)
VERBS = (
    *("map RUN", "map RUN --json", "map RUN --answers", "show RUN p0-t0-0 queue counters", "metrics RUN"),
    *("compare RUN OTHER --out OUT", "bounds RUN OTHER", "report RUN", "export RUN --to perfetto --file OUT/x"),
)
CASE_FILES = ("case.json", "events.jsonl", "snapshots.jsonl", "topology.json", "samples.csv", "ports.csv")
CASE_VERBS = (
    *("map CASE", "map CASE --json", "incident answer CASE ANSWERS --name some", "incident score CASE"),
    "incident serve CASE --timeout 20 -- python3 -S OBSERVER",
)
OBSERVER = """
import sys
for line in ('{"do": "topology"}', '{"do": "wait", "seconds": 4}', '{"do": "host", "name": "h0"}',
             '{"do": "events", "since_s": 0}', '{"do": "answer", "state": "healthy"}'):
    print(line, flush=True)
    print(sys.stdin.readline(), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of a scenario, with different seeds."""
    made = []
    for seed in ("seed: 5", "seed: 6"):
        outcome = run_scenario(load_scenario_text(TEXT.replace("seed: 5", seed)), tmp_path_factory.mktemp("r"), True)
        assert outcome.folder is not None
        made.append(outcome.folder)
    return made[0], made[1]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> CaseFolder:
    made = make_case(draw_case(11, "link-down", 6.0), tmp_path_factory.mktemp("cases"))
    observe(made)
    return made


@contextmanager
def damaged(path: Path, damage: Damage) -> Iterator[None]:
    """The file, damaged for the time of the block, and whatever was written beside it taken away again."""
    kept = path.with_name(path.name + ".kept")
    shutil.copy2(path, kept)
    kept = kept.rename(path.parent.parent / kept.name)
    damage(path)
    try:
        yield
    finally:
        if path.is_dir():
            path.rmdir()
        os.replace(kept, path)


def said_of(call: Call, verb: str, places: dict[str, Path]) -> Ended:
    words = [word for part in verb.split() for word in [part]]
    for name, path in places.items():
        words = [word.replace(name, str(path)) for word in words]
    return call(*words)


def _timeless(text: str) -> str:
    return re.sub(r"\d{8}T\d{6}Z[\w-]*compare(-\d+)?", "COMPARED", text)


def refused_or_the_same(ended: Ended, whole: Ended) -> None:
    if (ended.status, _timeless(ended.out)) == (whole.status, _timeless(whole.out)):
        return
    assert ended.status in (2, 3), ended.err
    assert "Traceback" not in ended.err
    assert "internal error" not in ended.err
    told = [line for line in ended.said if not line.startswith(("warning: ", "note: "))]
    assert told, (ended.out, ended.err)
    assert any("/" in line for line in told), told


@pytest.mark.parametrize(("file", "damage"), [*itertools.product(FILES, DAMAGES)])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.nightly(keep=150)
def test_a_damaged_run_is_refused_in_a_line(
    call: Call, runs: tuple[Path, Path], tmp_path: Path, file: str, damage: Damage, verb: str
) -> None:
    places = {"RUN": runs[0], "OTHER": runs[1], "OUT": tmp_path}
    whole = said_of(call, verb, places)
    with damaged(runs[0] / file, damage):
        ended = said_of(call, verb, places)
    refused_or_the_same(ended, whole)


@pytest.mark.parametrize(("file", "damage"), [*itertools.product(CASE_FILES, DAMAGES)])
@pytest.mark.parametrize("verb", CASE_VERBS)
@pytest.mark.nightly(keep=80)
def test_a_damaged_case_is_refused_in_a_line(
    call: Call, case: CaseFolder, tmp_path: Path, file: str, damage: Damage, verb: str
) -> None:
    answers, observer = tmp_path / "a.jsonl", tmp_path / "observer.py"
    answers.write_text('{"t_s": 2, "state": "healthy"}\n')
    observer.write_text(OBSERVER)
    places = {"CASE": case.folder, "ANSWERS": answers, "OBSERVER": observer}
    shutil.rmtree(case.folder / "answers", ignore_errors=True)
    whole = said_of(call, verb, places)
    shutil.rmtree(case.folder / "answers", ignore_errors=True)
    with damaged(case.folder / file, damage):
        ended = said_of(call, verb, places)
    refused_or_the_same(ended, whole)


@pytest.mark.parametrize("name", ["events.jsonl", "samples.csv", "history.jsonl"])
def test_a_cut_table_is_named_with_its_bytes(call: Call, runs: tuple[Path, Path], name: str) -> None:
    noted = json.loads((runs[0] / SIZES).read_text(encoding="utf-8"))["bytes"][name]
    assert noted == (runs[0] / name).stat().st_size
    with damaged(runs[0] / name, cut_at_a_line_end):
        left = (runs[0] / name).stat().st_size
        ended = call("map", str(runs[0]))
    assert (ended.status, ended.out) == (3, "")
    said = f"has {left} bytes, and the run wrote {noted}: the folder is damaged; run it again"
    assert ended.said == [f"mrc-testbed: {runs[0]}/{name}: {said}"]


@pytest.mark.parametrize("line", ["[]", "[1, 2]", "7", '"healthy"', "null", "true", "[[]]"])
def test_an_answer_that_is_no_object_is_named(call: Call, case: CaseFolder, tmp_path: Path, line: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"t_s": 1, "state": "unsure"}}\n{line}\n')
    ended = call("incident", "answer", str(case.folder), str(file), "--name", "mine")
    assert ended.status == 2
    said = 'must be an object, such as {"t_s": 2, "state": "healthy"}'
    assert ended.said == [f"mrc-testbed: {file}:2:1: answer: {said}"]
