"""Plugins of a scenario: found, checked before anything runs, told like ours, and kept with the run."""

from __future__ import annotations

import json
import shutil
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from calls import Call
from wires import Wire

from hosts.program_io import StepReport
from testbed.compare.settings import settings_of
from testbed.errors import ScenarioError
from testbed.runner.plugins import changed_plugins, copy_plugins, plugin_records, plugin_rows
from testbed.scenario import Scenario, load_cells, load_scenario, scenario_json_schema
from testbed.scenario.source import dotted
from topos.plan import build_plan

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PLUGINS = ("my_cc.py", "random_spray.py", "gather.py")
SCENARIO = """\
name: plugged
plugins: [my_cc.py, random_spray.py, gather.py]
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}
endpoint: {congestion_control: fixed-rate, ev_selection: random-spray}
workload:
  - train: {steps: 3, parallel: {a: 2, b: 2}, step: [{gather: {size: 3KB, root: 1, over: b, message: 1KB, qps: 2}}]}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with the scenario and the example plugins."""
    for name in PLUGINS:
        shutil.copy(EXAMPLES / name, tmp_path)
    return written(tmp_path, SCENARIO)


def written(folder: Path, text: str, **files: str) -> Path:
    (folder / "s.yaml").write_text(text)
    for name, source in files.items():
        (folder / f"{name}.py").write_text(source)
    return folder


def mistakes(folder: Path, *overrides: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(folder / "s.yaml", overrides)
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def with_plugin(folder: Path, source: str) -> list[str]:
    """What is told of a scenario with a plugin of this source."""
    return mistakes(written(folder, SCENARIO.replace("[my_cc.py", "[mine.py, my_cc.py"), mine=source))


# --- the examples ---


@pytest.mark.parametrize("name", PLUGINS)
def test_an_example_fits_in_40_lines(name: str) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) <= 40


def test_a_scenario_uses_the_names_of_its_plugins(here: Path) -> None:
    scenario = load_scenario(here / "s.yaml")
    assert scenario.endpoint.congestion_control == "fixed-rate"
    assert scenario.endpoint.ev_selection == "random-spray"
    (exchange,) = scenario.train.job(scenario.shape()).exchanges
    assert (exchange.kind, exchange.axis, exchange.terms.size_bytes, exchange.terms.own.root) == (
        "gather",
        "b",
        3000,
        1,
    )


