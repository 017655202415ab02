"""The messages for a wrong scenario: every mistake at once, each with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import ExitCode, ScenarioError
from mrc_testbed.testbed.scenario import load_scenario, load_scenario_text, render_problems
from tests.examples import examples

QUICKSTART = Path(__file__).parents[3] / "scenarios" / "quickstart.yaml"
HEAD = """\
name: small
seed: 3
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}
workload:
  - train: {steps: 20, compute: 500ms, allreduce: 2MiB}
"""
LINK = "p0-t0-0:p0-t1-1"


def mistakes(text: str, *overrides: str, seed: int | None = None) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario_text(text, "s.yaml", overrides, seed)
    assert caught.value.exit_code is ExitCode.USAGE
    return [str(problem) for problem in caught.value.problems]


def told(lines: list[str], place: str, keyword: str) -> bool:
    """Whether a mistake at this line, column and key names the thing; its wording is free."""
    head = f"s.yaml:{place}: "
    return any(line.startswith(head) and keyword in line.removeprefix(head) for line in lines)


def fault(line: str) -> str:
    return f"{HEAD}faults:\n  - {{{line}}}\n"


def two(first: str, second: str) -> str:
    return f"{HEAD}faults:\n  - {{{first}}}\n  - {{{second}}}\n"


def expect(line: str) -> str:
    return f'{HEAD}faults:\n  - {{at: 1s, link-down: "{LINK}", for: 1s, name: cut}}\nexpect:\n  - {line}\n'


@pytest.mark.parametrize(
    ("text", "place", "keyword"),
    [
        ("", "1:1: scenario", "empty"),
        ("# only a comment\n", "1:1: scenario", "empty"),
        ("- a\n- b\n", "1:1: scenario", "mapping"),
        ("just words", "1:1: scenario", "mapping"),
        ("name: a\n\tseed: 3\n", "2:1: scenario", "tab"),
        ("name: [a\nseed: 3\n", "2:5: scenario", "not valid YAML"),
        ("name: a\nname: b\nworkload: []\n", "2:1: name", "duplicate"),
        ("name: a\n---\nname: b\n", "2:1: scenario", "single document"),
        ("name: !weird a\n", "1:7: name", "tag"),
        ("a: &x [*x]\n", "1:4: a.0", "contains itself"),
        ("? [a, b]\n: c\n", "1:3: scenario", "single word"),
        ("name: a\x00b\n", "1:8: scenario", "character"),
        ("a: *nowhere\n", "1:4: scenario", "quotes"),
        ("[" * 700 + "]" * 700, "1:1: scenario", "nested"),
        ("a: " + "[" * 200 + "]" * 200, "1:20: a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0", "nested"),
        ("a: " + "[" * 17 + "]" * 17, "1:20: a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0", "nested"),
        ("name: 'a\n", "2:1: scenario", "not valid YAML"),
        (
            "a: &a [1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n"
            "d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\n",
            "1:4: e.3.1.0.2",
            "20000",
        ),
    ],
)
def test_text_that_is_no_yaml_mapping(text: str, place: str, keyword: str) -> None:
    assert told(mistakes(text)[:1], place, keyword)


@pytest.mark.parametrize(
    ("old", "new", "place", "keyword"),
    [
        ("name: small\n", "", "1:1: scenario", "missing"),
        ("small", "Small Name", "1:7: name", "lower-case"),
        ("small", "[a]", "1:7: name", "text"),
        ("seed: 3", "seeds: 3", "2:1: seeds", "'seed'"),
        ("seed: 3", "xyzzy: 3", "2:1: xyzzy", "name, about"),
        ("seed: 3", "seed: -3", "2:7: seed", "at least 0"),
        ("seed: 3", "seed: '3'", "2:8: seed", "whole number"),
        ("seed: 3", "seed: 3.5", "2:7: seed", "whole number"),
        ("seed: 3", "seed: true", "2:7: seed", "whole number"),
        ("seed: 3", "seed:", "3:1: seed", "nothing"),
        ("seed: 3", "seed: 1e400", "2:7: seed", "whole number"),
        ("seed: 3", "transport: mtcp", "2:12: transport", "tcp"),
        ("seed: 3", "routing: ospf", "2:10: routing", "srv6, ecmp-static, bgp"),
        ("seed: 3", "about: 3", "2:8: about", "text"),
        ("seed: 3", "endpoint: {icrc: yes}", "2:18: endpoint.icrc", "true or false"),
        ("seed: 3", "endpoint: {ev_active: 0}", "2:23: endpoint.ev_active", "at least 1"),
        ("seed: 3", "endpoint: {crc: true}", "2:12: endpoint.crc", "'icrc'"),
        ("seed: 3", "endpoint: 3", "2:11: endpoint", "mapping"),
        (
            "seed: 3",
            "endpoint: {congestion_control: nsc}",
            "2:32: endpoint.congestion_control",
            "'nscc'",
        ),
        (
            "seed: 3",
            "endpoint: {congestion_control: 3}",
            "2:32: endpoint.congestion_control",
            "fixed, nscc",
        ),
        ("seed: 3", "endpoint: {payload: 1000B}", "2:21: endpoint.payload", "must be a path MTU, one of 256B, 512B"),
        (
            "seed: 3",
            "endpoint: {payload: auto}",
            "2:21: endpoint.payload",
            "'auto' is not a size; write a number and a unit",
        ),
        ("seed: 3", "endpoint: {mpr: 256}", "2:17: endpoint.mpr", "must be at most 255, such as 8; got 256"),
        (
            "seed: 3",
            "endpoint: {mpr: 4, dynamic_mpr: 5}",
            "2:33: endpoint.dynamic_mpr",
            "asks for 5, more than mpr, which is 4",
        ),
        ("seed: 3", "endpoint: {max_wimm: 0}", "2:22: endpoint.max_wimm", "must be at least 1"),
        ("seed: 3", "endpoint: {trim_nack: 1}", "2:23: endpoint.trim_nack", "must be true or false"),
        ("seed: 3", "endpoint: {timeout: 20s}", "2:21: endpoint.timeout", "must be at most 17s"),
        ("seed: 3", "endpoint: {timeout: 0s}", "2:21: endpoint.timeout", "must be more than 0"),
        ("seed: 3", "endpoint: {timeout: 4}", "2:21: endpoint.timeout", "4 has no unit; write a duration"),
        ("seed: 3", "endpoint: {timeout: aut}", "2:21: endpoint.timeout", "unknown word 'aut'; did you mean 'auto'?"),
        ("seed: 3", "endpoint: {linear_tries: 8}", "2:26: endpoint.linear_tries", "must be at most 7"),
        ("seed: 3", "endpoint: {exponential_tries: 26}", "2:31: endpoint.exponential_tries", "must be at most 25"),
        ("seed: 3", "endpoint: {reorder_time: soon}", "2:26: endpoint.reorder_time", "'soon' is not a duration"),
        ("seed: 3", "endpoint: {reorder_packets: -1}", "2:29: endpoint.reorder_packets", "must be at least 0"),
        ("seed: 3", "endpoint: {reinfer: later}", "2:21: endpoint.reinfer", "must be true or false"),
        (
            "seed: 3",
            "endpoint: {ev_min_active: 0}",
            "2:27: endpoint.ev_min_active",
            "must be a whole number of 1 or more, or auto",
        ),
        (
            "seed: 3",
            "endpoint: {ev_active: 4, ev_min_active: 5}",
            "2:41: endpoint.ev_min_active",
            "keeps 5 EVs, more than ev_active, which is 4",
        ),
        ("seed: 3", "endpoint: {probe_interval: 0ms}", "2:28: endpoint.probe_interval", "must be more than 0"),
        ("seed: 3", "endpoint: {probe_successes: 25}", "2:29: endpoint.probe_successes", "must be at most 24"),
        (
            "seed: 3",
            "endpoint: {ev_selection: rotation}",
            "2:26: endpoint.ev_selection",
            "'rotation'; there are adaptive, spec, bitmap, oblivious, reps",
        ),
        ("seed: 3", "endpoint: {denylist: p1}", "2:22: endpoint.denylist", "list"),
        ("seed: 3", "endpoint: {denylist: [3]}", "2:23: endpoint.denylist.0", "plane"),
        ("seed: 3", "endpoint: {denylist: [p2]}", "2:23: endpoint.denylist.0", "p0..p1"),
        (
            "seed: 3",
            "endpoint: {denylist: [p0-t1-9]}",
            "2:23: endpoint.denylist.0",
            "'p0-t1-1'",
        ),
        ("seed: 3", "endpoint: {denylist: [p9-t1-0]}", "2:23: endpoint.denylist.0", "no switch"),
        ("seed: 3", "endpoint: {denylist: [p0-t0-1]}", "2:23: endpoint.denylist.0", "T0"),
        ("seed: 3", "endpoint: {denylist: [h0]}", "2:23: endpoint.denylist.0", "host"),
        ("seed: 3", "endpoint: {denylist: ['p0-t0-0:p0-t1-1']}", "2:24: endpoint.denylist.0", "link"),
        ("seed: 3", "endpoint: {denylist: [x]}", "2:23: endpoint.denylist.0", "no path"),
        ("seed: 3", 'endpoint: {denylist: ["p1\\n"]}', "2:23: endpoint.denylist.0.path", "not a name"),
        ("seed: 3", "endpoint: {denylist: [p\uff11]}", "2:23: endpoint.denylist.0", "no path"),
        (
            "seed: 3",
            "endpoint: {denylist: [{hosts: [h0]}]}",
            "2:23: endpoint.denylist.0",
            "missing",
        ),
        ("seed: 3", "endpoint: {denylist: [{path: p0, host: 3}]}", "2:34: endpoint.denylist.0.host", "'hosts'"),
        (
            "seed: 3",
            "endpoint: {denylist: [{path: 3}]}",
            "2:30: endpoint.denylist.0.path",
            "text",
        ),
        ("seed: 3", "endpoint: {denylist: [{path: p0, hosts: []}]}", "2:41: endpoint.denylist.0.hosts", "at least 1"),
        (
            "seed: 3",
            "endpoint: {denylist: [{path: p0, hosts: [h0, h9]}]}",
            "2:46: endpoint.denylist.0.hosts.1",
            "'h9'",
        ),
        (
            "seed: 3",
            "endpoint: {denylist: [{path: p0, hosts: [h0, h0]}]}",
            "2:46: endpoint.denylist.0.hosts.1",
            "duplicate",
        ),
        (
            "seed: 3",
            "endpoint: {denylist: [p1, p1]}",
            "2:27: endpoint.denylist.1",
            "already denied",
        ),
        (
            "seed: 3",
            "endpoint: {denylist: [p1-t1-0, {path: p1, hosts: [h0]}]}",
            "2:32: endpoint.denylist.1",
            "p1-t1-0",
        ),
        ("seed: 3", "endpoint: {denylist: [p0, p1]}", "2:27: endpoint.denylist.1", "h0"),
        (
            "seed: 3",
            "endpoint: {denylist: [p1, p0-t1-0, {path: p0-t1-1, hosts: [h1]}]}",
            "2:36: endpoint.denylist.2",
            "from h1 to h3",
        ),
        ("small\n", "small\nendpoint: {denylist: [p9]}\nhosts: 3\n", "2:23: endpoint.denylist.0", "plane 9"),
        ("seed: 3", "time_limit: 5", "2:13: time_limit", "unit"),
        ("seed: 3", "time_limit: 0s", "2:13: time_limit", "more than 0"),
        ("seed: 3", "time_limit: 2s", "2:13: time_limit", "34.3s"),
        ("seed: 3", "faults: 3", "2:9: faults", "list"),
        ("seed: 3", "faults: [3]", "2:10: faults.0", "mapping"),
        ("planes: 2", "planes: 17", "3:18: fabric.planes", "1..16"),
        ("planes: 2", "planes: many", "3:18: fabric.planes", "whole number"),
        ("planes: 2", "plane: 2", "3:10: fabric.plane", "'planes'"),
        ("planes: 2", "port_rate: 1kbit", "3:21: fabric.port_rate", "outside"),
        ("planes: 2", "rtt: 20", "3:15: fabric.rtt", "unit"),
        ("t1: 2", "t1: 0", "3:39: fabric.t1", "at least 1"),
        ("hosts_per_t0: 2", "hosts_per_t0: 0", "3:56: fabric.hosts_per_t0", "1..256"),
        (
            "t0_groups: 2, t1: 2, hosts_per_t0: 2",
            "t0_groups: 1, hosts_per_t0: 1",
            "3:49: fabric.hosts_per_t0",
            "2 hosts",
        ),
        ("hosts_per_t0: 2", "hosts_per_t0: 256, t0_groups: 200", "3:61: fabric.t0_groups", "duplicate"),
        ("t0_groups: 2, t1: 2, hosts_per_t0: 2", "t0_groups: 200, hosts_per_t0: 200", "3:9: fabric", "2048"),
        ("workload:\n", "workload: []\nw:\n", "4:11: workload", "at least one"),
        (
            "- train",
            "- train: {steps: 1, compute: 1s, allreduce: 1MiB}\n  - train",
            "6:12: workload.1.train",
            "h0 is already in the job of workload.0",
        ),
        ("- train", "- trian", "5:5: workload.0.trian", "'train'"),  # codespell:ignore
        ("steps: 20, ", "", "5:5: workload.0.train", "missing"),
        ("steps: 20", "steps: 0", "5:20: workload.0.train.steps", "at least 1"),
        ("500ms", "soon", "5:33: workload.0.train.compute", "duration"),
        ("2MiB", "2mib", "5:51: workload.0.train.allreduce", "'MiB'"),
        ("2MiB", "3B", "5:51: workload.0.train.allreduce", "4 hosts"),
        ("2MiB", "2GiB", "5:3: workload", "4096 MiB"),
        ("steps: 20", "hosts: [h0], steps: 20", "5:20: workload.0.train.hosts", "2 hosts"),
        ("steps: 20", "hosts: [], steps: 20", "5:20: workload.0.train.hosts", "2 hosts"),
        ("steps: 20", "hosts: some, steps: 20", "5:20: workload.0.train.hosts", "`all`"),
        ("steps: 20", "hosts: [h0, 3], steps: 20", "5:20: workload.0.train.hosts", "`all`"),
        ("steps: 20", "hosts: [h0, h1, h0], steps: 20", "5:29: workload.0.train.hosts.2", "duplicate"),
        ("steps: 20", "hosts: [h0, h9], steps: 20", "5:25: workload.0.train.hosts.1", "'h9'"),
        ("steps: 20", "hosts: [h0, gpu], steps: 20", "5:25: workload.0.train.hosts.1", "h0..h3"),
    ],
)
def test_a_mistake_has_its_place_and_names_the_thing(old: str, new: str, place: str, keyword: str) -> None:
    assert old in HEAD
    assert told(mistakes(HEAD.replace(old, new, 1)), place, keyword)


@pytest.mark.parametrize(
    ("line", "place", "keyword"),
    [
        ("qp_errors = 0", "9:15: expect.0", "=="),
        ("'qp_errors = 0'", "9:16: expect.0", "=="),
        ("qp_erors == 0", "9:5: expect.0", "'qp_errors'"),
        ("steps_done == 8 during cat", "9:28: expect.0", "'cut'"),
        ("steps_done == 8 during zzz", "9:28: expect.0", "declared: cut"),
        ("3", "9:5: expect.0", "in words"),
        ("warning: qp_errors = 0", "9:24: expect.0.warning", "=="),
        ("warning: nacks == 0 during cat", "9:32: expect.0.warning", "'cut'"),
        ("warning: 3", "9:5: expect.0", "warning:"),
        ("{warning: nacks == 0, error: nacks == 0}", "9:5: expect.0", "warning:"),
        ("warn: nacks == 0", "9:5: expect.0.warn", "mrc, roce-1"),
        ("{}", "9:5: expect.0", "in words"),
        ("nacks == 0 before cat", "9:23: expect.0", "'cut'"),
        ("nacks == 0 after cat heals", "9:22: expect.0", "'cut'"),
        ("nacks == 0 from cat to cut heals", "9:21: expect.0", "'cut'"),
        ("nacks == 0 from cut - 2s to cut", "9:16: expect.0", "1s before"),
        ("nacks == 0 from cut heals to 1500ms", "9:16: expect.0", "before it begins"),
        ("nacks == 0 after cut heals + 90s", "9:16: expect.0", "34.3s"),
        ("nacks of h99 == 0", "9:14: expect.0", "'h99'"),
        ("fair_share.min of each flow >= 1", "9:5: expect.0", "only defined for flows"),
        ("goodput of h0->h1 >= 1 mbit", "9:16: expect.0", "no flows"),
        ("evs_retired of each flow == 0", "9:25: expect.0", "no flows"),
        ("evs_retired of h0->h2 == 0", "9:20: expect.0", "'h1->h2'"),
        ("wait_time.p50 of h0->h1 <= 1s", "9:22: expect.0", "'h2->h1'"),
    ],
)
def test_a_wrong_expectation(line: str, place: str, keyword: str) -> None:
    assert told(mistakes(expect(line)), place, keyword)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            HEAD.replace("name: small\n", ""),
            "1:1: scenario: the key 'name' is missing; write for example `name: quickstart`",
        ),
        (HEAD.replace("seed", "seeds"), "2:1: seeds: unknown key 'seeds'; did you mean 'seed'?"),
        (
            HEAD.replace("planes: 2", "planes: 17"),
            "3:18: fabric.planes: 17 is outside 1..16 (a uSID has 4 bits for the plane)",
        ),
        (
            HEAD.replace("500ms", "soon"),
            "5:33: workload.0.train.compute: 'soon' is not a duration; write a number and a unit, such as 6s or 100ms",
        ),
        (expect("qp_errors = 0"), "9:15: expect.0: '=' is not one of <= >= == != < >; write =="),
    ],
)
def test_whole_texts(text: str, line: str) -> None:
    assert mistakes(text) == [f"s.yaml:{line}"]


def test_an_expectation_about_faults_needs_faults() -> None:
    assert (
        "expect.0: the scenario declares no faults" in mistakes(HEAD + "expect: [steps_done == 8 during faults]\n")[0]
    )
    assert "declared: none" in mistakes(HEAD + "expect: [steps_done == 8 during cut]\n")[0]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    text = """\
