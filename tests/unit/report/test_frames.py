"""Runs as pandas frames: what is in them, and that their columns and types are always the same."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.report import Run, load_run
from mrc_testbed.testbed.report.frames import schema
from mrc_testbed.testbed.report.frames.schema import TABLES
from mrc_testbed.testbed.rundir.files import RecordError
from mrc_testbed.testbed.rundir.lines import MAP
from mrc_testbed.testbed.rundir.results import point_latest
from mrc_testbed.testbed.rundir.tables import CSV_TABLES, FLOW_TIMES, PORTS, PRINTED, PROGRAMS, ROUTES, Table
from mrc_testbed.testbed.switching.port_counts import PortCounts
from tests.examples import examples
from tests.unit.checks.test_folder import HOSTS, LINK, RTT_NS, RunFolder, at, ev
from tests.unit.recorded import add_flows, record_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_run(tmp_path_factory.mktemp("results") / "small")


@pytest.fixture
def run(folder: Path) -> Run:
    return load_run(folder)


def killed(tmp_path: Path) -> Path:
    """What is left of it when it is killed in mid-run."""
    folder = record_run(tmp_path / "killed")
    for name in ("verdict.json", "recovery.json", "summary.txt", "junit.xml", "counters.json", "fidelity.json"):
        (folder / name).unlink()
    for path in folder.glob("*.csv"):
        path.write_text(path.read_text()[:-4])
    for path in folder.glob("*.jsonl"):
        path.write_text(path.read_text()[:-9])
    return folder


def assert_schema(frame: pd.DataFrame, table: Table) -> None:
    names = list(table.dtypes)
    assert list(frame.columns[: len(names)]) == names
    assert frame.dtypes[names].astype(str).to_dict() == {
        name: str(pd.Series([], dtype=dtype).dtype) for name, dtype in table.dtypes.items()
    }
    rest = frame.dtypes[len(names) :]
    assert table.open_ended or rest.empty
    assert (rest == "int64").all()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@pytest.mark.nightly(keep=8)
def test_columns_and_types_are_the_same_with_rows_and_without(folder: Path, tmp_path: Path, table: Table) -> None:
    add_flows(folder)
    full = getattr(load_run(folder), table.name)
    assert_schema(full, table)
    assert not full.empty or table in (PORTS, ROUTES, PROGRAMS, PRINTED, FLOW_TIMES, MAP)
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    (nothing / "scenario.yaml").write_text((folder / "scenario.yaml").read_text())
    empty = getattr(load_run(nothing), table.name)
    assert_schema(empty, table)
    assert empty.empty
    assert_schema(getattr(load_run(killed(tmp_path)), table.name), table)


def test_every_csv_file_has_a_frame() -> None:
    assert [table for table in TABLES if table.file.endswith(".csv") and table is not schema.STEPS] == [*CSV_TABLES]


def test_port_counters_have_what_the_port_program_counts() -> None:
    names = [column.name for column in schema.PORT_COUNTERS.columns]
    counted = [each.name for each in fields(PortCounts)]
    of_queues = ("queue_drops_high", "queue_drops_data", "most_queued_bytes")
    assert names == ["node", "port", *counted, "rx_packets", "tx_packets", *of_queues]


def test_the_plain_attributes(run: Run, folder: Path) -> None:
    assert (run.folder, run.name, run.seed) == (folder, "small", run.scenario.seed)
    assert (run.start_ns, run.end_ns, run.base_rtt_ns) == (at(0), at(8.3), RTT_NS)
    assert (run.verdict, run.reason, run.interrupted) == ("pass", "", "")
    assert run.plan.shape.hosts == 4
    assert run.environment["base_rtt_ns"] == RTT_NS
    assert repr(run) == f"<Run {folder}: pass>"
    assert len(run.record.completions) == len(run.completions)
    assert run.samples is run.samples, "it is read once"


def test_seconds_count_from_the_start_of_the_workload(run: Run) -> None:
    assert run.samples["t_s"].iloc[0] == 0
    assert run.history["t_s"].iloc[0] == -2
    assert run.completions["end_s"].max() == pytest.approx(8.3)
    assert (run.waits["wait_s"] == 0.003).all()
    assert run.steps["duration_s"].tolist()[1:] == pytest.approx([1.0, 1.0, 1.2, 1.1, 1.0, 1.0, 1.0])
    assert set(run.steps["last_host"]) == {"h0"}


def test_events_have_a_row_each_and_what_they_lack_is_missing(tmp_path: Path) -> None:
    made = RunFolder()
    made.events += [
        {"event": "port_state", "t_ns": at(4), "host": "h1", "peer": None, "plane": 0, "state": "DOWN"},
        {"event": "plane_state", "t_ns": at(4), "host": "h1", "peer": "h2", "plane": 0, "usable": False},
        {"event": "step", "t_ns": at(5), "host": "h1", "step": 0, "waits": {}},
        ev("h2", "h1", 1, 0, 6, "GOOD", "SKIP", lost=5.5),
    ]
    events = load_run(made.write(tmp_path)).events
    assert events["event"].tolist() == ["ev_state"] * 4 + ["port_state", "plane_state", "ev_state"]
    first, port, plane, last = (events.iloc[n] for n in (0, 4, 5, 6))
    assert (first["host"], first["peer"], first["plane"], first["from"], first["to"]) == (
        *("h0", "h2", 0, "GOOD", "ASSUMED_BAD"),
    )
    assert (first["first_lost_tx_s"], first["first_lost_tx_ns"]) == (pytest.approx(3.55), at(3.55))
    assert first["last_tx_ns"] is pd.NA, "0 in the file: no packet"
    assert pd.isna(first["last_tx_s"])
    assert (port["peer"], port["state"], port["usable"], port["uplink"]) == ("", "DOWN", pd.NA, pd.NA)
    assert plane["usable"] is False or plane["usable"] == False  # noqa: E712
    assert last["first_lost_tx_s"] == pytest.approx(5.5)


def test_snapshots_and_counters_have_a_column_a_counter(run: Run) -> None:
    assert len(run.snapshots) == 4 * len(HOSTS)
    assert run.snapshots.groupby("t_s")["lost_timeout"].sum().to_dict() == {1: 0, 3: 8, 5: 48, 7: 52}
    assert run.counters.set_index("host").loc["h2", "retransmitted"] == 15


def test_port_counters_of_a_nic_lack_what_it_does_not_count(run: Run) -> None:
    counted = run.port_counters.set_index(["node", "port"])
    assert counted.loc[("h0", "port0"), "out_marked"] is pd.NA
    assert counted.loc[("p0-t0-0", "up0"), "out_marked"] == 0
    assert run.queues["drops"].sum() == 4


def test_history_joins_names(run: Run) -> None:
    inject = run.history[run.history["op"] == "inject"].iloc[0]
    assert (inject["fault"], inject["cycle"], inject["links"], inject["hosts"]) == ("cut", 0, LINK, "")
    assert run.history["cycle"].isna().sum() == len(run.history) - 4


def test_recovery_has_a_row_a_cycle(run: Run, folder: Path) -> None:
    (row,) = run.recovery.to_dict("records")
    (occurrence,) = json.loads((folder / "recovery.json").read_text())["cycles"]
    assert row["first_loss_ms"] == occurrence["first_loss"]["ms"]
    assert row["after_heal_evs_restored_last_rtt"] == occurrence["after_heal"]["evs_restored"]["last"]["rtt"]
    assert row["peers_told_p100_why"] == occurrence["peers_told"]["p100"]["why"]
    assert pd.isna(row["peers_told_p100_ms"])
    names = {name.removesuffix("_why") for name in row}
    flat = {name.removesuffix("_why") for name in _flat(occurrence)}
    assert flat <= names


def _flat(values: dict[str, object], above: str = "") -> list[str]:
    return [
        name
        for key, value in values.items()
        for name in (_flat(value, f"{above}{key}_") if isinstance(value, dict) else [f"{above}{key}"])
    ]


def test_a_killed_run_gives_what_it_wrote(tmp_path: Path, folder: Path) -> None:
    run, whole = load_run(killed(tmp_path)), load_run(folder)
    assert (run.verdict, run.reason) == (None, "")
    for name in ("samples", "completions", "waits", "ports", "snapshots", "history"):
        assert len(getattr(run, name)) == len(getattr(whole, name)) - 1, name
    assert run.recovery["first_loss_ms"].tolist() == whole.recovery["first_loss_ms"].tolist(), "worked out anew"
    assert len(run.steps) == 7


@settings(max_examples=examples(60))
@given(
    data=st.data(), name=st.sampled_from(["samples", "ports", "waits", "completions", "events", "snapshots", "history"])
)
def test_a_file_cut_anywhere_gives_its_whole_lines(folder: Path, data: st.DataObject, name: str) -> None:
    """A kill tears the last line, and a reader may look while a run is still writing."""
    whole = load_run(folder)
    file = next(table.file for table in TABLES if table.name == name)
    content = (folder / file).read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made)
        for needed in ("scenario.yaml", "history.jsonl"):
            (copy / needed).write_bytes((folder / needed).read_bytes())
        (copy / file).write_bytes(content[:cut])
        frame = getattr(load_run(copy), name)
    full = getattr(whole, name)
    times = [column for column in frame.columns if column.endswith("_s")]
    kept = full.head(len(frame)).drop(columns=times)
    pd.testing.assert_frame_equal(frame.drop(columns=times)[kept.columns] if len(frame) else kept, kept)
    if name not in ("events", "snapshots"):  # a file of both
        lines = content[:cut].count(b"\n") - file.endswith(".csv")
        assert len(frame) - max(0, lines) in ((0, 1) if file.endswith(".jsonl") else (0,))


def test_a_run_whose_workload_never_began_has_no_seconds(tmp_path: Path) -> None:
    folder = record_run(tmp_path / "early")
    (folder / "history.jsonl").write_text((folder / "history.jsonl").read_text().partition("\n")[0])
    run = load_run(folder)
    assert run.start_ns is None
    assert run.history["t_s"].isna().all()
    assert run.events["t_s"].isna().all()


@pytest.mark.parametrize(
    ("name", "text", "frame"),
    [
        ("samples.csv", "t_ns,node\n1,h0\n", "samples"),
        ("waits.csv", "host,step,peer,wait_ns\nh0,soon,h1,3\n", "waits"),
        ("events.jsonl", "[]\n{}\n", "events"),
        ("events.jsonl", '{"event": "plane_state", "plane": "zero"}\n', "events"),
        ("events.jsonl", '{"event": "snapshot", "t_ns": 1, "host": "h0"}\n', "snapshots"),
        (
            "events.jsonl",
            '{"event": "snapshot", "t_ns": 1, "host": "h0", "counters": {"a": 1}}\n'
            '{"event": "snapshot", "t_ns": 2, "host": "h0", "counters": {"b": 1}}\n',
            "snapshots",
        ),
        ("verdict.json", "{}", "checks"),
        ("recovery.json", '{"cycles": [3]}', "recovery"),
        ("counters.json", '{"hosts": {"h0": {"paths": {"h1": {"x": 1}}}}}', "paths"),
        ("counters.json", '{"hosts": {"h0": {}}}', "counters"),
        ("counters.json", '{"ports": []}', "port_counters"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, text: str, frame: str) -> None:
    folder = RunFolder().write(tmp_path)
    (folder / name).write_text(text)
    with pytest.raises(RecordError) as told:
        getattr(load_run(folder), frame)
    assert told.value.path == folder / name
    assert "\n" not in str(told.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = RunFolder().write(tmp_path)
    (folder / "samples.csv").mkdir()
    with pytest.raises(RecordError, match=r"samples\.csv: cannot be read: Is a directory"):
        _ = load_run(folder).samples


def test_runs_are_found_by_name(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point_latest(folder)
    (tmp_path / "results").symlink_to(folder.parent)
    monkeypatch.chdir(tmp_path)
    assert load_run("latest").name == load_run("small").name == "small"
    with pytest.raises(UsageError, match="here or in results"):
        load_run("none")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "scenario.yaml").write_text("name: [")
    with pytest.raises(ScenarioError):
        load_run(broken)


def test_pandas_is_loaded_when_a_frame_is_asked_for(folder: Path) -> None:
    script = (
        "import sys\nfrom mrc_testbed.testbed.report import load_run\n"
        f"run = load_run({str(folder)!r})\nprint(run.verdict, 'pandas' in sys.modules)\n"
        "run.waits\nprint('pandas' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["pass", "False", "True"]
