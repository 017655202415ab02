"""`mrc-testbed scenarios`: the list, one printed, one copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.scenario import load_scenario
from mrc_testbed.testbed.scenario.load.shipped import FOLDER, SCHEMA_FILE, shipped
from tests.unit.calls import Call

QUICKSTART = FOLDER / "quickstart.yaml"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_has_a_line_for_each(call: Call) -> None:
    ended = call("scenarios")
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines[:-4] if line] == [one.name for one in shipped()]
    fig14 = next(line for line in lines if line.startswith("paper/fig14 "))
    assert fig14.split()[1:3] == ["10", "s"]
    assert fig14.endswith(load_scenario("paper/fig14").about + " *"), "levels of switch ports need the port program"
    quickstart = next(line for line in lines if line.startswith("quickstart "))
    assert quickstart.endswith(load_scenario(QUICKSTART).about)
    assert lines[-3].startswith("* needs the port program")
    assert lines[-2] == "With each of them: --against baselines (mrc, roce-1, roce-16, tcp)"
    assert lines[-1].startswith("With each of them: --against today (mrc, production,")
    assert lines[-1].endswith("; cases: near-cut, far-cut, silent-t1, slow-plane, lost-port, incast)")
    assert ended.status == 0


def test_its_help_has_an_example(call: Call) -> None:
    assert "Example: mrc-testbed scenarios" in " ".join(call("scenarios", "--help").out.split())


HERE = QUICKSTART.read_text().replace("$schema=scenario.schema.json", f"$schema={SCHEMA_FILE.as_posix()}")
"""The quickstart elsewhere: an editor still finds the schema."""


def test_one_is_printed(call: Call) -> None:
    assert call("scenarios", "show", "quickstart").out == HERE


@pytest.mark.parametrize("command", ["show", "copy"])
def test_a_wrong_name_gets_a_hint(call: Call, here: Path, command: str) -> None:
    for name, hint in (("fig14", "; did you mean 'paper/fig14'?"), ("zzz", "; `mrc-testbed scenarios` lists all")):
        ended = call("scenarios", command, name)
        assert ended.said == [f"mrc-testbed: unknown shipped scenario {name!r}{hint}"]
        assert ended.status == 2
    assert list(here.iterdir()) == []


def test_a_copy_is_a_file(call: Call, here: Path) -> None:
    ended = call("scenarios", "copy", "quickstart", "-")
    assert (ended.status, ended.said) == (
        2,
        ["mrc-testbed: -: name a file to copy to; `mrc-testbed scenarios show quickstart` prints it"],
    )
    assert list(here.iterdir()) == []


def test_a_copy_has_its_own_name_or_the_one_given(call: Call, here: Path) -> None:
    (here / "folder").mkdir()
    for arguments, made in (([], "quickstart.yaml"), (["my.yaml"], "my.yaml"), (["folder"], "folder/quickstart.yaml")):
        ended = call("scenarios", "copy", "quickstart", *arguments)
        assert ended.out == f"{made}: copied from quickstart; `mrc-testbed run {made}`\n"
        assert (here / made).read_text() == HERE


def test_a_copy_overwrites_only_by_force(call: Call, here: Path) -> None:
    mine = here / "my.yaml"
    mine.write_text("mine")
    ended = call("scenarios", "copy", "quickstart", "my.yaml")
    assert ended.said == ["mrc-testbed: my.yaml: already exists; give another name, or --force to overwrite it"]
    assert (ended.status, mine.read_text()) == (2, "mine")
    assert call("scenarios", "copy", "quickstart", "my.yaml", "--force").status == 0
    assert mine.read_text() == HERE


def test_a_copy_that_cannot_be_written_is_refused(call: Call, here: Path) -> None:
    ended = call("scenarios", "copy", "quickstart", "no/where.yaml")
    assert ended.said == ["mrc-testbed: no/where.yaml: cannot be written: No such file or directory"]
    assert ended.status == 2


def test_other_commands_take_a_name(call: Call) -> None:
    assert call("validate", "paper/fig14").out.startswith("paper/fig14: ok: fig14, takes about 10 s")
    assert "p0-t1-1" in call("topo", "show", "paper/fig14").out
    ended = call("topo", "show", "paper/fig3")
    assert (ended.status, ended.out) == (2, "")
    assert "did you mean" in ended.err
