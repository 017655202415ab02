"""`programs` in a scenario: what is refused, where, and what its figures are called."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mrc_testbed.testbed.app.batch import load_cases
from mrc_testbed.testbed.errors import MissingCapability, ScenarioError, UsageError
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner import program_needs
from mrc_testbed.testbed.runner.launching import Launched, Watched
from mrc_testbed.testbed.runner.loop import RealTimeLoop
from mrc_testbed.testbed.runner.program_files import ProgramFiles
from mrc_testbed.testbed.runner.program_needs import require_needs
from mrc_testbed.testbed.runner.program_spec import places_of, program_specs
from mrc_testbed.testbed.runner.programs import RunningPrograms
from mrc_testbed.testbed.scenario import Scenario, load_scenario
from mrc_testbed.testbed.sweep.plan import plan_sweep

HEAD = "name: x\nfabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1}\n"


def load(folder: Path, programs: str, rest: str = "") -> Scenario:
    path = folder / "x.yaml"
    path.write_text(f"{HEAD}workload:\n  - programs: {programs}\n{rest}", encoding="utf-8")
    return load_scenario(path)


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ("{}", "the key 'command' is missing; write for example `command: python3 train.py`"),
        ("{command: ''}", "command: is empty"),
        ('{command: "echo \'a"}', "command: is no command line: no closing quotation"),
        ("{command: 7}", "command: must be a command line"),
        ("{command: ls, commands: {h0: ls}}", "has `command` and also `commands`; write one of them"),
        ("{commands: {h0: ls}, hosts: [h1, h2]}", "commands.h0: h0 is not in `hosts`; add it there"),
        ("{commands: {h7: ls}}", "commands.h7: there is no host 'h7'"),
        ("{command: ls, files: [/etc/passwd]}", "files.0: '/etc/passwd' is outside the folder of the scenario"),
        ("{command: ls, files: [a/../../b]}", "files.0: 'a/../../b' is outside the folder of the scenario"),
        ("{command: ls, files: [none.py]}", "none.py"),
        ("{command: ls, step: '('}", "step: is no regular expression"),
        ("{command: ls, metric: 'loss'}", "metric: 'loss' has no place for the number"),
        ("{command: ls, metric: ['(.)', '(.)']}", "metric: the figure 'value' is there twice; name them"),
        ("{command: ls, metric: '(?P<Loss>.)'}", "metric: the figure 'Loss' must be called in small letters"),
        ("{command: ls, steps: 3}", "needs `step`, the line that ends one"),
        ("{command: ls, env: {RANK: '1'}}", "RANK is set by the run; choose another name"),
        ("{command: ls, env: {A: 1}}", 'must be text in quotes, such as A: "3"'),
        ("{command: ls, env: {'A B': '1'}}", "'A B' is not the name of a variable"),
        ("{command: ls, timeout: 0s}", "timeout: must be"),
    ],
)
def test_a_mistake_has_its_place_and_what_to_do(tmp_path: Path, programs: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, programs)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/x.yaml:4:")


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("world: virtual\n", "programs need a kernel, which virtual time has not; write `world: kernel`"),
        ("expect: [goodput >= 1 mbit]\n", "goodput is not known of programs; have them print it, and use `metric`"),
        ("expect: [program.los.last <= 1]\n", "unknown metric 'program.los'; did you mean 'program.loss'?"),
        ("expect: [program.loss <= 1]\n", "program.loss needs a statistic, such as program.loss.p100"),
        ("expect: [program.loss.first <= 1]\n", "unknown statistic 'first' of program.loss"),
    ],
)
def test_what_does_not_go_with_programs_is_refused(tmp_path: Path, rest: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, "{command: ls, metric: 'loss=(?P<loss>.)'}", rest)
    assert said in str(caught.value)


def test_a_file_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "inside/link").symlink_to(tmp_path / "secret")
    with pytest.raises(ScenarioError, match="leads out of the folder of the scenario"):
        load(tmp_path / "inside", "{command: ls, files: [link]}")


def test_two_programs_of_one_name_are_refused(tmp_path: Path) -> None:
    one, two = "{name: a, commands: {h0: ls}}", "  - programs: {name: a, commands: {h1: ls}}\n"
    with pytest.raises(ScenarioError, match=r"duplicate name 'a'; workload\.0 has it"):
        load(tmp_path, one, two)


def test_figures_and_statistics_of_what_programs_print(tmp_path: Path) -> None:
    expect = "expect: [program.loss.last <= 1, program.value.max of h1 > 0 clean, programs_failed == 0]\n"
    scenario = load(tmp_path, "{command: ls, metric: ['loss=(?P<loss>.)', 'x=(.)']}", expect)
    assert [line.metric.name for line in scenario.expect] == ["program.loss", "program.value", "programs_failed"]
    assert set(scenario.metrics) == {"program.loss", "program.value"}


def test_a_job_of_ours_may_run_beside_programs(tmp_path: Path) -> None:
    fabric = HEAD.replace("hosts_per_t0: 1", "hosts_per_t0: 2")
    train = "  - train: {hosts: [h1, h3], steps: 3, compute: 10ms, allreduce: 1MiB, name: ours}\n"
    path = tmp_path / "x.yaml"
    programs = "  - programs: {hosts: [h0, h2], command: ls, name: mine}\n"
    path.write_text(f"{fabric}workload:\n{programs}{train}expect: [goodput of ours > 1 mbit]\n", encoding="utf-8")
    scenario = load_scenario(path)
    assert [job.name for job in scenario.job.programs] == ["mine"]
    assert [job.name for job in scenario.jobs] == ["mine", "ours"]


@pytest.mark.parametrize(
    ("hosts", "reached"),
    [("", ["h0", "h2"]), (", hosts: all", ["h0", "h1", "h2", "h3"]), (", hosts: [h3, h2, h0]", ["h3", "h2", "h0"])],
)
def test_hosts_without_a_command_are_reached_and_have_no_rank(tmp_path: Path, hosts: str, reached: list[str]) -> None:
    path = tmp_path / "x.yaml"
    fabric = HEAD.replace("hosts_per_t0: 1", "hosts_per_t0: 2")
    text = f"{fabric}workload:\n  - programs: {{commands: {{h0: ls, h2: ls}}{hosts}}}\n"
    path.write_text(text, encoding="utf-8")
    scenario = load_scenario(path)
    (job,) = scenario.job.programs
    assert job.host_names(scenario.shape()) == ("h0", "h2")
    assert sorted(scenario.host_names) == sorted(reached)
    assert len(list(scenario.job.plan_job(scenario.plan()).qps)) == len(reached) * (len(reached) - 1)
    places = places_of(scenario, tmp_path)
    found = [{name: places[host].environment.get(name) for name in ("RANK", "MRC_ADDRESS")} for host in ("h2", "h3")]
    assert found[0] == {"RANK": "1", "MRC_ADDRESS": "10.64.0.3"}
    assert found[1] == {"RANK": None, "MRC_ADDRESS": "10.64.0.4" if "h3" in reached else None}


def test_a_host_is_reached_by_one_job_alone(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"h1 is already in the job of workload\.0"):
        load(tmp_path, "{commands: {h0: ls}, hosts: all}", "  - programs: {commands: {h1: ls}}\n")


def test_what_a_machine_lacks_is_told_before_anything_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def needs(programs: str) -> None:
        require_needs(program_specs(load(tmp_path, programs), tmp_path))

    needs("{command: python3 -V, modules: [json, socket]}")
    with pytest.raises(UsageError, match="job-1: h0 cannot run no-such-command: there is no such command; install it"):
        needs("{command: no-such-command}")
    with pytest.raises(MissingCapability, match=r"has no module nowhere\. Fix: .* -m pip install nowhere, or another"):
        needs("{command: python3 -V, modules: [json, nowhere]}")
    with pytest.raises(ScenarioError, match="modules: must be a list of modules that Python imports"):
        needs("{command: python3 -V, modules: ['a b']}")
    monkeypatch.setattr(program_needs, "TUN", tmp_path / "tun")
    with pytest.raises(
        MissingCapability, match=r"programs need .*/tun: No such file or directory\. Fix: modprobe tun; in"
    ):
        needs("{command: ls}")


def test_modules_are_looked_for_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nowhere.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingCapability):
        require_needs(program_specs(load(tmp_path, "{command: python3 -V, modules: [nowhere]}"), tmp_path))
    assert not (tmp_path / "ran").exists()


def test_programs_are_not_swept(tmp_path: Path) -> None:
    load(tmp_path, "{command: ls}")
    with pytest.raises(UsageError, match="has programs of this machine; `mrc-testbed run` has --repeat and matrix"):
        plan_sweep(load_cases([tmp_path / "x.yaml"], [], None), tmp_path / "out", {})


def test_a_copy_can_be_run_where_the_file_could(tmp_path: Path) -> None:
    for name, mode in (("can", 0o755), ("cannot", 0o644)):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(mode)
    text = HEAD + "workload: [{programs: {command: ./can, files: [can, cannot]}}]\n"
    (tmp_path / "one.yaml").write_text(text)
    ProgramFiles.read(load_scenario(tmp_path / "one.yaml"), None).keep(tmp_path / "run")
    runs = {path.name: bool(path.stat().st_mode & 0o100) for path in (tmp_path / "run/programs").iterdir()}
    assert runs == {"can": True, "cannot": False}


def test_without_programs_nobody_looks_at_processes() -> None:
    """That took 3 % of the quickstart in virtual time."""

    class NothingIsDue:
        def now_ns(self) -> int:
            return 0

        def at(self, t_ns: int, action: Callable[[], None]) -> None:
            raise AssertionError("something is to be done")

    told = cast(Any, None)
    RunningPrograms([], cast(Any, NothingIsDue()), told, told, lambda *_: None).start_at(5)


@pytest.mark.skipif(sys.platform != "linux", reason="needs descriptors of processes")
def test_a_run_that_is_stopped_before_its_programs_begin_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended in a traceback: nobody had looked for their ends yet."""

    class Prepared(Launched):
        def __init__(self, *_: Any) -> None:
            self.process = subprocess.Popen(["sleep", "600"], start_new_session=True)
            self.end = Watched(os.pidfd_open(self.process.pid))

    monkeypatch.setattr("mrc_testbed.testbed.runner.programs.Launched", Prepared)
    specs = program_specs(load(tmp_path, "{command: sleep 600}"), tmp_path)
    (tmp_path / "run").mkdir()
    recorder, nobody = Recorder(tmp_path / "run"), cast(Any, SimpleNamespace(publish=lambda _: None))
    programs = RunningPrograms(specs, RealTimeLoop(), recorder, nobody, lambda *_: None)
    programs.prepare(nobody)
    programs.start_at(1 << 62)
    programs.close()
    recorder.close()
    assert programs.over
    ends = (tmp_path / "run/programs.csv").read_text().splitlines()[1:]
    assert len(ends) == len(specs)
