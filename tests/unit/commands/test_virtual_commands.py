"""Commands around runs in virtual time: what makes no sense is refused in a sentence, the rest says which world."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrc_testbed.testbed.app.attach import attach
from mrc_testbed.testbed.app.pack import load_pack
from mrc_testbed.testbed.app.virtual_shell import open_virtual_shell
from mrc_testbed.testbed.commands.validate import _tell
from mrc_testbed.testbed.compare.groups import grouped
from mrc_testbed.testbed.compare.runs import load_runs
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.report.listing import runs_as_list, runs_table
from mrc_testbed.testbed.report.pack import pack_as_dict, pack_markdown
from mrc_testbed.testbed.report.runs import listed_run
from mrc_testbed.testbed.scenario import load_cells, load_scenario
from tests.unit.virtual.test_run import SMALL, folder_of, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(run(tmp_path_factory.mktemp("virtual")))


def test_a_prompt_in_virtual_time_asks_switches_and_has_no_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    scenario = load_scenario(SMALL, ["world=virtual"])
    commands = ["h0 ping p0-t1-1", "link p0-t0-0 p0-t1-1 down", "h0 ping p0-t1-1", "link p0-t0-0 p0-t1-1 up"]
    more = ["switch p0-t1-1 stop", "switch p0-t1-1 start", "h0 trace h1", "h0 ls", "link h0 h1 up", "switch h0 stop"]
    assert open_virtual_shell(scenario, [*commands, *more]) == 1
    said = capsys.readouterr()
    first, second = (line for line in said.out.splitlines() if line.startswith("p0-t1-1"))
    assert ("  3 of 3  " in first, second.endswith("  0 of 3")) == (True, True)
    assert "\n2  h1  " in said.out
    assert [line.split(": ")[1] for line in said.err.splitlines()] == [
        *("h0 ping p0-t1-1", "h0 ls", "link h0 h1 up", "switch h0 stop"),
    ]


def test_a_prompt_in_a_virtual_run_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=f"no nodes to enter; `mrc-testbed replay {folder.name} --kernel`"):
        attach(folder, folder.parent)


@pytest.mark.parametrize(
    ("world", "says"),
    [("kernel", "about 1 s; needs the port program"), ("virtual", "about 1 s in virtual time, ")],
)
def test_validate_says_the_world(world: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    _tell(SMALL, load_cells(SMALL, [f"world={world}"]))
    assert says in capsys.readouterr().out


def test_the_list_of_runs_has_worlds_where_they_are_not_all_the_kernel(folder: Path) -> None:
    virtual = listed_run(folder)
    assert runs_as_list([virtual])[0]["world"] == "virtual"
    assert "world" in [column.header for column in runs_table([virtual], 0).columns]
    listed = listed_run(folder.parent / "none")
    assert runs_as_list([listed])[0]["world"] is None
    assert "world" not in [column.header for column in runs_table([listed], 0).columns]


def test_the_table_of_the_paper_says_where_its_figures_are_from() -> None:
    cases = load_pack([], "9a", None, ["world=virtual"])
    assert "in virtual time; " in pack_markdown(cases, "today")
    assert pack_as_dict(cases)["runs"][0]["world"] == "virtual"
    assert "on the kernel; " in pack_markdown(load_pack([], "9a", None), "today")


def test_a_comparison_of_worlds_says_which_is_which_and_nothing_of_machines(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "20260101T000000Z-small"
    other.mkdir()
    for path in folder.iterdir():
        if path.is_file() and path.name != "sizes.json":
            (other / path.name).write_bytes(path.read_bytes())
    text = (other / "scenario.yaml").read_text().replace("world: virtual", "world: kernel")
    (other / "scenario.yaml").write_text(text)
    environment = json.loads((other / "environment.json").read_text()) | {"kernel": "6.1", "cpus": 2}
    (other / "environment.json").write_text(json.dumps(environment))
    found = grouped(load_runs([folder, other]))
    assert [group.label for group in found.groups] == ["world=virtual", "world=kernel"]
    assert not [note for note in found.notes if "different" in note]


@pytest.mark.python_core
def test_ctrl_c_ends_a_run_with_a_judged_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mrc_testbed.hosts.mrc.endpoint.Endpoint.handle_timeout", interrupt)
    ended = run(tmp_path)
    assert ended.exit_code is ExitCode.INTERRUPTED
    assert ended.reason.endswith("the run was interrupted: interrupted by SIGINT")
    assert (folder_of(ended) / "report.html").is_file()