@pytest.mark.parametrize("root", [0, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_gather_brings_every_byte_to_its_root(here: Path, root: int, seed: int) -> None:
    step = f"train={{steps: 4, step: [{{gather: {{size: 1001B, root: {root}, qps: 2}}}}]}}"
    scenario = load_scenario(here / "s.yaml", [f"workload.0.{step}"])
    wire = Wire(scenario.job.plan_job(build_plan(scenario.shape())), seed=seed)
    told = {host: [one for one in each if isinstance(one, StepReport)] for host, each in wire.run().items()}
    assert [one.wrong_bytes for each in told.values() for one in each] == [0] * 16
    assert {host: sum(one.sent_bytes for one in each) for host, each in told.items()} == {
        host: 0 if host == root % 4 else 4 * 1001 for host in range(4)
    }


def test_a_corrupted_byte_is_found_at_the_root(here: Path) -> None:
    scenario = load_scenario(here / "s.yaml", ["workload.0.train={steps: 1, step: [{gather: {size: 90B}}]}"])
    wire = Wire(scenario.job.plan_job(build_plan(scenario.shape())))
    wire.corrupt = {("2>0/gather/0", 0)}
    told = {host: [one.wrong_bytes for one in each if isinstance(one, StepReport)] for host, each in wire.run().items()}
    assert told == {0: [1], 1: [0], 2: [0], 3: [0]}


def test_a_collective_of_a_plugin_can_stand_by_itself(here: Path) -> None:
    scenario = load_scenario(here / "s.yaml", ["workload=[{gather: {size: 1KiB, root: 2, iterations: 5, warm_up: 2}}]"])
    assert (scenario.train.kind, scenario.train.total_steps) == ("gather", 7)
    assert {qp.dst for qp in scenario.train.job(scenario.shape()).qps()} == {2}


def test_keys_of_a_plugin_may_have_units(here: Path) -> None:
    source = GATHER.replace("root: int = 0", "root: int = 0\n        pause: Duration = 0")
    source = source.replace(
        "from testbed.workloads.est", "from testbed.scenario.fields import Duration\nfrom testbed.workloads.est"
    )
    text = SCENARIO.replace("gather.py", "mine.py").partition("  - train")[0]
    written(here, f"{text}  - mine: {{size: 1KB, iterations: 4, pause: 3ms}}\n", mine=source)
    scenario = load_scenario(here / "s.yaml")
    (exchange,) = scenario.train.job(scenario.shape()).exchanges
    assert exchange.terms.own.pause == 3_000_000
    assert "such as" in mistakes(here, "workload.0.mine.pause=3")[0]


# --- what a scenario is told ---


@pytest.mark.parametrize(
    ("override", "says"),
    [
        (
            "endpoint.congestion_control=fixed-rat",
            "unknown congestion control 'fixed-rat'; did you mean 'fixed-rate'?; there are fixed, nscc, fixed-rate",
        ),
        ("endpoint.ev_selection=7", "must be the name of an EV selection, one of rotation, random-spray"),
        ("endpoint.ev_selection=rota", "unknown EV selection 'rota'; did you mean 'rotation'?"),
        ("workload.0.train.step.0={gathr: {size: 1KB}}", "unknown key 'gathr'; did you mean 'gather'?"),
        ("workload.0.train.step.0.gather={root: 1}", "the key 'size' is missing; write for example `size: 4MiB`"),
        ("workload.0.train.step.0.gather.rot=1", "unknown key 'rot'; did you mean 'root'?"),
        ("workload.0.train.step.0.gather.root=one", "must be a whole number"),
        ("workload.0.train.step.0.gather.over=c", "unknown axis 'c'"),
        ("workload.0.train.step.0.together=[{gather: {size: 1}}]", "has two kinds, gather and together"),
        ("plugins=my_cc.py", "must be a list of Python files or installed packages, such as [my_cc.py]"),
        ("plugins=[my_cc.py, my_cc.py]", "duplicate plugin 'my_cc.py'"),
    ],
)
def test_a_mistake_beside_plugins_is_told_like_any_other(here: Path, override: str, says: str) -> None:
    assert any(says in line for line in mistakes(here, override))


def test_the_names_are_gone_without_the_plugins(here: Path) -> None:
    told = mistakes(here, "plugins=[]")
    assert [line.partition(": unknown ")[2].partition(";")[0] for line in told] == [
        "congestion control 'fixed-rate'",
        "EV selection 'random-spray'",
        "key 'gather'",
    ]


def test_a_missing_plugin_is_one_mistake_and_hides_no_other(here: Path) -> None:
    text = SCENARIO.replace("my_cc.py", "my_c.py").replace("gather.py", "nothing").replace("planes: 2", "planes: 99")
    missing, package, planes = mistakes(written(here, text))
    assert missing.startswith("s.yaml:2:11: plugins.0: there is no file ")
    assert missing.endswith("; did you mean 'my_cc.py'?")
    assert package.startswith("s.yaml:2:37: plugins.2: no installed package 'nothing' has plugins; ")
    assert planes.startswith("s.yaml:3:18: fabric.planes: ")


CONTROL = "class Mine:\n    window = 9\n" + "".join(
    f"    def {method}(self, *_): pass\n" for method in ("begin", "on_sack", "on_trim", "on_loss", "on_penalty")
)
HALF = (EXAMPLES / "my_cc.py").read_text()
DECLARED = 'PLUGIN = {"congestion_control": {"mine": Mine}}\n'
SELECTION = "from hosts.core.evselect.base import EvSelection\n\nclass Mine(EvSelection):\n    turn = -1\n"
GATHER = (EXAMPLES / "gather.py").read_text().replace('{"gather"', '{"mine"')


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "mine.py declares nothing; write at its end, for example, `PLUGIN = {"),
        ("PLUGIN = {}", "mine.py: PLUGIN is empty"),
        ("PLUGIN = {'congestion_control': {}}", "mine.py declares nothing"),
        ("\n1 / 0", "mine.py:2: ZeroDivisionError: division by zero"),
        ("x =", "mine.py:1: SyntaxError: invalid syntax"),
        ("raise SystemExit(3)", "mine.py:1: SystemExit: 3"),
        ("PLUGIN = {'congestion-control': {'x': 1}}", "unknown kind 'congestion-control'; did you mean"),
        (CONTROL + DECLARED.replace('"mine"', '"nscc"'), "mine.py:1: congestion control 'nscc' has the name of one of"),
        (
            HALF,
            "plugins.1: my_cc.py: mine.py has a congestion control 'fixed-rate' too",
        ),
        (CONTROL + DECLARED.replace('"mine"', '"My CC"'), "must be called by lower-case letters, digits and hyphens"),
        (CONTROL.replace("on_trim", "on_tri") + DECLARED, "mine.py:1: congestion control 'mine' lacks on_trim()"),
        (
            CONTROL.replace("def on_sack(self, *_)", "def on_sack(self, acked)") + DECLARED,
            "has a on_sack() that cannot be called with self, acked, rtt_ns, ecn, under_way, now_ns",
        ),
        (CONTROL + DECLARED, "mine.py:1: TypeError: Mine() takes no arguments"),
        (CONTROL.replace("window = 9", "def __init__(self, timing): pass") + DECLARED, "window must be a number"),
        (CONTROL.replace("window = 9", "def __init__(self, t): t.x") + DECLARED, "mine.py:2: AttributeError: "),
        ("Mine = print\n" + DECLARED, "congestion control 'mine' must be a class"),
        (
            CONTROL + DECLARED.replace(": Mine", ": type('X', (Mine,), {'__init__': lambda s, t: None})"),
            "with a name in",
        ),
        (SELECTION + 'PLUGIN = {"ev_selection": {"rotation": Mine}}', "'rotation' has the name of one of ours"),
        (SELECTION + 'PLUGIN = {"ev_selection": {"mine": Mine}}', "mine.py:3: TypeError: Mine"),
        ("Mine = dict\n" + 'PLUGIN = {"workload": {"mine": Mine}}', "must be a class that inherits from testbed."),
        (GATHER.replace('"mine"', '"pipeline"'), "workload 'pipeline' has the name of one of ours"),
        (GATHER.replace("def hops", "def hop"), "mine.py:12: workload 'mine' lacks hops"),
        (GATHER.replace("root: int = 0", "root: int"), "has Keys without a default"),
        (GATHER.replace("root", "qps"), "has a key 'qps' that every collective has"),
        (GATHER.replace("@dataclass(frozen=True)", ""), "has Keys that are no dataclass"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_one_mistake_with_its_file(here: Path, source: str, says: str) -> None:
    (told,) = with_plugin(here, source)
    assert told.startswith("s.yaml:2:")
    assert says in told


RAISES = "def operations(self, member, step):\n        1 / 0"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("def operations(self, member, step):", RAISES, "plugins.2: mine.py:25: ZeroDivisionError: division by zero"),
        ("yield self.signal(hop, step)", 'yield ["sing", step]', "['sing', 0]: unknown operation; known operations: "),
        ("self.put(hop, all_of_it, 0,", "self.put(hop, all_of_it, 1,", "but the region has 1000 bytes"),
        ("self.check(hop, all_of_it, 0", "self.check(hop, all_of_it, 7", "operation 2 ['check', '1>0/mine/0', 7000"),
    ],
)
def test_a_workload_is_planned_and_read_before_anything_runs(here: Path, old: str, new: str, says: str) -> None:
    text = SCENARIO.replace("gather.py", "mine.py").partition("  - train")[0] + "  - mine: {size: 1KB, iterations: 4}\n"
    (told,) = mistakes(written(here, text, mine=GATHER.replace(old, new, 1)))
    assert says in told


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
    (here / "my_cc.py").write_text((here / "my_cc.py").read_text().replace("SHARE = 0.5", "SHARE = 0.25"))
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
    assert ended.out.splitlines()[1:4] == [
        f"  plugin my_cc.py: congestion control fixed-rate (sha256 {hashes[0]})",
        f"  plugin random_spray.py: EV selection random-spray (sha256 {hashes[1]})",
        f"  plugin gather.py: workload gather (sha256 {hashes[2]})",
    ]


