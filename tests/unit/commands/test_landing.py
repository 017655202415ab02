"""Commands write scenarios all or nothing, through no link, over nothing unasked, and with names in quotes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.interchange.found import FlowLine, Found
from mrc_testbed.testbed.interchange.layout import layout_of
from mrc_testbed.testbed.interchange.scenario_text import name_of, scenario_files
from mrc_testbed.testbed.scenario import load_scenario
from mrc_testbed.testbed.scenario.text.yaml_text import parse_source
from mrc_testbed.testbed.whole_files import write_folder
from tests.unit.calls import Call
from tests.unit.interchange.foreign import INCAST_CM, written

ONE_RANK = "num_ranks 1\nrank 0 {\ncalc 5\n}\n"
KEYS = ["name", "world", "scale", "fabric", "workload", "expect"]
NAMES = [
    "x\ncontroller: {command: touch y}\nz",
    "a: b",
    "[a",
    "{a",
    "null",
    "1e5",
    "- a",
    "# a",
    "'a",
    '"a',
    "&a",
    "a\r",
]
_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=40)
FILE_NAMES = _TEXTS.filter(lambda name: name not in (".", ".."))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_a_name_adds_nothing_to_the_scenario(call: Call, here: Path, name: str) -> None:
    written(here, f"{name}.cm", INCAST_CM)
    assert call("import", f"./{name}.cm").status == 0
    assert list(parse_source(Path(f"{name}.yaml").read_text(encoding="utf-8"), "it").data) == KEYS
    assert len(load_scenario(f"{name}.yaml").flows.flows) == 3


@given(FILE_NAMES, FILE_NAMES)
def test_any_names_are_read_back_as_they_are(source: str, target: str) -> None:
    found = Found("flows", 2, (FlowLine(0, 0, 1, 8),), lost=(f"1 x {source}",))
    files = scenario_files(found, layout_of(found, ""), source, Path("folder", target))
    data = parse_source(files.scenario, "it").data
    assert (list(data), data["name"]) == (KEYS, name_of(Path(target)))
    assert data["workload"] == [{"trace": {"file": files.data_name, "stretch": 8000}}]


def test_what_makes_no_scenario_leaves_nothing(call: Call, here: Path) -> None:
    written(here, "g.goal", ONE_RANK)
    ended = call("import", "g.goal")
    assert (ended.status, ended.err.startswith("mrc-testbed: g.goal: makes no scenario: workload.0.")) == (2, True)
    assert os.listdir(here) == ["g.goal"]


@pytest.mark.parametrize("link", ["incast.yaml", "incast.flows.csv"])
@pytest.mark.parametrize("there", [True, False])
def test_links_are_not_written_through(call: Call, here: Path, link: str, there: bool) -> None:
    written(here, "incast.cm", INCAST_CM)
    if there:
        written(here, "mine", "mine")
    Path(link).symlink_to("mine")
    ended = call("import", "incast.cm", "--force")
    assert (ended.status, f"{link}: is a link" in ended.err) == (2, True)
    assert Path("mine").exists() is there
    assert sorted(os.listdir(here)) == sorted(["incast.cm", link, *(["mine"] if there else [])])


def test_a_folder_of_the_same_name_leaves_the_other_file_alone(call: Call, here: Path) -> None:
    written(here, "incast.cm", INCAST_CM)
    written(here, "incast.flows.csv", "mine")
    Path("incast.yaml").mkdir()
    ended = call("import", "incast.cm", "--force")
    assert (ended.status, "incast.yaml: is a folder" in ended.err) == (2, True)
    assert Path("incast.flows.csv").read_text() == "mine"


def test_exports_are_written_over_nothing_unasked(call: Call, here: Path) -> None:
    written(here, "incast.cm", INCAST_CM)
    assert call("import", "incast.cm").status == 0
    written(here, "there.cm", "mine")
    Path("link.cm").symlink_to("there.cm")
    for name in ("there.cm", "link.cm"):
        assert call("export", "incast.yaml", "--to", "htsim", "--file", name).status == 2
    assert Path("there.cm").read_text() == "mine"
    assert call("export", "incast.yaml", "--to", "htsim", "--file", "there.cm", "--force").status == 0
    assert call("export", "incast.yaml", "--to", "htsim", "--file", "link.cm", "--force").status == 2


def test_a_lab_is_written_through_no_link_and_over_no_file(call: Call, here: Path) -> None:
    (here / "elsewhere").mkdir()
    Path("lab").symlink_to("elsewhere")
    written(here, "file", "mine")
    for name in ("lab", "file"):
        assert call("export", "quickstart", "--to", "containerlab", "--file", name, "--force").status == 2
    assert not os.listdir("elsewhere")
    assert call("export", "quickstart", "--to", "containerlab", "--file", "elsewhere").status == 0


def test_a_folder_that_cannot_be_written_whole_leaves_the_old_one(here: Path) -> None:
    write_folder(Path("lab"), {"a": "old"})
    with pytest.raises(OSError, match="nowhere"):
        write_folder(Path("lab"), {"a": "new", "nowhere/b": "new"})
    assert Path("lab/a").read_text() == "old"
    write_folder(Path("lab"), {"b": "new"})
    assert os.listdir("lab") == ["b"]
    assert os.listdir(here) == ["lab"]


def test_a_shipped_scenario_is_copied_through_no_link(call: Call, here: Path) -> None:
    Path("mine.yaml").symlink_to("nowhere.yaml")
    assert call("scenarios", "copy", "quickstart", "mine.yaml", "--force").status == 2
    assert not Path("nowhere.yaml").exists()