name: Small
seeed: 3
fabric: {planes: 40, t1: 300, rtt: 20}
workload:
  - train: {steps: x, compute: 1s, allreduce: 1MiB}
faults:
  - {at: 6s, port-flap: h0, period: 4s}
  - {at: 1s, link-down: "p0-t0-0:p0-t1-1", for: 2s, name: a}
  - {at: 2s, link-down: any of links, for: 2s, name: a}
expect:
  - qp_errors = 0
"""
    found = mistakes(text)
    assert [line.split(": ")[1] for line in found] == [
        "name",
        "seeed",
        "fabric.planes",
        "fabric.t1",
        "fabric.rtt",
        "workload.0.train.steps",
        "faults.0",
        "faults.2.name",
        "expect.0",
    ]


@pytest.mark.parametrize(
    ("override", "keyword"),
    [
        ("nonsense", "KEY=VALUE"),
        ("=3", "KEY=VALUE"),
        ("a..b=3", "KEY=VALUE"),
        ("name.x=3", "no keys"),
        ("workload.1.train.steps=3", "no item 1"),
        ("workload.first=3", "'first'"),
        ("seed=[3", "not valid YAML"),
        ("seed=!x 3", "tag"),
        ("seed=", "nothing"),
        ("seed=-1", "at least 0"),
        ("fabric.planes=40", "1..16"),
        ("fabric.plans=4", "'planes'"),
        ("fabric={planes: 40}", "1..16"),
        ("expect=[qp_errors = 0]", "=="),
    ],
)
def test_a_wrong_override(override: str, keyword: str) -> None:
    option, message = mistakes(HEAD, override)[0].split(f"--set {override}: ")
    assert not option
    assert keyword in message


def test_a_wrong_seed_option() -> None:
    assert mistakes(HEAD, seed=-1) == ["--seed -1: must be at least 0, such as 7; got -1"]


def test_an_override_may_show_a_mistake_elsewhere_in_the_file() -> None:
    text = fault(f"at: 10s, link-down: '{LINK}', for: 1s")
    (found,) = mistakes(text, "workload.0.train.steps=2")
    assert found.startswith("s.yaml:7:10: faults.0.at: begins at 10s")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "no.yaml", "no such file"), (tmp_path, "is a directory")):
        with pytest.raises(ScenarioError, match=says):
            load_scenario(path)
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"name: a\nx: \xff\xfe\n")
    with pytest.raises(ScenarioError, match=r"b\.yaml:2:4: scenario: byte 0xff is not UTF-8 text"):
        load_scenario(binary)
    binary.write_bytes(b"#" * (1 << 21))
    with pytest.raises(ScenarioError, match="a scenario has at most"):
        load_scenario(binary)
    with pytest.raises(ScenarioError, match="cannot be read"):
        load_scenario("a\0b")


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + HEAD.encode())
    assert load_scenario(path).name == "small"


def test_problems_are_shown_with_their_line_and_a_caret(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(HEAD.replace("seed: 3", "seed: -3").replace("planes: 2", "planes: 20"))
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert render_problems(caught.value).splitlines() == [
        f"{path}:2:7: seed: must be at least 0, such as 7; got -3",
        "    2 | seed: -3",
        "      |       ^",
        f"{path}:3:18: fabric.planes: 20 is outside 1..16 (a uSID has 4 bits for the plane)",
        "    3 | fabric: {planes: 20, t0_groups: 2, t1: 2, hosts_per_t0: 2}",
        "      |                  ^",
        "2 mistakes",
    ]


def test_long_lines_are_cut_around_the_caret(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(HEAD.replace("seed: 3", f"about: {'x' * 300}\nseed: {' ' * 300}-3"))
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    _, line, caret = render_problems(caught.value).splitlines()
    assert line[caret.index("^") :].startswith("-3")
    assert len(line) < 130


def test_problems_without_a_file_are_shown_plainly() -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario_text(HEAD, "not-there.yaml", ["seed=-1"])
    assert render_problems(caught.value) == "--set seed=-1: must be at least 0, such as 7; got -1"


@settings(deadline=None, max_examples=examples(150))
@given(st.text(alphabet=st.sampled_from("abc:-{}[]'\"&*!|>%@`#,? \n\t0129._~\\<=")) | st.text())
@example("name: &a a\n*a : 3")
@example("a: !!int x")
@example("a: 2020-13-45")
@example("a: 0x")
@example("%YAML 1.1\n---\na: yes")
@example("a: |\n  x\n b: >\n")
@example("<<: {a: 3}")
def test_no_text_raises_anything_but_scenario_errors(text: str) -> None:
    with pytest.raises(ScenarioError):
        load_scenario_text(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["6s", "h0", LINK]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["at", "link-flap", "for"]), inner),
    max_leaves=6,
)
PATHS = st.sampled_from(
    [
        *("name", "about", "seed", "fabric", "fabric.planes", "fabric.rtt", "workload", "workload.0", "faults"),
        *("workload.0.train", "workload.0.train.hosts", "faults.0", "faults.0.link-flap", "faults.0.name", "expect"),
        *("expect.0", "endpoint", "time_limit", "faults.2.switch-reboot", "faults.1.at", "faults.1.duty"),
    ]
)


@settings(deadline=None, max_examples=examples(150))
@given(PATHS, VALUES)
def test_no_value_anywhere_raises_anything_but_scenario_errors(path: str, value: object) -> None:
    told = ""
    try:
        load_scenario(QUICKSTART, [f"{path}={json.dumps(value)}"])
    except ScenarioError as error:
        told = str(error)
    assert "Input should" not in told
    assert "is not valid here" not in told


def test_a_million_steps_are_no_longer_than_two() -> None:
    text = "name: long\nworkload:\n  - train: {steps: 1000000, compute: 0s, allreduce: 1KiB}\n"
    assert load_scenario_text(text).jobs[0].entry.total_steps == 1_000_000
    (told,) = mistakes(text.replace("1000000", "1000001"))
    assert "steps: must be at most 1000000" in told


@pytest.mark.parametrize("word", ["plane-slow", "slow-plane", "plane_rate"])
def test_words_that_people_try_have_fitting_advice(word: str) -> None:
    (said,) = mistakes(fault(f"at: 1s, {word}: p1, rate: 25%, for: 1s"))
    assert "did you mean" not in said
    advised = said.partition("such as {")[2].rstrip("}")
    assert load_scenario_text(fault(advised)).faults
    (said,) = mistakes(HEAD.replace("planes: 2", "planes: 2, plane_speed: [100%, 50%]"))
    assert "planes are alike; slow one by a fault" in said


@pytest.mark.parametrize(
    ("word", "known"), [("slow-link", "link-rate: LINK"), ("t1-down", "switch-reboot:"), ("nic-fail", "link-down:")]
)
def test_faults_by_other_names_are_known(word: str, known: str) -> None:
    (said,) = mistakes(fault(f"at: 1s, {word}: p0, for: 1s"))
    assert known in said