def test_the_schema_of_a_scenario_has_the_names_of_its_plugins(here: Path, call: Call) -> None:
    defined = json.loads(call("schema", str(here / "s.yaml")).out)["$defs"]
    endpoint = defined["Endpoint"]["properties"]
    assert endpoint["congestion_control"]["enum"] == ["fixed", "nscc", "fixed-rate"]
    assert endpoint["ev_selection"] | {"description": ""} == {
        "default": "rotation",
        "description": "",
        "enum": ["rotation", "random-spray"],
        "examples": ["rotation"],
        "title": "Ev Selection",
    }
    for model in ("StepItem", "StepPart", "WorkloadItem"):
        assert "gather" in defined[model]["properties"]
    assert "fixed-rate" not in json.dumps(scenario_json_schema())


def test_a_matrix_varies_names_of_plugins(here: Path) -> None:
    cells = load_cells(here / "s.yaml", matrix=["endpoint.congestion_control=nscc,fixed-rate"])
    assert [cell.scenario.endpoint.congestion_control for cell in cells] == ["nscc", "fixed-rate"]
    with pytest.raises(ScenarioError, match="unknown congestion control 'fast'"):
        load_cells(here / "s.yaml", matrix=["endpoint.congestion_control=nscc,fast"])


def test_plugins_can_be_set(here: Path) -> None:
    plain = "name: s\nworkload: [{train: {steps: 3, compute: 1s, allreduce: 1MiB}}]\n"
    written(here, plain)
    options = ["plugins=[my_cc.py]", "endpoint.congestion_control=fixed-rate"]
    scenario = load_scenario(here / "s.yaml", options)
    assert "plugins: [my_cc.py]" in scenario.dump_yaml().replace("\n  - ", " [").replace(".py\n", ".py]\n")
    with pytest.raises(ScenarioError, match=r"--set plugins=\[no.py\]: plugins.0: there is no file"):
        load_scenario(here / "s.yaml", ["plugins=[no.py]"])


# --- the run folder ---


def ran(here: Path) -> tuple[Scenario, Path]:
    """What a run leaves of its plugins."""
    scenario = load_scenario(here / "s.yaml")
    folder = here / "results" / "run"
    folder.mkdir(parents=True)
    (folder / "scenario.yaml").write_text(scenario.dump_yaml())
    copy_plugins(scenario, folder)
    (folder / "environment.json").write_text(json.dumps(plugin_records(scenario)))
    return scenario, folder


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
