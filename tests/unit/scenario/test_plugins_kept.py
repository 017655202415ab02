"""Plugins of a scenario: where they are found, what commands show of them, metrics, and what a run keeps."""

from __future__ import annotations

import json
import shutil
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.compare.settings import settings_of
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.runner.plugins import (
    changed_plugins,
    copy_plugins,
    keep_plugins,
    note_plugins,
    plugin_records,
    plugin_rows,
)
from mrc_testbed.testbed.scenario import Scenario, load_cells, load_recorded, load_scenario, scenario_json_schema
from mrc_testbed.testbed.scenario.cells.axes import Sweep
from mrc_testbed.testbed.scenario.text.source import dotted
from tests.unit.calls import Call
from tests.unit.checks.test_folder import RunFolder
from tests.unit.scenario.test_plugins import EXAMPLES, PLUGINS, SPREAD, here, mistakes, written

__all__ = ["here"]


# --- beside the scenario, in this folder, in a package ---


def test_a_file_is_looked_for_beside_the_scenario_then_here(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = here / "away"
    away.mkdir()
    shutil.move(here / "s.yaml", away)
    monkeypatch.chdir(here)
    assert load_scenario(away / "s.yaml").offered.sources[0].file == here / "my_cc.py"
    (away / "my_cc.py").write_text((here / "my_cc.py").read_text() + "# another\n")
    assert load_scenario(away / "s.yaml").offered.sources[0].file == away / "my_cc.py"


def test_a_changed_file_is_run_anew(here: Path) -> None:
    first = load_scenario(here / "s.yaml")
    (here / "my_cc.py").write_text((here / "my_cc.py").read_text().replace("share: float = 0.5", "share: float = 0.25"))
    second = load_scenario(here / "s.yaml")
    assert second.offered.sources[0].sha256 != first.offered.sources[0].sha256
    assert settings_of(first)["plugins.0"] != settings_of(second)["plugins.0"], "they are no repeats of each other"
    (here / "my_cc.py").write_bytes((EXAMPLES / "my_cc.py").read_bytes())
    third = load_scenario(here / "s.yaml")
    assert settings_of(first) == settings_of(third)
    assert type(load_scenario(here / "s.yaml")) is type(third), "run once for all cells of a matrix"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package `Some.CC` with a plugin."""
    site = tmp_path / "site"
    info = site / "some_cc-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Some.CC\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mrc_testbed.plugins]\ncc = some_cc_of_tests\n")
    source = (EXAMPLES / "my_cc.py").read_text().replace('"fixed-rate"', '"half"')
    (site / "some_cc_of_tests.py").write_text(source)
    monkeypatch.syspath_prepend(str(site))
    return written(
        tmp_path, "name: s\nplugins: [some-cc]\nworkload: [{train: {steps: 3, compute: 1s, allreduce: 1MiB}}]\n"
    )


def test_a_package_is_named_in_the_scenario_and_listed(package: Path, call: Call) -> None:
    scenario = load_scenario(package / "s.yaml", ["endpoint.congestion_control=half"])
    (row,) = plugin_rows(scenario, package)["plugins"]
    assert row == {
        "name": "half",
        "kind": "congestion_control",
        "attribute": "FixedRate",
        "module": "some_cc_of_tests",
        "keys": {"share": 0.5},
    }
    assert [source.copy_name for source in scenario.offered.sources] == ["some_cc_of_tests.py"]
    assert "plugin some-cc: congestion control half (sha256 " in call("scenarios").out
    assert "did you mean 'some-cc'?" in mistakes(package, "plugins=[some-c]")[0]


def test_a_broken_package_hides_no_scenario_from_the_list(package: Path, call: Call) -> None:
    (package / "site" / "some_cc_of_tests.py").unlink()
    sys.modules.pop("some_cc_of_tests", None)
    ended = call("scenarios")
    assert "quickstart" in ended.out
    assert ended.said[0].startswith("warning: plugin some-cc: some-cc: cannot import some_cc_of_tests: ModuleNotFound")
    assert ended.status == 0


# --- the commands ---


def test_validate_shows_what_the_plugins_offer(here: Path, call: Call) -> None:
    ended = call("validate", str(here / "s.yaml"))
    hashes = [sha256((here / name).read_bytes()).hexdigest()[:8] for name in PLUGINS]
    assert ended.out.splitlines()[1:5] == [
        f"  plugin my_cc.py: congestion control fixed-rate (sha256 {hashes[0]})",
        f"  plugin random_spray.py: EV selection random-spray (sha256 {hashes[1]})",
        f"  plugin gather.py: workload gather (sha256 {hashes[2]})",
        f"  plugin step_spread.py: metric step_spread (sha256 {hashes[3]})",
    ]


def test_the_schema_of_a_scenario_has_the_names_of_its_plugins(here: Path, call: Call) -> None:
    call("validate", str(here / "s.yaml"))
    defined = json.loads(call("schema", str(here / "s.yaml")).out)["$defs"]
    endpoint = defined["EndpointSettings"]["properties"]
    assert endpoint["congestion_control"]["enum"] == ["fixed", "nscc", "fixed-rate"]
    assert endpoint["ev_selection"] | {"description": ""} == {
        "default": "adaptive",
        "description": "",
        "enum": ["adaptive", "spec", "bitmap", "oblivious", "reps", "weighted-planes", "random-spray"],
        "examples": ["adaptive"],
        "title": "Ev Selection",
    }
    for model in ("StepItem", "StepPart", "WorkloadItem"):
        assert "gather" in defined[model]["properties"]
    assert "fixed-rate" not in json.dumps(scenario_json_schema())


def test_a_matrix_varies_names_of_plugins(here: Path) -> None:
    cells = load_cells(here / "s.yaml", sweep=Sweep(("endpoint.congestion_control=nscc,fixed-rate",)))
    assert [cell.scenario.endpoint.congestion_control for cell in cells] == ["nscc", "fixed-rate"]
    with pytest.raises(ScenarioError, match="unknown congestion control 'fast'"):
        load_cells(here / "s.yaml", sweep=Sweep(("endpoint.congestion_control=nscc,fast",)))


def test_plugins_can_be_set(here: Path) -> None:
    plain = "name: s\nworkload: [{train: {steps: 3, compute: 1s, allreduce: 1MiB}}]\n"
    written(here, plain)
    options = ["plugins=[my_cc.py]", "endpoint.congestion_control=fixed-rate"]
    scenario = load_scenario(here / "s.yaml", options)
    assert "plugins: [my_cc.py]" in scenario.dump_yaml().replace("\n  - ", " [").replace(".py\n", ".py]\n")
    with pytest.raises(ScenarioError, match=r"--set plugins=\[no.py\]: plugins.0: there is no file"):
        load_scenario(here / "s.yaml", ["plugins=[no.py]"])


# --- a metric ---


def judged(folder: Path, expect: str, source: str = SPREAD) -> tuple[str, str]:
    """What a recorded run with this plugin comes to: of the expectation status and why."""
    made = RunFolder(expect=[expect])
    made.scenario = f"plugins: [mine.py]\n{made.scenario}"
    written_to = made.write(folder)
    (written_to / "mine.py").write_text(source)
    note_plugins(load_scenario(written_to / "scenario.yaml"))
    record = load_record(written_to)
    check = judge(record).checks[0]
    return check.status.value, check.why


def test_a_metric_of_a_plugin_is_computed_from_the_run(tmp_path: Path) -> None:
    assert judged(tmp_path, "step_spread.max < 10s") == ("pass", "")
    assert judged(tmp_path, "step_spread.max < 1ns")[0] == "fail"
    assert judged(tmp_path, "step_spread.max < 10s during cut") == ("pass", "")


def test_a_run_can_be_asked_for_it_and_no_other_run_knows_it(tmp_path: Path) -> None:
    judged(tmp_path, "step_spread.max < 10s")
    record = load_record(tmp_path)
    assert ask(record, "step_spread.max", "ms").value is not None
    (tmp_path / "other").mkdir()
    other = RunFolder().write(tmp_path / "other")
    with pytest.raises(ValueError, match="unknown metric 'step_spread'"):
        ask(load_record(other), "step_spread.max")


@pytest.mark.parametrize(
    ("returns", "says"),
    [
        ("1 / 0", "plugin mine.py:11: ZeroDivisionError: division by zero"),
        ("None", "plugin step_spread: must return a list of numbers, not None"),
        ("['a']", "plugin step_spread: must return a list of numbers, not ['a']"),
        ("[float('nan')]", "plugin step_spread: must return a list of numbers, not [nan]"),
        ("[]", "plugin step_spread: returned no values"),
    ],
)
def test_what_a_metric_raises_is_never_a_pass(tmp_path: Path, returns: str, says: str) -> None:
    source = SPREAD.replace("    ends = {", f"    return {returns}\n    ends = {{")
    status, why = judged(tmp_path, "step_spread.max < 10s", source)
    assert (status, says in why) == ("inconclusive", True), why


# --- the run folder ---


def ran(here: Path) -> tuple[Scenario, Path]:
    """What a run leaves of its plugins."""
    scenario = load_scenario(here / "s.yaml")
    folder = here / "results" / "run"
    folder.mkdir(parents=True)
    (folder / "scenario.yaml").write_text(scenario.dump_yaml())
    keep_plugins(scenario, folder)
    (folder / "environment.json").write_text(json.dumps(plugin_records(scenario)))
    return scenario, folder


STRANGE = """
from pathlib import Path

Path(__file__).with_name("was-run").touch()
PLUGIN = {}
"""


@pytest.mark.parametrize("place", ["plugins", "."], ids=["as a copy", "beside the scenario"])
def test_code_that_came_with_a_run_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    made = RunFolder()
    made.scenario = f"plugins: [strange.py]\n{made.scenario}"
    folder = made.write(tmp_path)
    (folder / place).mkdir(exist_ok=True)
    (folder / place / "strange.py").write_text(STRANGE)
    with pytest.raises(ScenarioError, match=r"strange\.py is code that was never run.*MRC_TRUST_PLUGINS"):
        load_record(folder)
    assert not list(folder.rglob("was-run"))
    monkeypatch.setenv("MRC_TRUST_PLUGINS", "1")
    with pytest.raises(ScenarioError, match="PLUGIN is empty"):
        load_record(folder)
    assert list(folder.rglob("was-run"))


def test_what_was_run_here_is_read_again_and_one_changed_byte_is_not(here: Path) -> None:
    _, folder = ran(here)
    assert load_recorded(folder).offered.sources
    with (folder / "plugins" / "my_cc.py").open("a") as file:
        file.write("#")
    with pytest.raises(ScenarioError, match=r"my_cc\.py is code that was never run"):
        load_recorded(folder)


def test_a_run_keeps_its_plugins_and_the_hosts_load_those(here: Path) -> None:
    scenario, folder = ran(here)
    assert plugin_records(scenario)["plugins"][0] == {
        "name": "fixed-rate",
        "kind": "congestion_control",
        "file": str(here / "my_cc.py"),
        "sha256": sha256((EXAMPLES / "my_cc.py").read_bytes()).hexdigest(),
    }
    assert [(row["name"], row["file"]) for row in plugin_rows(scenario, folder)["plugins"]] == [
        ("fixed-rate", str(folder / "plugins" / "my_cc.py")),
        ("random-spray", str(folder / "plugins" / "random_spray.py")),
    ], "a collective is planned before, and a host needs no more than its program"
    chosen = load_scenario(here / "s.yaml", ["endpoint.congestion_control=nscc"])
    assert [row["name"] for row in plugin_rows(chosen, folder)["plugins"]] == ["random-spray"]


def test_a_run_is_read_with_its_own_copies_whatever_became_of_the_files(here: Path) -> None:
    scenario, folder = ran(here)
    assert changed_plugins(folder) == []
    (here / "my_cc.py").write_text("1 / 0")
    (here / "gather.py").unlink()
    again = load_scenario(folder / "scenario.yaml")
    assert [source.sha256 for source in again.offered.sources] == [one.sha256 for one in scenario.offered.sources]
    assert again.offered.sources[0].file == folder / "plugins" / "my_cc.py"
    assert again.estimate_ns == scenario.estimate_ns
    assert changed_plugins(folder) == [
        f"{here / 'my_cc.py'} has changed since this run, which has a copy in {folder / 'plugins'}"
    ]


def test_without_plugins_nothing_is_written(here: Path) -> None:
    scenario = load_scenario("quickstart")
    copy_plugins(scenario, here)
    assert not (here / "plugins").exists()
    assert plugin_records(scenario) == plugin_rows(scenario, here) == {}
    assert changed_plugins(here) == []


def test_two_files_of_one_name_are_refused(here: Path) -> None:
    (here / "more").mkdir()
    source = (here / "my_cc.py").read_text().replace('"fixed-rate"', '"other"')
    (here / "more" / "my_cc.py").write_text(source)
    (told,) = mistakes(here, "plugins=[my_cc.py, more/my_cc.py, random_spray.py, gather.py]")
    assert told.endswith("two plugin files are called my_cc.py; rename one")
    assert dotted(("plugins", 1)) in told


# --- who runs code ---


def sent(place: Path) -> Path:
    """A scenario and its plugin, as somebody sends them."""
    place.mkdir(parents=True)
    (place / "sent.yaml").write_text(
        "name: sent\nworld: virtual\nplugins: [strange.py]\n"
        "workload: [{train: {steps: 3, compute: 10ms, allreduce: 64KiB}}]\n"
    )
    (place / "strange.py").write_text(f"# {place}\n{SPREAD}{STRANGE.partition('PLUGIN')[0]}")
    return place / "sent.yaml"


def was_run(place: Path) -> bool:
    return bool(list(place.rglob("was-run")))


@pytest.mark.parametrize("words", ["schema", "topo show", "sweep plan --out big"])
def test_a_command_that_runs_nothing_runs_no_plugin_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = sent(tmp_path / "sent")
    first, *more = words.split(" --")
    command = [*first.split(), str(file), *(word for option in more for word in f"--{option}".split())]
    ended = call(*command)
    assert ended.status == 2
    assert "strange.py is code that was never run on this machine; read it: `mrc-testbed validate`" in ended.err
    assert not was_run(file.parent)
    assert call("validate", str(file)).status == 0
    assert call(*command).status == 0


def a_run(file: Path) -> Path:
    """The recorded run of a foreign scenario, with its copy of the plugin."""
    folder = file.parent / "results" / "20260101T000000Z-sent"
    (folder / "plugins").mkdir(parents=True)
    shutil.copy(file, folder / "scenario.yaml")
    shutil.copy(file.with_name("strange.py"), folder / "plugins")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        *("attach RUN", "replay RUN", "report RUN", "compare RUN RUN", "bounds RUN", "worlds RUN"),
        *("validate RUN/scenario.yaml", "run -q RUN/scenario.yaml", "shell RUN/scenario.yaml"),
        *("hunt RUN/scenario.yaml", "schema RUN/scenario.yaml", "topo show RUN/scenario.yaml"),
    ],
)
def test_copies_in_a_run_folder_are_run_by_nobody_who_did_not(tmp_path: Path, call: Call, command: str) -> None:
    folder = a_run(sent(tmp_path / "sent"))
    assert call(*command.replace("RUN", str(folder)).split()).status != 0
    assert not was_run(tmp_path)


def test_a_planned_sweep_counts_as_run_nowhere(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of a folder that came from elsewhere need its plugins, and do not run them unread."""
    file, big = sent(tmp_path / "sent"), tmp_path / "big"
    monkeypatch.setenv("MRC_TRUST_PLUGINS", "1")
    assert call("sweep", "plan", str(file), "--out", str(big)).status == 0
    monkeypatch.delenv("MRC_TRUST_PLUGINS")
    for left in tmp_path.rglob("was-run"):
        left.unlink()
    ended = call("sweep", "gather", str(big), "--junit", str(tmp_path / "j.xml"))
    assert "strange.py is code that was never run on this machine" in ended.err
    assert call("schema", str(file)).status == 2
    assert not was_run(tmp_path)


def test_a_cell_of_a_sweep_is_run_with_its_plugins(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine where somebody has read them: a folder may have come from elsewhere."""
    file, big = sent(tmp_path / "sent"), tmp_path / "big"
    monkeypatch.setenv("MRC_TRUST_PLUGINS", "1")
    assert call("sweep", "plan", str(file), "--out", str(big)).status == 0
    monkeypatch.delenv("MRC_TRUST_PLUGINS")
    for left in tmp_path.rglob("was-run"):
        left.unlink()
    for words in (("sweep", "run", str(big)), ("sweep", "cell", str(big), "--index", "0", "--of", "1")):
        ended = call(*words, "-q")
        assert ended.status == 2
        assert "strange.py: is code that was never run on this machine; read it: MRC_TRUST_PLUGINS=1" in ended.err
    assert not was_run(tmp_path)
    monkeypatch.setenv("MRC_TRUST_PLUGINS", "1")
    assert call("sweep", "run", str(big), "-q").status == 0


def test_a_cell_of_a_sweep_has_no_programs(tmp_path: Path, call: Call) -> None:
    """`sweep plan` writes none, so somebody else did."""
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "name: s\nworld: virtual\ncontroller: {command: [./mine], after: 50ms}\n"
        "workload: [{train: {steps: 3, compute: 10ms, allreduce: 64KiB}}]\n"
    )
    ended = call("run", str(file), "--cell", str(tmp_path / "cell.json"), "--out", str(tmp_path / "out"))
    assert ended.status == 2
    assert "has programs of this machine" in ended.err
