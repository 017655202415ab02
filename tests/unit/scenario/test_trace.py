"""The workload `trace`: its file beside the scenario, and every mistake with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.runner.traces import copy_traces
from mrc_testbed.testbed.scenario import Scenario, load_scenario, load_scenario_text
from mrc_testbed.testbed.scenario.model.arrival_load import arrival_words
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings
from mrc_testbed.testbed.scenario.text import beside
from mrc_testbed.testbed.workloads.arrivals import Arrival

FLOWS = """\
start_s,src,dst,bytes,name
0.5,h0,h4,1000,
0.25,h0,h4,20000,big
1,h1,h5,4096,
"""
SCENARIO = """\
name: traced
world: virtual
workload:
  - trace: {file: flows.csv}
"""
MS = 1_000_000


def loaded(folder: Path, *changes: str, flows: str = FLOWS, text: str = SCENARIO) -> Scenario:
    (folder / "flows.csv").write_text(flows, encoding="utf-8")
    file = folder / "my.yaml"
    file.write_text(text, encoding="utf-8")
    return load_scenario(file, changes)


def mistake(folder: Path, *changes: str, flows: str = FLOWS, text: str = SCENARIO) -> str:
    with pytest.raises(ScenarioError) as caught:
        loaded(folder, *changes, flows=flows, text=text)
    (only,) = caught.value.problems
    return f"{only.path}: {only.message}"


def test_flows_of_a_pair_are_one_by_begin(tmp_path: Path) -> None:
    first, second = loaded(tmp_path, "workload.0.trace.start=2s").flows.flows
    assert (first.name, second.name) == ("h0->h4", "h1->h5")
    assert first.arrivals == (Arrival(2250 * MS, 20000, ("big",), "big"), Arrival(2500 * MS, 1000))
    assert (first.groups, second.groups) == (("trace", "big"), ("trace",))
    assert (first.count, first.measures, first.qps) == (2, "trace", 4)


def test_bins_take_flows_of_up_to_their_sizes(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, "workload.0.trace.bins={tiny: 1000B, small: 4KiB}")
    of_sizes = {one.size: one.groups for flow in scenario.flows.flows for one in flow.arrivals}
    assert of_sizes == {1000: ("tiny",), 4096: ("small",), 20000: ("big",)}


def test_times_are_stretched_and_scaled(tmp_path: Path) -> None:
    begins = [loaded(tmp_path, *changes).flows.flows[1].arrivals[0].start_ns for changes in ([], ["scale=1000"])]
    assert begins == [1000 * MS, MS]
    stretched = loaded(tmp_path, "workload.0.trace.stretch=4000", "fabric.port_rate=25mbit", "scale=real")
    assert stretched.flows.flows[1].arrivals[0].start_ns == 1000 * MS, "as in the file"


def test_the_copy_in_a_run_folder_is_what_is_read_there(tmp_path: Path) -> None:
    scenario = loaded(tmp_path)
    run = tmp_path / "run"
    run.mkdir()
    copy_traces(scenario, run)
    (run / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "flows.csv").unlink()
    assert load_scenario(run / "scenario.yaml").flows == scenario.flows
    assert (run / "traces" / "flows.csv").read_text(encoding="utf-8") == FLOWS


@pytest.mark.parametrize(
    ("flows", "message"),
    [
        (FLOWS.replace("1000,", "1000"), "flows.csv:2: has 4 cells, and the first line names 5 columns"),
        (FLOWS.replace("h5", "h99"), "flows.csv:4: there is no host 'h99'; there are h0..h7"),
        (FLOWS.replace("big", "Big"), "flows.csv:3: 'Big' is not a name; use lower-case letters, digits and dashes"),
        (FLOWS.replace("big", "h7"), "flows.csv:3: 'h7' is reserved in expectations; choose another name"),
        (FLOWS.replace("big", "trace"), "flows.csv:3: 'trace' is the name of a bin, or of the entry; choose another"),
    ],
)
def test_a_mistake_in_the_file_has_both_places(tmp_path: Path, flows: str, message: str) -> None:
    assert mistake(tmp_path, flows=flows).startswith(f"workload.0.trace.file: {message}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("file=../flows.csv", "file: '../flows.csv' is outside the folder of the scenario; copy it there"),
        ("file=/etc/passwd", "file: '/etc/passwd' is outside the folder of the scenario; copy it there"),
        ("file=flow.csv", "there is no file"),
        ("file=7", "file: must be a file beside the scenario, such as flows.csv"),
        ("file=link.csv", "leads out of the folder of the scenario; copy it there"),
        ("stretch=0", "stretch: must be a number from 1e-9 to 1e9, such as 4000"),
        ("message=10000B", "message: 10000B do not fill packets of 4096 B of data; write a multiple, such as 8KiB"),
        ("bins={a: 4KiB, b: 1KiB}", "bins.b: 1KiB is not more than the bound of 'a'; write them by size"),
        ("bins={a: 4}", "bins.a: 4 has no unit"),
        ("bins={max: 4KiB}", "bins.max: 'max' is reserved in expectations"),
        ("bins=[4KiB]", "bins: must be a mapping of names to sizes, such as {small: 10KiB, medium: 1MiB}"),
        ("depth=65", "depth"),
    ],
)
def test_a_mistake_in_a_key(tmp_path: Path, change: str, message: str) -> None:
    (tmp_path / "link.csv").symlink_to("/etc/hostname")
    found = mistake(tmp_path, f"workload.0.trace.{change}")
    assert found.startswith("workload.0.trace.")
    assert message in found


def test_messages_of_a_stream_are_of_any_size(tmp_path: Path) -> None:
    text = SCENARIO.replace("world: virtual", "transport: tcp")
    assert loaded(tmp_path, "workload.0.trace.message=10000B", text=text).flows


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.csv").write_bytes(b"start_s\n\xff\n")
    assert mistake(tmp_path, "workload.0.trace.file=other.csv").endswith("other.csv:2: is no text in UTF-8")
    monkeypatch.setattr(beside, "MOST_BYTES", 10)
    assert "is larger than 0 MiB" in mistake(tmp_path)


def test_a_scenario_that_is_no_file_reads_none_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError, match=r"there is no file flows\.csv"):
        load_scenario_text(SCENARIO)


def test_names_and_pairs_belong_to_one_entry(tmp_path: Path) -> None:
    twice = SCENARIO + "  - trace: {file: more.csv}\n"
    (tmp_path / "more.csv").write_text("start_s,src,dst,bytes\n0,h2,h6,5\n", encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        loaded(tmp_path, text=twice)
    assert {problem.message for problem in caught.value.problems} == {
        "flows of another entry are called 'trace' too; give each entry a `name` of its own"
    }
    beside_it = SCENARIO + "  - write: {from: h1, to: h5, for: 2s, name: other}\n"
    assert mistake(tmp_path, text=beside_it).endswith("h1->h5 is already in workload.0; for more QPs use `qps`")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("slowdown.p99 of big <= 2", ""),
        ("slowdown.max of h0->h4 <= 2", ""),
        ("flow_time.max of each flow <= 2s", ""),
        ("slowdown.max <= 1.5 x clean.median", ""),
        ("slowdown.p99 of huge <= 2", "there are no flows named 'huge'; there are trace, big, h0->h4, h1->h5"),
        ("goodput >= 1 MiB/s", "goodput is only defined for flows that send without a pause"),
        ("latency.max <= 1s", "latency is only defined for `latency` entries"),
    ],
)
def test_what_can_be_expected(tmp_path: Path, line: str, message: str) -> None:
    if message:
        assert message in mistake(tmp_path, f"expect=[{line}]")
    else:
        assert loaded(tmp_path, f"expect=[{line}]").expect


def test_other_flows_have_no_slowdown(tmp_path: Path) -> None:
    text = SCENARIO.replace("trace: {file: flows.csv}", "write: {from: h0, to: h4, for: 2s}")
    message = "slowdown is only defined for flows that arrive over time, as of `trace`"
    assert message in mistake(tmp_path, "expect=[slowdown.max <= 2]", text=text)


POISSON = SCENARIO.replace("trace: {file: flows.csv}", "poisson: {sizes: hadoop, load: 50%, for: 4s}")


def test_random_flows_are_the_same_at_every_scale(tmp_path: Path) -> None:
    written, fast = (loaded(tmp_path, *changes, text=POISSON) for changes in ([], ["scale=1000"]))
    flows, scaled = ({flow.name: flow.arrivals for flow in each.flows.flows} for each in (written, fast))
    assert {name: [one.size for one in each] for name, each in flows.items()} == {
        name: [one.size for one in each] for name, each in scaled.items()
    }
    for name, each in flows.items():
        begins = [one.start_ns / 1000 for one in each]
        assert [one.start_ns for one in scaled[name]] == pytest.approx(begins, abs=2)


def test_sizes_may_be_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "my.cdf").write_text("50000 0\n50000 100\n", encoding="utf-8")
    scenario = loaded(tmp_path, "workload.0.poisson.sizes=my.cdf", "workload.0.poisson.hosts=[h0, h5]", text=POISSON)
    assert {flow.name for flow in scenario.flows.flows} == {"h0->h5", "h5->h0"}
    assert {one.size for flow in scenario.flows.flows for one in flow.arrivals} == {50_000}
    assert list(scenario.data_files) == ["my.cdf"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("sizes=hadop", "sizes: unknown sizes 'hadop'; did you mean 'hadoop'?"),
        ("sizes=flows.csv", "sizes: flows.csv:1: is no point of a distribution; write `bytes percent`"),
        ("sizes=none.cdf", "sizes: there is no file"),
        ("load=120%", "load: 120% is above 100%"),
        ("for=1ms", "for: about 0.2 flows would begin; write a longer time or a higher load"),
        ("for=30min", "flows would begin, more than 200000; write a shorter time or a lower load"),
        ("hosts=[h0]", "hosts: needs at least 2 hosts"),
        ("hosts=[h0, h99]", "hosts.1: there is no host 'h99'; there are h0..h7"),
    ],
)
def test_a_mistake_in_random_flows(tmp_path: Path, change: str, message: str) -> None:
    found = mistake(tmp_path, f"workload.0.poisson.{change}", text=POISSON)
    assert message in found


def test_a_seed_without_any_flow_is_told(tmp_path: Path) -> None:
    """About one flow is expected, so one seed in three has none."""
    few = ["workload.0.poisson.sizes=websearch", "workload.0.poisson.load=1%", "workload.0.poisson.for=6s"]
    found = mistake(tmp_path, "seed=8", *few, text=POISSON)
    assert found == "workload.0.poisson.for: no flow begins with the seed 8; write a longer time, or a higher load"


def test_hours_of_flows_are_told_before_they_run(tmp_path: Path) -> None:
    flows = "start_s,src,dst,bytes\n" + "0,h0,h4,1000000000000\n"
    (warning,) = scenario_warnings(loaded(tmp_path, flows=flows))
    advice = r"; play fewer flows, smaller ones, or a shorter time"
    assert re.fullmatch(rf"workload: its flows will take about \d+ h of a core{advice}", warning)
    (warning,) = scenario_warnings(loaded(tmp_path, "world=kernel", flows=flows))
    assert warning == "workload: its flows will take about 46 h; play fewer flows, smaller ones, or a shorter time"
    far = "start_s,src,dst,bytes\n0,h0,h4,1000\n1000000,h0,h4,1000\n"
    (warning,) = scenario_warnings(loaded(tmp_path, "workload.0.trace.stretch=100", flows=far))
    assert re.match(r"workload: its flows will take about \d{3,} h of a core", warning)
    assert list(scenario_warnings(loaded(tmp_path))) == []
    words = "3 flows between 2 pairs of hosts: 24.5 KiB in 7 packets over"
    assert arrival_words(loaded(tmp_path)).startswith(words)
