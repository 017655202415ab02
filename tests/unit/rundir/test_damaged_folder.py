"""Run folders with values that no run writes: each command says what is wrong in a line, and goes on with the rest."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.errors import TestbedError
from mrc_testbed.testbed.pages.report.samples import read_samples
from mrc_testbed.testbed.report.frames.run import load_run
from mrc_testbed.testbed.rundir import files
from mrc_testbed.testbed.rundir.files import MOST_DOCUMENT_BYTES, MOST_LINE_BYTES, MOST_TABLE_BYTES, RecordError
from mrc_testbed.testbed.rundir.ownership import OWNER, abandoned
from mrc_testbed.testbed.rundir.recorder import Recorder
from tests.unit.calls import Call
from tests.unit.recorded import add_flows, record_run

DEEP = "[" * 100_000
VALUES: list[Any] = [
    "x",
    "",
    None,
    [],
    {},
    True,
    -1,
    1e308,
    float("nan"),
    float("inf"),
    10**30,
    [[[]]],
    {"a": {"b": []}},
]
DOCUMENTS = ("verdict.json", "counters.json", "plan.json", "environment.json", "fidelity.json", "recovery.json")
LINES = ("history.jsonl", "events.jsonl")
TABLES = ("samples.csv", "ports.csv", "completions.csv", "waits.csv", "flows.csv", "messages.csv")
SEEDS = range(int(os.environ.get("DAMAGED_FOLDERS", "60")))

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = record_run(tmp_path / "results" / "20260801T000000Z-small")
    add_flows(folder)
    return folder


@pytest.fixture
def other(run: Path) -> Path:
    return record_run(run.parent / "20260802T000000Z-other")


def killed(folder: Path) -> None:
    """Before it was judged."""
    (folder / "verdict.json").unlink(missing_ok=True)
    (folder / OWNER).write_text("{}")


def a_fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def nested(path: Path) -> None:
    path.write_text(DEEP)


def huge(path: Path) -> None:
    """So long that nothing should read it; it takes no room on the disk."""
    path.touch()
    os.truncate(path, MOST_TABLE_BYTES + 1)


def a_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


DAMAGES = (a_fifo, endless, nested, huge, a_folder)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [*DOCUMENTS, *LINES, *TABLES, "scenario.yaml"])
@pytest.mark.nightly(keep=10)
def test_a_file_that_is_none_is_named_in_one_line(
    call: Call, run: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(run / name)
    (run / "verdict.json" if name != "verdict.json" else run / "junit.xml").unlink()
    ended = call("report", str(run))
    assert "internal error" not in ended.err
    assert len(ended.said) <= 4
    assert ended.status == 0 or name in ended.err


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", [*DOCUMENTS, *LINES, "completions.csv", "scenario.yaml"])
@pytest.mark.nightly(keep=15)
def test_a_map_of_a_damaged_run_is_one_line_or_a_map(
    call: Call, run: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(run / name)
    ended = call("map", str(run))
    assert "internal error" not in ended.err
    assert ended.status == 0 or str(run) in ended.err
    assert len(ended.said) <= (3 if name == "scenario.yaml" else 1), "a mistake in a scenario is shown with its line"


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.nightly(keep=2)
def test_every_list_and_comparison_goes_on(call: Call, run: Path, other: Path, damage: Callable[[Path], None]) -> None:
    damage(run / "verdict.json")
    (run.parent / "20260803T000000Z-compare").mkdir()
    damage(run.parent / "20260803T000000Z-compare" / "compare.json")
    (run.parent / "20260803T000000Z-compare" / "scenario.yaml").touch()
    listed = call("results", str(run.parent))
    assert listed.status == 0
    assert other.name in listed.out
    assert run.name in listed.out
    as_json = call("results", str(run.parent), "--json")
    assert other.name in {one["run"] for one in json.loads(as_json.out)}
    pages = call("report", str(run), str(other))
    assert f"{other}/report.html" in pages.out
    assert "internal error" not in call("compare", str(run), str(other), "--out", str(run.parent)).err


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["history.jsonl", "counters.json", "scenario.yaml", "plan.json"])
@pytest.mark.nightly(keep=3)
def test_clean_judges_the_others_and_says_that_it_could_not_judge_all(
    call: Call, run: Path, other: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(run / name)
    killed(run)
    killed(other)
    before = sorted(path.name for path in run.iterdir())
    ended = call("clean", "--out", str(run.parent))
    assert f"{other}: was killed; verdict inconclusive" in ended.out
    if (run / OWNER).exists():
        assert ended.status == 3
        assert f"{run}: cannot be judged: " in ended.err
        assert name in ended.err
        assert sorted(path.name for path in run.iterdir()) == before
    else:
        assert ended.status == 0, "what is not read at all does no harm"


@pytest.mark.parametrize("name", ["scenario.yaml", "plan.json"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.nightly(keep=1)
def test_a_damaged_run_is_not_replayed(call: Call, run: Path, name: str, damage: Callable[[Path], None]) -> None:
    damage(run / name)
    for command in (["replay", "--virtual"], ["worlds"]):
        ended = call(*command, str(run), "--out", str(run.parent))
        assert ended.status in (2, 3)
        assert name in ended.err
        assert "internal error" not in ended.err


def test_folders_in_folders_are_no_matter(call: Call, run: Path) -> None:
    inner = run / "logs"
    try:
        for _ in range(1500):
            inner = inner / "a"
            try:
                inner.mkdir()
            except OSError:
                break
        assert run.name in call("results", str(run.parent)).out
        assert "is a folder in 16 others" in call("report", str(run)).err
        ended = call("results", "rm", run.name, "--out", str(run.parent), "--yes")
        assert ended.status == 0 or "use rm -r" in ended.err
    finally:  # which is too deep for pytest to remove
        subprocess.run(["rm", "-rf", str(run)], check=True)


@pytest.mark.parametrize("moment", [-(10**10), 10**10, 2**33])
def test_any_time_of_a_file_is_listed(call: Call, run: Path, moment: int) -> None:
    odd = run.rename(run.with_name("odd"))
    os.utime(odd / "scenario.yaml", (moment, moment))
    for options in ([], ["--json"]):
        assert "odd" in call("results", str(odd.parent), *options).out


@pytest.mark.parametrize("line", ["nan,h0,p0,1,2,3,4,5,6", "1,h0,p0,1,2,3,4,5,inf", f"1,h0,p0,{'9' * 5000},2,3,4,5,6"])
def test_no_number_in_a_table_is_named(run: Path, line: str) -> None:
    with (run / "samples.csv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RecordError, match=r"samples\.csv: a line is not what it should be"):
        read_samples(run)


def test_a_line_without_an_end_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.touch()
    os.truncate(path, 100 * MOST_LINE_BYTES)
    with pytest.raises(RecordError, match="has a line of more than"):
        list(files.read_lines(path))


def test_a_document_is_not_read_beyond_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    path.touch()
    os.truncate(path, MOST_DOCUMENT_BYTES + 1)
    with pytest.raises(RecordError, match="such a file has at most"):
        files.read_json(path)


@pytest.mark.timeout(30)
def test_a_plugin_that_a_run_names_is_opened_only_if_it_is_a_file(call: Call, run: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    rows = [{"file": str(name), "sha256": "0"} for name in (tmp_path / "pipe", "/dev/zero", "\0")]
    environment = json.loads((run / "environment.json").read_text())
    (run / "environment.json").write_text(json.dumps({**environment, "plugins": rows}))
    assert call("report", str(run)).status == 0
    (run / "environment.json").write_text(json.dumps({**environment, "plugins": ["x"]}))
    assert "its `plugins` are not files" in call("report", str(run)).err


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.nightly(keep=3)
def test_a_value_that_no_run_writes_ends_in_a_line(call: Call, run: Path, other: Path, seed: int) -> None:
    changed = spoil(run, random.Random(seed))
    if seed % 2:
        (run / "verdict.json").unlink()
        killed(run)
    of_one = [[name, run.name] for name in ("report", "map", "metrics")]
    for command in (["results"], *of_one, ["compare", run.name, other.name], ["clean"]):
        ended = call(*command, "--out", str(run.parent))
        assert "internal error" not in ended.err, changed
        assert "Traceback" not in ended.err, changed
        assert "Error: " not in ended.err, changed
    assert not abandoned(other)
    try_frames(run)


def test_what_metrics_cannot_be_made_of_is_judged_all_the_same(call: Call, run: Path) -> None:
    fidelity = json.loads((run / "fidelity.json").read_text())
    (run / "fidelity.json").write_text(json.dumps({**fidelity, "lateness_max_ns": -1}))
    asked = call("metrics", str(run))
    assert "holds a value that no run writes" in asked.err
    killed(run)
    (run / "metrics.om").unlink()
    ended = call("clean", "--out", str(run.parent))
    assert f"{run}: was killed; verdict inconclusive" in ended.out
    assert not (run / "metrics.om").exists()


def spoil(run: Path, chance: random.Random) -> str:
    """Put another value in the place of one. Says which and where."""
    there = [name for name in (*DOCUMENTS, *LINES, *TABLES) if (run / name).exists()]
    name, value = chance.choice(there), chance.choice(VALUES)
    path = run / name
    if name in TABLES:
        lines = path.read_text().splitlines()
        row = chance.randrange(len(lines))
        cells = lines[row].split(",")
        cells[chance.randrange(len(cells))] = str(value)
        lines[row] = ",".join(cells)
        path.write_text("\n".join(lines) + "\n")
        return f"{name}: {value!r} in row {row}: {lines[row]}"
    documents = [json.loads(line) for line in path.read_text().splitlines()] if name in LINES else None
    whole = documents if documents is not None else json.loads(path.read_text())
    parent, key = chance.choice([*places(whole)])
    parent[key] = value
    path.write_text("\n".join(map(json.dumps, whole)) + "\n" if name in LINES else json.dumps(whole))
    return f"{name}: {value!r} for {key}: {str(parent)[:200]}"


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every object or list of a document with each of its keys or indexes."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def try_frames(run: Path) -> None:
    """What a script asks for is there, or refused."""
    try:
        data = load_run(run)
    except TestbedError:
        return
    for name in ("samples", "ports", "flows", "events", "history", "snapshots", "steps", "counters", "qps", "recovery"):
        try:
            getattr(data, name)
        except TestbedError:
            continue


def test_a_torn_history_is_cut_where_its_last_line_begins(run: Path) -> None:
    path = run / "history.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"i": 9')
    Recorder(run).close()
    assert path.read_bytes() == whole
