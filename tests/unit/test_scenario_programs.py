"""`programs` in a scenario: what is refused, where, and what its figures are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import Scenario, load_scenario

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
        ("{command: ls, metric: 'loss'}", "metric: 'loss' has no group for the number"),
        ("{command: ls, metric: ['(.)', '(.)']}", "metric: the figure 'value' is there twice; name the groups"),
        ("{command: ls, metric: '(?P<Loss>.)'}", "metric: the group 'Loss' must be called in small letters"),
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
