"""Plugins of a scenario: checked before anything runs, and told like ours."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mrc_testbed.hosts.program_io import StepReport
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import load_cells, load_scenario
from mrc_testbed.topos.plan import build_plan
from tests.unit.workloads.wires import Wire

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
PLUGINS = ("my_cc.py", "random_spray.py", "gather.py", "step_spread.py")
SCENARIO = """\
name: plugged
plugins: [my_cc.py, random_spray.py, gather.py, step_spread.py]
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
endpoint: {congestion_control: fixed-rate, ev_selection: random-spray}
workload:
  - train: {steps: 3, parallel: {a: 2, b: 2}, step: [{gather: {size: 3KB, root: 1, over: b, message: 1KB, qps: 2}}]}
expect:
  - step_spread.max <= 40ms
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
    (exchange,) = scenario.jobs[0].steps(scenario.shape()).exchanges
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
    assert (scenario.jobs[0].entry.kind, scenario.jobs[0].entry.total_steps) == ("gather", 7)
    assert {qp.dst for qp in scenario.jobs[0].steps(scenario.shape()).qps()} == {2}


def test_keys_of_a_plugin_may_have_units(here: Path) -> None:
    source = GATHER.replace("root: int = 0", "root: int = 0\n        pause: Duration = 0")
    source = source.replace(
        "import Collective, Hop,",
        "import Collective, Duration, Hop,",
    )
    text = SCENARIO.replace("gather.py", "mine.py").partition("  - train")[0]
    written(here, f"{text}  - mine: {{size: 1KB, iterations: 4, pause: 3ms}}\n", mine=source)
    scenario = load_scenario(here / "s.yaml")
    (exchange,) = scenario.jobs[0].steps(scenario.shape()).exchanges
    assert exchange.terms.own.pause == 3_000_000
    assert "such as" in mistakes(here, "workload.0.mine.pause=3")[0]


# --- what a scenario is told ---


@pytest.mark.parametrize(
    ("override", "says"),
    [
        (
            "endpoint.congestion_control=fixed-rat",
            "unknown congestion control 'fixed-rat'; did you mean 'fixed-rate'? There are fixed, nscc, fixed-rate",
        ),
        (
            "endpoint.ev_selection=7",
            "an EV selection, one of adaptive, spec, bitmap, oblivious, reps, weighted-planes, random-spray",
        ),
        ("endpoint.ev_selection=adapt", "unknown EV selection 'adapt'; did you mean 'adaptive'?"),
        ("workload.0.train.step.0={gathr: {size: 1KB}}", "unknown key 'gathr'; did you mean 'gather'?"),
        ("workload.0.train.step.0.gather={root: 1}", "the key 'size' is missing; write for example `size: 4MiB`"),
        ("workload.0.train.step.0.gather.rot=1", "unknown key 'rot'; did you mean 'root'?"),
        ("workload.0.train.step.0.gather.root=one", "must be a whole number"),
        ("workload.0.train.step.0.gather.over=c", "unknown axis 'c'"),
        ("workload.0.train.step.0.together=[{gather: {size: 1}}]", "has two kinds, gather and together"),
        ("expect.0=step_sprea.max < 1s", "unknown metric 'step_sprea'; did you mean 'step_spread'?"),
        ("expect.0=step_spread < 1s", "needs a statistic, such as step_spread.max (one of median p99 max)"),
        ("expect.0=step_spread.max < 1", "give the bound a unit"),
        ("plugins=my_cc.py", "must be a list of Python files or installed packages, such as [my_cc.py]"),
        ("plugins=[my_cc.py, my_cc.py]", "duplicate plugin 'my_cc.py'"),
    ],
)
def test_a_mistake_beside_plugins_is_told_like_any_other(here: Path, override: str, says: str) -> None:
    assert any(says in line for line in mistakes(here, override))


@pytest.mark.parametrize("transport", ["roce", "tcp", "mptcp"])
def test_what_is_for_mrc_is_refused_where_another_transport_is_spoken(here: Path, transport: str) -> None:
    file = SCENARIO.replace("endpoint:", f"transport: {transport}\nendpoint:")
    control, selection = mistakes(written(here, file))
    family = "roce" if transport == "roce" else "tcp"
    assert control == (
        "s.yaml:5:32: endpoint.congestion_control: 'fixed-rate' is for mrc, and with `transport: "
        f"{transport}` nobody would use it; choose that of {transport} by `{family}.congestion_control`, "
        "or write `transport: mrc` (of variants, name it in those of mrc)"
    )
    assert selection.startswith("s.yaml:5:58: endpoint.ev_selection: 'random-spray' is for mrc, and with `transport: ")
    assert load_scenario(here / "s.yaml", ["endpoint={}"]).transport == transport


