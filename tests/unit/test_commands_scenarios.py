"""`mrc-testbed scenarios`: the list, one printed, one copied."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from testbed.cli import app
from testbed.errors import UsageError
from testbed.scenario import load_scenario
from testbed.scenario.shipped import FOLDER, shipped

QUICKSTART = FOLDER / "quickstart.yaml"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["scenarios", *arguments])


def refused(*arguments: str) -> str:
    result = call(*arguments)
    assert isinstance(result.exception, UsageError)
    return str(result.exception)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_has_a_line_for_each() -> None:
    lines = call().output.splitlines()
    assert [line.split()[0] for line in lines[:-2] if line] == [one.name for one in shipped()]
    fig14 = next(line for line in lines if line.startswith("paper/fig14 "))
    assert fig14.split()[1:3] == ["10", "s"]
    assert fig14.endswith(load_scenario("paper/fig14").about + " *"), "levels of switch ports need the port program"
    quickstart = next(line for line in lines if line.startswith("quickstart "))
    assert quickstart.endswith(load_scenario(QUICKSTART).about)
    assert lines[-1].startswith("* needs the port program")


def test_one_is_printed_as_it_is() -> None:
    assert call("show", "quickstart").output == QUICKSTART.read_text()


@pytest.mark.parametrize("command", ["show", "copy"])
def test_a_wrong_name_gets_a_hint(here: Path, command: str) -> None:
    assert refused(command, "fig14") == "no shipped scenario is called 'fig14'; did you mean 'paper/fig14'?"
    assert refused(command, "zzz") == "no shipped scenario is called 'zzz'; `mrc-testbed scenarios` lists all"
    assert list(here.iterdir()) == []


def test_a_copy_has_its_own_name_or_the_one_given(here: Path) -> None:
    (here / "folder").mkdir()
    for arguments, made in (([], "quickstart.yaml"), (["my.yaml"], "my.yaml"), (["folder"], "folder/quickstart.yaml")):
        result = call("copy", "quickstart", *arguments)
        assert result.output == f"{made}: copied from quickstart; `mrc-testbed run {made}`\n"
        assert (here / made).read_text() == QUICKSTART.read_text()


def test_a_copy_overwrites_only_by_force(here: Path) -> None:
    mine = here / "my.yaml"
    mine.write_text("mine")
    assert refused("copy", "quickstart", "my.yaml").startswith("my.yaml: is there already")
    assert mine.read_text() == "mine"
    assert call("copy", "quickstart", "my.yaml", "--force").exit_code == 0
    assert mine.read_text() == QUICKSTART.read_text()


def test_a_copy_that_cannot_be_written_is_refused(here: Path) -> None:
    said = refused("copy", "quickstart", "no/where.yaml")
    assert said == "no/where.yaml: cannot be written: No such file or directory"
