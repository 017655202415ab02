"""docs/results.md says what is there: columns, keys and types of every file, and the frames."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.report.frames import schema
from mrc_testbed.testbed.report.frames.schema import TABLES
from mrc_testbed.testbed.rundir.tables import Table
from mrc_testbed.topos.export import plan_as_dict
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape
from tests import documented
from tests.unit.recorded import add_flows, record_run

AS_FILES = (
    *("samples", "ports", "completions", "waits", "flows", "messages", "flow_times", "routes", "programs", "printed"),
    *("history", "map", "events"),
)
"""Frames that have the columns of their files."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = record_run(tmp_path_factory.mktemp("results") / "small")
    add_flows(folder)
    return folder


@pytest.mark.parametrize("table", [table for table in TABLES if table.name in AS_FILES], ids=lambda table: table.name)
def test_the_columns_of_a_file_are_documented(table: Table) -> None:
    said = documented.columns(table.file)
    assert said == [(column.name, column.type, column.unit) for column in table.columns]


def test_every_frame_is_documented_with_its_columns() -> None:
    text = documented.section("Frames")
    said = {
        documented.words(row[0])[0]: (row[1], documented.words(row[3]))
        for row in documented.table(text, documented.FRAME_HEAD)
    }
    for table in TABLES:
        if table.name in AS_FILES:
            assert f"`{table.name}`" in text
            continue
        file, words = said.pop(table.name)
        assert file == table.file
        if not words[0].startswith(("cycles", "checks", "fidelity")) and table is not schema.PORT_COUNTERS:
            names = [column.name for column in table.columns]
            assert words[: len(names)] == names
            assert set(words[len(names) :]) <= ({"counters"} if table.open_ended else set())
    assert not said, "no other frames"


def without(prefix: str, file: str) -> dict[str, str]:
    """Keys of a file below `prefix`, with their types."""
    return {key.removeprefix(prefix): kind for key, kind in documented.keys(file) if key.startswith(prefix)}


@pytest.mark.parametrize(
    ("table", "prefix", "own"),
    [
        (schema.CHECKS, "checks[].", {}),
        (schema.FIDELITY, "fidelity.figures[].", {}),
        (schema.ENDS, "ends[].", {}),
        (schema.PORT_COUNTERS, "ports.<node>.<port>.", {"node": "text", "port": "text"}),
        (schema.QUEUES, "queues.<node>.<port>.", {"node": "text", "port": "text"}),
        (schema.QPS, "hosts.<host>.qps.<qp>.", {"host": "text", "qp": "text"}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_frames_of_json_files_have_their_keys(table: Table, prefix: str, own: dict[str, str]) -> None:
    said = own | without(prefix, table.file)
    assert {column.name: column.type.removesuffix("?") for column in table.columns} == {
        name: kind.removesuffix("?") for name, kind in said.items()
    }


def test_the_frame_of_recovery_has_the_keys_of_its_file() -> None:
    names = set()
    for key, kind in without("cycles[].", "recovery.json").items():
        name = key.replace(".", "_")
        names |= {f"{name}_{inner}" for inner in documented.LENGTH} if kind == "length" else {name}
    assert {column.name for column in schema.RECOVERY.columns} == names


@pytest.mark.parametrize(
    "family", [Clos2(2, 2, 2, (0.5, 1.0)), Clos3(2, 2, 2, 4, 2, t2_speed=(0.25,)), Rail(2, 2, 1, spine_speed=(0.5,))]
)
def test_the_plan_of_every_family_is_documented(tmp_path: Path, family: Family) -> None:
    plan = plan_as_dict(build_plan(Shape(2, family, 10**7, 10**7)))
    assert json.loads(json.dumps(plan)) == plan
    assert len({link.get("rate_bps") for link in plan["links"]}) == 2, "links that are slower say so"
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "events.jsonl").write_text("")
    (tmp_path / "history.jsonl").write_text("")
    assert documented.undocumented(tmp_path) == []


def test_a_whole_run_is_documented(folder: Path) -> None:
    assert documented.undocumented(folder) == []


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("verdict.json", lambda content: content.update(mood="good"), "verdict.json: mood = 'good', documented: no"),
        ("verdict.json", lambda content: content.update(scenario=None), "verdict.json: scenario = None"),
        ("plan.json", lambda content: content["shape"].update(planes="2"), "plan.json: shape.planes = '2'"),
        (
            "recovery.json",
            lambda content: content["cycles"][0]["first_loss"].update(rtt="many"),
            "recovery.json: cycles[].first_loss",
        ),
        ("mood.json", lambda content: None, "file mood.json"),
    ],
)
def test_what_is_not_documented_is_found(folder: Path, tmp_path: Path, name: str, change: Any, says: str) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    content = json.loads((copy / name).read_text()) if (copy / name).exists() else {}
    change(content)
    (copy / name).write_text(json.dumps(content))
    (found,) = documented.undocumented(copy)
    assert found.startswith(says)


@pytest.mark.parametrize(
    ("name", "line", "says"),
    [
        ("events.jsonl", {"event": "floor", "t_ns": 1, "host": "h0", "hue": "red"}, "events.jsonl: floor has hue"),
        ("events.jsonl", {"event": "floor", "t_ns": 1, "host": "h0", "plane": "0"}, "events.jsonl: floor.plane = '0'"),
        ("history.jsonl", {"hue": "red"}, "history.jsonl: hue = 'red'"),
    ],
)
def test_what_is_not_documented_of_a_line_is_found(
    folder: Path, tmp_path: Path, name: str, line: dict[str, Any], says: str
) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    with (copy / name).open("a") as file:
        file.write(json.dumps(line) + "\n")
    assert documented.undocumented(copy) == [says]