def test_variants_name_a_plugin_where_mrc_is_spoken(here: Path) -> None:
    beside = "variants: {mine: {endpoint.congestion_control: fixed-rate}, roce: {transport: roce}}\n"
    written(here, SCENARIO.replace("congestion_control: fixed-rate, ev_selection: random-spray", "") + beside)
    cells = load_cells(here / "s.yaml")
    assert [cell.scenario.congestion_control for cell in cells] == ["fixed-rate", "dcqcn"]


def test_the_names_are_gone_without_the_plugins(here: Path) -> None:
    told = mistakes(here, "plugins=[]")
    assert [line.partition(": unknown ")[2].partition(";")[0] for line in told] == [
        "congestion control 'fixed-rate'",
        "EV selection 'random-spray'",
        "key 'gather'",
        "metric 'step_spread'",
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
SELECTION = "from mrc_testbed.hosts.mrc.evselect.base import EvSelection\n\nclass Mine(EvSelection):\n    turn = -1\n"
SPREAD = (EXAMPLES / "step_spread.py").read_text()
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
        (
            CONTROL + DECLARED.replace('"mine"', '"nscc"'),
            "mine.py:1: congestion control 'nscc' has the name of a built-in",
        ),
        (
            HALF,
            "plugins.1: my_cc.py: mine.py has a congestion control 'fixed-rate' too",
        ),
        (CONTROL + DECLARED.replace('"mine"', '"My CC"'), "must have a name of lower-case letters, digits and hyphens"),
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
        (SELECTION + 'PLUGIN = {"ev_selection": {"spec": Mine}}', "'spec' has the name of a built-in one"),
        (SELECTION + 'PLUGIN = {"ev_selection": {"mine": Mine}}', "mine.py:3: TypeError: Mine"),
        ("Mine = dict\n" + 'PLUGIN = {"workload": {"mine": Mine}}', "must be a class that inherits from mrc_testbed."),
        (GATHER.replace('"mine"', '"pipeline"'), "workload 'pipeline' has the name of a built-in one"),
        (GATHER.replace("def hops", "def hop"), "mine.py:11: workload 'mine' lacks hops"),
        (GATHER.replace("root: int = 0", "root: int"), "has Keys without defaults"),
        (GATHER.replace("root", "qps"), "has a key 'qps' that every collective has"),
        (SPREAD.replace("compute=spreads", "counter='nacks'"), "step_spread.py: mine.py has a metric 'step_spread'"),
        (
            SPREAD.replace('{"step_spread"', '{"step-spread"'),
            "must have a name of lower-case letters, digits and under",
        ),
        (
            SPREAD.replace('{"step_spread"', '{"step_spred"'),
            "metric 'step_spred' is called 'step_spread' by its Metric",
        ),
        (SPREAD.replace("step_spread", "step_time"), "metric 'step_time' has the name of a built-in one"),
        (SPREAD.replace("compute=spreads", "hard=True"), "metric 'step_spread' lacks compute=FUNCTION"),
        (
            SPREAD.replace("spreads(record, window)", "spreads(record)"),
            "has a compute that cannot be called with",
        ),
        (
            SPREAD.replace(": STEP_SPREAD", ": spreads"),
            "mine.py:9: metric 'step_spread' must be an mrc_testbed",
        ),
        (GATHER.replace("@dataclass(frozen=True)", ""), "has a Keys class that is not a dataclass"),
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
        ("def operations(self, member, step):", RAISES, "plugins.2: mine.py:24: ZeroDivisionError: division by zero"),
        ("yield self.signal(hop, step)", 'yield ["sing", step]', "['sing', 0]: unknown operation; known operations: "),
        ("self.put(hop, all_of_it, 0,", "self.put(hop, all_of_it, 1,", "but the region has 1000 bytes"),
        ("self.check(hop, all_of_it, 0", "self.check(hop, all_of_it, 7", "operation 2 ['check', '1>0/mine/0', 7000"),
    ],
)
def test_a_workload_is_planned_and_read_before_anything_runs(here: Path, old: str, new: str, says: str) -> None:
    text = SCENARIO.replace("gather.py", "mine.py").partition("  - train")[0] + "  - mine: {size: 1KB, iterations: 4}\n"
    (told,) = mistakes(written(here, text, mine=GATHER.replace(old, new, 1)))
    assert says in told
