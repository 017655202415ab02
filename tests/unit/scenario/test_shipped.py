"""Scenarios that come with the testbed: each is sound, all are found by name, and the wheel holds them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.scenario import load_scenario
from mrc_testbed.testbed.scenario.load.shipped import (
    CHECK_FILE,
    FOLDER,
    SCHEMA_FILE,
    scenario_file,
    shipped,
    shipped_named,
)

ROOT = Path(__file__).parents[3]
NAMES = [one.name for one in shipped()]
LONGEST_S = 65
"""Of a workload: a person who tries a shipped scenario waits for it."""


def test_all_files_of_the_folder_are_shipped() -> None:
    assert FOLDER == ROOT / "scenarios"
    lessons = {path.parent for path in FOLDER.rglob(CHECK_FILE)}
    given = {path for one in shipped() for path in files_beside(one.path)}
    files = [path for path in FOLDER.rglob("*") if path.is_file() and path.parent not in lessons and path not in given]
    assert sorted([SCHEMA_FILE, *(one.path for one in shipped())]) == sorted(files), "nothing else lies there"
    groups = {"", "chaos", "hunts", "lessons", "multiplane", "paper", "programs", "stories"}
    assert groups <= {one.group for one in shipped()}


def files_beside(path: Path) -> set[Path]:
    """What a scenario names of the files in its folder: programs, and data of its workload."""
    text = path.read_text(encoding="utf-8")
    beside = (each for each in path.parent.iterdir() if each.suffix not in {".yaml", ".md"})
    named = {each for each in beside if each.is_file() and f"file: {each.name}" in text}
    return named | {path.parent / name for job in load_scenario(path).job.programs for name in job.entry.files}


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_scenario_is_sound(name: str) -> None:
    scenario = load_scenario(shipped_named(name).path)
    assert scenario.about.endswith("."), "one sentence for the list"
    as_written_s = scenario.estimate_ns * scenario.speed / 1e9
    assert as_written_s > (1 if name.startswith("hunts/") else 5)
    assert scenario.expected_ns / 1e9 < LONGEST_S
    assert scenario.expect
    assert scenario.name == name.rpartition("/")[2]


@pytest.mark.parametrize("name", NAMES)
def test_its_header_says_how_to_run_it(name: str) -> None:
    lines = shipped_named(name).path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert lines[2] in (f"#     mrc-testbed run {name}", f"#     mrc-testbed run scenarios/{name}.yaml")


def test_every_story_has_a_section_and_a_picture_in_the_docs() -> None:
    text = (ROOT / "docs/stories.md").read_text(encoding="utf-8")
    stories = [one.path.stem for one in shipped() if one.group == "stories" or one.name == "programs/train"]
    assert sorted(re.findall(r"^## (.+)$", text, re.MULTILINE)) == sorted(stories)
    assert sorted(re.findall(r"\(stories/(.+)\.svg\)", text)) == sorted(stories)
    assert sorted(path.stem for path in (ROOT / "docs/stories").iterdir()) == sorted(stories)


def test_names_of_a_folder_stand_together_and_numbers_go_by_size() -> None:
    groups = [one.group for one in shipped()]
    assert groups == sorted(groups)
    assert NAMES[0] == "quickstart"
    assert NAMES.index("paper/fig14") < NAMES.index("paper/fig18c") < NAMES.index("paper/fig20")


def test_fig9_comes_before_fig12(tmp_path: Path) -> None:
    for name in ("fig12-13", "fig9b", "table4", "fig9a", "fig100"):
        (tmp_path / f"{name}.yaml").touch()
    assert [one.name for one in shipped(tmp_path)] == ["fig9a", "fig9b", "fig12-13", "fig100", "table4"]


def test_an_empty_folder_is_a_broken_installation(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="reinstall"):
        shipped(tmp_path)


def test_a_name_loads_and_a_file_of_that_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_scenario("paper/fig14").name == "fig14"
    (tmp_path / "paper").mkdir()
    assert scenario_file(Path("paper/fig14")) == FOLDER / "paper/fig14.yaml"
    shutil.copy(FOLDER / "quickstart.yaml", tmp_path / "paper/fig14")
    assert load_scenario("paper/fig14").name == "quickstart"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("fig14", "no such file, and no shipped scenario has that name; did you mean 'paper/fig14'?"),
        ("scenarios/paper/fig14.yaml", "did you mean 'paper/fig14'?"),
        ("quikstart", "did you mean 'quickstart'?"),
        ("zzz.yaml", "no such file, and no shipped scenario has that name"),
        (".", "is a directory, not a scenario file, and no shipped scenario has that name"),
    ],
)
def test_what_is_neither_gets_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, says: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(given)
    (problem,) = caught.value.problems
    assert problem.message.endswith(says)


def test_the_wheel_takes_the_folder() -> None:
    """hatch puts each of these beside the others, which is where `shipped` looks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    for folder in ("testbed", "scenarios"):
        assert folder in wheel["only-include"]
        assert wheel["sources"][folder] == f"mrc_testbed/{folder}"


def test_a_wheel_holds_every_shipped_scenario(tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("uv is not beside this Python, as `make setup` puts it")
    build = [str(uv), "build", "--wheel", "--offline", "--out-dir", str(tmp_path), str(ROOT)]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    if "hatchling" in built.stderr and built.returncode:
        pytest.skip("hatchling is not in uv's cache, and nothing is downloaded in a test")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    script = "from mrc_testbed.testbed.scenario.load.shipped import *; print(FOLDER, *(one.name for one in shipped()))"
    listed = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "installed", capture_output=True, text=True, check=True
    )
    assert listed.stdout.split() == [str(tmp_path / "installed/mrc_testbed/scenarios"), *NAMES]
