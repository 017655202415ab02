"""The keys `variants`, `judge`, `qps` and lines for some cells; `--variants` and `--against`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.app import run as run_module
from mrc_testbed.testbed.app.batch import load_cases
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.scenario import (
    Cell,
    in_brackets,
    load_cells,
    load_recorded,
    load_scenario,
    load_scenario_text,
    scenario_json_schema,
)
from mrc_testbed.testbed.scenario.cells.axes import Sweep
from mrc_testbed.testbed.scenario.load.shipped import shipped
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.model.variants import shipped_sets, variant_set
from mrc_testbed.topos.fold import fold
from tests.unit.calls import Call
from tests.unit.outcomes import outcome
from tests.unit.scenario.test_mistakes import mistakes as mistakes_of
from tests.unit.scenario.test_mistakes import told

HEAD = """\
name: small
seed: 5 # kept
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 20ms}
workload:
  - train: {steps: 3, compute: 100ms, allreduce: 1MiB}
faults:
  - {at: 200ms, link-down: "p1-t0-0:p1-t1-1", for: 100ms, name: cut}
"""
VARIANTS = (
    "variants: {spray: {transport: mrc}, hash: {transport: roce, roce.timeout: 16}, many: {transport: roce, qps: 8}}"
)
AGAINST = Sweep(against="baselines")
NONE = Sweep()


def written(folder: Path, *lines: str, expect: str = "expect: [qp_errors == 0]") -> Path:
    path = folder / "s.yaml"
    path.write_text("\n".join((HEAD + expect, *lines, "")))
    return path


def cells(path: Path, sweep: Sweep = NONE, *sets: str) -> dict[str, Cell]:
    return {in_brackets(cell.settings): cell for cell in load_cells(path, sets, sweep=sweep)}


def mistakes(path: Path, sweep: Sweep = NONE, *sets: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_cells(path, sets, sweep=sweep)
    return [str(problem).replace(f"{path.parent}/", "") for problem in caught.value.problems]


def test_a_variant_changes_several_keys_and_its_name_is_that_of_the_cell(tmp_path: Path) -> None:
    found = cells(written(tmp_path, VARIANTS))
    assert list(found) == ["[spray]", "[hash]", "[many]"]
    hashed = found["[hash]"].scenario
    assert (hashed.transport, hashed.roce.timeout, hashed.variant) == ("roce", 16, "hash")
    assert found["[spray]"].scenario.transport == "mrc"
    assert {qp.terms.qps for qp in found["[many]"].scenario.jobs[0].entry.parts if hasattr(qp, "terms")} == {8}


def test_variants_and_a_matrix_are_crossed_and_options_pick(tmp_path: Path) -> None:
    path = written(tmp_path, VARIANTS, "matrix: {fabric.rtt: [10ms, 20ms]}")
    assert list(cells(path))[:3] == ["[spray, rtt=10ms]", "[spray, rtt=20ms]", "[hash, rtt=10ms]"]
    assert list(cells(path, Sweep(("fabric.rtt=20ms",), "many,spray"))) == ["[many, rtt=20ms]", "[spray, rtt=20ms]"]


def test_the_shipped_set_goes_with_any_scenario(tmp_path: Path) -> None:
    found = cells(written(tmp_path), AGAINST)
    assert list(found) == ["[mrc]", "[roce-1]", "[roce-16]", "[tcp]"]
    assert [cell.scenario.qps for cell in found.values()] == [1, 1, 16, None]
    assert [cell.scenario.folds for cell in found.values()] == [False, True, True, True]


def test_a_set_of_your_own_is_a_file(tmp_path: Path) -> None:
    path, own = written(tmp_path), tmp_path / "own.yaml"
    own.write_text("a: {}\nb: {transport: tcp, tcp.rto_min: 5ms}\n")
    found = cells(path, Sweep(against=str(own)))
    assert found["[b]"].scenario.tcp.rto_min_ns == 5_000_000
    own.write_text("a: {}\nb: {transport: tcp, tcp.rto_min: 5}\nc: {tcp.rto: 5ms}\n")
    (first, second) = mistakes(path, Sweep(against=str(own)))
    assert first.startswith("own.yaml:2:34: tcp.rto_min: ")
    assert first.endswith("(in [b])")
    assert second.startswith("own.yaml:3:14: tcp.rto: ")


@pytest.mark.parametrize(
    ("content", "place", "keyword"),
    [
        ("a: 3\n", "1:1: a", "mapping"),
        ("a: {fabric.planes: 2}\n", "1:5: a.fabric.planes", "matrix"),
        ("A b: {}\n", "1:1: A b", "not a name"),
        ("variants:\n  a: {}\n  b: {transport: roce}\n", "1:1: variants", "left margin"),
    ],
)
def test_a_wrong_file_of_variants_has_the_place_of_each_mistake(
    tmp_path: Path, content: str, place: str, keyword: str
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(content)
    (line,) = mistakes(written(tmp_path), Sweep(against=str(own)))
    assert line.startswith(f"own.yaml:{place}: ")
    assert keyword in line


@pytest.mark.parametrize("key", ["fabric.planes: 1", "fabric.t1: 1", "fabric.hosts_per_t0: 2", "fabric: {planes: 1}"])
def test_variants_of_another_size_are_refused(tmp_path: Path, key: str) -> None:
    (line,) = mistakes(written(tmp_path, f"variants: {{a: {{{key}}}}}"))
    assert line.startswith("s.yaml:9:16: variants.a.fabric")
    assert "`matrix`" in line
    assert told(mistakes_of(f"{HEAD}variants: {{a: {{{key}}}}}\n"), "8:16: variants.a." + key.partition(":")[0], "size")


@pytest.mark.parametrize(
    ("line", "place", "keyword"),
    [
        ("variants: {}", "9:11: variants", "at least one"),
        ("variants: [a]", "9:11: variants", "mapping"),
        ("variants:", "10:1: variants", "no value"),
        ("variants: {a: {name: b}}", "9:16: variants.a.name", "cannot vary"),
        ("variants: {a: {judge: b}}", "9:16: variants.a.judge", "cannot vary"),
        ("variants: {a: {roce: {timeout: 16}, roce.timeout: 18}}", "9:37: variants.a.roce.timeout", "part of"),
        ("variants: {a: {rocee.timeout: 16}}", "9:31: rocee", "'roce'"),
        ("variants: {a: {transport: tpc}, b: {}}", "9:27: transport", "(in [a])"),
        ("matrix: {variants.a: [1]}", "9:10: matrix.variants.a", "cannot vary"),
    ],
)
def test_a_wrong_variant_has_its_place(tmp_path: Path, line: str, place: str, keyword: str) -> None:
    assert told(mistakes(written(tmp_path, line)), place, keyword)


def test_a_key_is_set_or_changed_by_variants_or_varied(tmp_path: Path) -> None:
    path = written(tmp_path, VARIANTS)
    (said,) = mistakes(path, Sweep(), "roce.timeout=18")
    assert said.startswith("--set roce.timeout=18: the variant hash changes this key")
    assert cells(path, Sweep(variants="spray,many"), "roce.timeout=18")
    (said,) = mistakes(path, Sweep(("transport=mrc,tcp",)))
    assert "the variant spray changes transport" in said


@pytest.mark.parametrize(
    ("sweep", "says"),
    [
        (Sweep(variants="mrc"), "--against baselines"),
        (Sweep(variants="mrc,tpc", against="baselines"), "'tcp'"),
        (Sweep(against="baseline"), "'baselines'"),
    ],
)
def test_a_variant_that_is_not_there(tmp_path: Path, sweep: Sweep, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_cells(written(tmp_path), sweep=sweep)


def test_the_text_of_a_cell_knows_its_variant_and_whether_it_is_judged(tmp_path: Path) -> None:
    found = cells(written(tmp_path, VARIANTS, expect="expect: [{hash: qp_errors >= 1, spray: trims == 0}]"))
    for name, judged in (("spray", True), ("hash", False)):
        scenario = found[f"[{name}]"].scenario
        (tmp_path / name).mkdir()
        (tmp_path / name / "scenario.yaml").write_text(scenario.dump_yaml())
        again = load_recorded(tmp_path / name)
        assert again.model_dump() == scenario.model_dump()
        assert again.expect == scenario.expect
        assert (again.variant, again.judged, again.variants) == (name, judged, None)
        assert "# kept" in scenario.dump_yaml()


@pytest.mark.parametrize(
    ("lines", "judged"),
    [
        ([], ["spray"]),
        (["judge: [hash]"], ["hash"]),
        (["judge: roce"], ["hash", "many"]),
        (["judge: [mrc, many]"], ["spray", "many"]),
        (["transport: roce"], ["hash", "many"]),
    ],
)
def test_cells_of_the_files_own_transport_are_judged_or_those_that_it_names(
    tmp_path: Path, lines: list[str], judged: list[str]
) -> None:
    found = cells(written(tmp_path, VARIANTS, *lines))
    assert [cell.scenario.variant for cell in found.values() if cell.scenario.judged] == judged


def test_a_matrix_of_transports_judges_the_files_own_too(tmp_path: Path) -> None:
    found = cells(written(tmp_path), Sweep(("transport=tcp,mrc",)))
    assert [cell.scenario.judged for cell in found.values()] == [False, True]


def test_a_line_names_its_cells_by_variant_or_transport(tmp_path: Path) -> None:
    lines = "expect: [qp_errors == 0, {hash: qp_errors >= 1, roce: {warning: wasted <= 1}, mrc: trims == 0}]"
    found = {name: cell.scenario.expect for name, cell in cells(written(tmp_path, VARIANTS, expect=lines)).items()}
    assert [found[name][1].text for name in found] == ["trims == 0", "qp_errors >= 1", "wasted <= 1"]
    assert [found[name][1].level for name in found] == ["error", "error", "warning"]
    assert not any(line.elsewhere for each in found.values() for line in each)
    tcp = load_cells(written(tmp_path, expect=lines.replace("hash", "roce-1")), sweep=AGAINST)[-1].scenario
    assert (tcp.expect[1].elsewhere, tcp.expect[1].cells) == (True, ("roce-1", "roce", "mrc"))


@pytest.mark.parametrize(
    ("expect", "place", "keyword"),
    [
        ("{hsh: qp_errors == 0}", "8:11: expect.0.hsh", "'hash'"),
        ("{hash: trims == 0}", "8:17: expect.0.hash", "hash speaks roce"),
        ("{tcp: trims == 0}", "8:16: expect.0.tcp", "tcp"),
        ("{hash: qp_error == 0}", "8:17: expect.0.hash", "'qp_errors'"),
        ("{hash: {warning: qp_error == 0}}", "8:27: expect.0.hash.warning", "'qp_errors'"),
        ("{hash: 3}", "8:17: expect.0.hash", "in words"),
        ("{hash: qp_errors == 0 during cat}", "8:39: expect.0.hash", "'cut'"),
        ("{hash: qp_errors == 0, warning: nacks == 0}", "8:10: expect.0", "for each cell"),
    ],
)
def test_a_wrong_line_for_a_cell(tmp_path: Path, expect: str, place: str, keyword: str) -> None:
    assert told(mistakes(written(tmp_path, VARIANTS, expect=f"expect: [{expect}]")), place, keyword)


def test_a_figure_that_no_cell_has_is_refused_and_one_that_some_cell_has_is_not(tmp_path: Path) -> None:
    path = written(tmp_path, expect="expect: [trims == 0]")
    (said,) = mistakes(path, Sweep(), "transport=tcp")
    assert said.startswith("s.yaml:8:10: expect.0: trims is a figure of mrc and mrc-hashed, and no cell speaks it")
    assert '{mrc: "trims == 0"}' in said
    assert cells(path, AGAINST)
    assert cells(path, Sweep(variants="tcp", against="baselines"))
    assert cells(path, Sweep(("transport=mrc,tcp",)))
    assert mistakes(path, Sweep(("transport=roce,tcp",)))
    assert cells(written(tmp_path, expect='expect: [{mrc: "trims == 0"}]'), Sweep(), "transport=tcp")


def test_who_judges_nothing_may_ask_for_a_fabric_that_lacks_a_figure(tmp_path: Path) -> None:
    path = written(tmp_path, expect="expect: [trims == 0]")
    assert load_scenario(path, ["transport=tcp"], judged=False).transport == "tcp"
    for mistake, keyword in (("{hsh: qp_errors == 0}", "hsh"), ("trimz == 0", "'trims'")):
        with pytest.raises(ScenarioError, match=keyword):
            load_scenario(written(tmp_path, expect=f"expect: [{mistake}]"), ["transport=tcp"], judged=False)


def test_the_text_of_a_measured_cell_is_a_scenario_again(tmp_path: Path) -> None:
    path = written(tmp_path, expect="expect: [trims == 0]")
    for sweep in (AGAINST, Sweep(("transport=mrc,tcp",))):
        kept = cells(path, sweep)
        for name, cell in kept.items():
            again = load_scenario_text(cell.scenario.dump_yaml())
            assert (again.transport, again.judged) == (cell.scenario.transport, "mrc" in name)


def test_judge_names_cells_that_exist(tmp_path: Path) -> None:
    assert told(mistakes(written(tmp_path, VARIANTS, "judge: [spray, hsh]")), "10:16: judge.1", "'hash'")
    assert told(mistakes(written(tmp_path, "judge: []")), "9:8: judge", "list")


@pytest.mark.parametrize(
    ("workload", "qps"),
    [
        ("train: {steps: 3, compute: 1s, allreduce: 1MiB}", [4]),
        (
            "train: {steps: 3, step: [{compute: 1s}, {together: [{allreduce: {size: 1MiB, qps: 2}}, {compute: 1s}]}]}",
            [4],
        ),
        ("all-to-all: {size: 1MiB, iterations: 2, qps: 2}", [4]),
        ("write: {from: h0, to: h1, for: 1s}", [4]),
        ("permutation: {for: 1s, qps: 9}", [4, 4]),
        ("latency: {from: h0, to: h1, for: 1s}", [1]),
    ],
)
def test_one_number_of_qps_holds_for_every_entry(workload: str, qps: list[int]) -> None:
    head = HEAD.partition("workload:")[0] + f"workload:\n  - {workload}\n"
    scenario = load_scenario_text(f"{head}qps: 4\n")
    job = scenario.job.plan_job(scenario.plan())
    pairs = {(qp.src, qp.dst) for host in scenario.plan().hosts for qp in job.qps_of(host.index)}
    found = {pair: len({qp.id for qp in job.qps_of(pair[0]) if (qp.src, qp.dst) == pair}) for pair in pairs}
    assert {*found.values()} == {*qps}


def test_a_wrong_number_of_qps() -> None:
    assert told(mistakes_of(f"{HEAD}qps: 65\n"), "8:6: qps", "at most 64")
    assert told(mistakes_of(f"{HEAD}qps: many\n"), "8:6: qps", "whole number")
    long_form = "train: {steps: 3, qps: 2, step: [{compute: 1s}]}"
    text = HEAD.replace("train: {steps: 3, compute: 100ms, allreduce: 1MiB}", long_form)
    assert told(mistakes_of(text), "5:23: workload.0.train.qps", "put that into `step`")


LARGE = "multiplane/s3-all-to-all"
RAILS = "stories/rails"
"""32 hosts, each with QPs to all others: with 16 each there would be more than a run can have."""


@pytest.mark.parametrize("one", [one for one in shipped() if one.name not in (LARGE, RAILS)], ids=lambda one: one.name)
@pytest.mark.nightly(keep=20)
def test_every_shipped_scenario_runs_against_the_baselines_and_breaks_the_same_cables(one: Any) -> None:
    found = {cell.scenario.variant: cell.scenario for cell in load_cells(one.path, sweep=AGAINST)}
    cables = {
        name: {
            (each.fault, each.begin_ns, each.end_ns, fold(target))
            for each in scenario.occurrences
            for target in each.targets
        }
        for name, scenario in found.items()
    }
    # Virtual time has no kernel TCP, so that a scenario of that world leaves it out, as one with verbs does.
    verbs = any(job.entry.verbs for job in found["mrc"].job.programs)
    over_tcp = found["mrc"].world is WorldKind.KERNEL and not verbs
    spoken = {"mrc", "roce-1", "roce-16"} | ({"tcp"} if over_tcp else set())
    assert over_tcp == ("tcp" in cables)
    assert spoken <= cables.keys()
    assert len({frozenset(cables[name]) for name in spoken}) == 1


def test_too_many_qps_of_a_baseline_are_refused_with_its_name() -> None:
    """An all-to-all of 16 hosts has 192 flows: with 16 QPs each they are more than a run may have."""
    (rails,) = (one for one in shipped() if one.name == RAILS)
    with pytest.raises(ScenarioError, match=r"3072 QPs in all are more than 1024.* \(in \[roce-16\]\)"):
        load_cells(rails.path, sweep=AGAINST)


def test_every_shipped_set_is_readable_and_has_a_name() -> None:
    assert "baselines" in shipped_sets()
    for name in shipped_sets():
        assert variant_set(name).changes


def test_a_baseline_that_fails_or_dies_is_a_result_and_fails_no_batch(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_scenario(scenario: Any, _out: Path, _quiet: bool, console: Any, **_: Any) -> Any:
        status = Status.PASS if scenario.judged else Status.DIED if scenario.qps == 1 else Status.MEASURED
        return outcome(status, name=scenario.name, folder=str(tmp_path / "none"))

    monkeypatch.setattr(run_module, "run_scenario", run_scenario)
    report = tmp_path / "r.json"
    ended = call("run", str(written(tmp_path)), "--against", "baselines", "--json", str(report))
    assert ended.status == 0
    runs = json.loads(report.read_text())["runs"]
    assert [run["cell"] for run in runs] == [{"variant": name} for name in ("mrc", "roce-1", "roce-16", "tcp")]
    assert [run["verdict"] for run in runs] == ["pass", "died", "measured", "measured"]
    assert "small [roce-16]" in " ".join(ended.out.split())


def test_repetitions_of_variants_come_in_rounds(tmp_path: Path) -> None:
    cases = load_cases([written(tmp_path)], sweep=Sweep(variants="mrc,tcp", against="baselines"))
    assert [case.name for case in cases] == ["small [mrc]", "small [tcp]"]


def test_validate_knows_them_too(tmp_path: Path, call: Call) -> None:
    path = str(written(tmp_path))
    assert "s.yaml: ok: small, 4 cells" in call("validate", path, "--against", "baselines").out
    assert call("validate", path, "--against", "baselines", "--variants", "tpc").status == 2


def test_editors_know_the_keys() -> None:
    keys = scenario_json_schema()["properties"]
    assert keys["variants"]["minProperties"] == 1
    assert keys["transport"]["enum"] == ["mrc", "roce", "tcp", "mptcp", "mrc-hashed"]
    assert {"judge", "variant", "qps", "roce", "tcp", "ecmp"} <= {*keys}


def test_lines_for_variants_that_another_set_replaces_are_for_nobody(tmp_path: Path) -> None:
    found = cells(written(tmp_path, VARIANTS, expect="expect: [{hash: qp_errors == 0}]"), AGAINST)
    assert {cell.scenario.variant for cell in found.values()} == {"mrc", "roce-1", "roce-16", "tcp"}
    assert all(cell.scenario.expect[0].elsewhere for cell in found.values())
