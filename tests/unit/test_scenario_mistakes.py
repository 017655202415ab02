"""What a wrong scenario is told: every mistake at once, each with its place and in plain words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from testbed.errors import ExitCode, ScenarioError
from testbed.scenario import load_scenario, load_scenario_text, render_problems

QUICKSTART = Path(__file__).parents[2] / "scenarios" / "quickstart.yaml"
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


def fault(line: str) -> str:
    return f"{HEAD}faults:\n  - {{{line}}}\n"


def two(first: str, second: str) -> str:
    return f"{HEAD}faults:\n  - {{{first}}}\n  - {{{second}}}\n"


def expect(line: str) -> str:
    return f'{HEAD}faults:\n  - {{at: 1s, link-down: "{LINK}", for: 1s, name: cut}}\nexpect:\n  - {line}\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "1:1: scenario: is empty"),
        ("# only a comment\n", "1:1: scenario: is empty"),
        ("- a\n- b\n", "1:1: scenario: must be a mapping"),
        ("just words", "1:1: scenario: must be a mapping"),
        ("name: a\n\tseed: 3\n", "2:1: scenario: not valid YAML: a tab; indent with spaces"),
        ("name: [a\nseed: 3\n", "not valid YAML"),
        ("name: a\nname: b\nworkload: []\n", "2:1: name: duplicate key 'name'"),
        ("name: a\n---\nname: b\n", "expected a single document"),
        ("name: !weird a\n", "1:7: name: the tag !weird is not supported"),
        ("a: &x [*x]\n", "contains itself"),
        ("? [a, b]\n: c\n", "a key must be a single word"),
        ("name: a\x00b\n", "1:8: scenario: holds a character that YAML does not allow"),
        ("a: *nowhere\n", "not valid YAML: found undefined alias"),
        ("[" * 700 + "]" * 700, "nested too deeply"),
        ("a: " + "[" * 200 + "]" * 200, "nested too deeply"),
        ("a: " + "[" * 17 + "]" * 17, "a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0: is nested too deeply"),
        ("name: 'a\n", "not valid YAML"),
        (
            "a: &a [1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n"
            "d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\n",
            "has more than 20000 values",
        ),
    ],
)
def test_text_that_is_no_yaml_mapping(text: str, says: str) -> None:
    assert says in mistakes(text)[0]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: small\n", "", "s.yaml:1:1: scenario: the key 'name' is missing; write for example `name: quickstart`"),
        ("small", "Small Name", "s.yaml:1:7: name: 'Small Name' is not a name; use lower-case letters"),
        ("small", "[a]", "s.yaml:1:7: name: must be text"),
        ("seed: 3", "seeds: 3", "s.yaml:2:1: seeds: unknown key 'seeds'; did you mean 'seed'?"),
        ("seed: 3", "xyzzy: 3", "unknown key 'xyzzy'; known here: name, about, seed, fabric"),
        ("seed: 3", "seed: -3", "s.yaml:2:7: seed: must be at least 0, such as 7; got -3"),
        ("seed: 3", "seed: '3'", "s.yaml:2:8: seed: must be a whole number, such as 7; got '3'"),
        ("seed: 3", "seed: 3.5", "must be a whole number"),
        ("seed: 3", "seed: true", "must be a whole number, such as 7; got true"),
        ("seed: 3", "seed:", "must be a whole number, such as 7; got nothing"),
        ("seed: 3", "seed: 1e400", "seed: must be a whole number"),
        ("seed: 3", "transport: tcp", "s.yaml:2:12: transport: must be 'mrc' in this version, such as mrc; got 'tcp'"),
        ("seed: 3", "routing: bgp", "must be 'srv6' in this version"),
        ("seed: 3", "about: 3", "about: must be text"),
        ("seed: 3", "endpoint: {icrc: yes}", "s.yaml:2:18: endpoint.icrc: must be true or false"),
        ("seed: 3", "endpoint: {ev_active: 0}", "endpoint.ev_active: must be at least 1"),
        ("seed: 3", "endpoint: {crc: true}", "endpoint.crc: unknown key 'crc'; did you mean 'icrc'?"),
        ("seed: 3", "endpoint: 3", "endpoint: must be a mapping of keys"),
        (
            "seed: 3",
            "endpoint: {congestion_control: nsc}",
            "s.yaml:2:32: endpoint.congestion_control: unknown congestion control 'nsc'; did you mean 'nscc'?",
        ),
        (
            "seed: 3",
            "endpoint: {congestion_control: 3}",
            "must be the name of a congestion control, one of fixed, nscc",
        ),
        (
            "seed: 3",
            "endpoint: {payload: 1000B}",
            "2:21: endpoint.payload: must be a path MTU, one of 256B, 512B",
        ),
        ("seed: 3", "endpoint: {payload: auto}", "endpoint.payload: 'auto' is not a size; write a number and a unit"),
        ("seed: 3", "endpoint: {mpr: 256}", "endpoint.mpr: must be at most 255, such as 8; got 256"),
        ("seed: 3", "endpoint: {mpr: 4, dynamic_mpr: 5}", "dynamic_mpr: asks for 5, more than mpr, which is 4"),
        ("seed: 3", "endpoint: {max_wimm: 0}", "endpoint.max_wimm: must be at least 1"),
        ("seed: 3", "endpoint: {trim_nack: 1}", "endpoint.trim_nack: must be true or false"),
        ("seed: 3", "endpoint: {timeout: 20s}", "2:21: endpoint.timeout: must be at most 17s"),
        ("seed: 3", "endpoint: {timeout: 0s}", "endpoint.timeout: must be more than 0"),
        ("seed: 3", "endpoint: {timeout: 4}", "endpoint.timeout: 4 has no unit; write a duration"),
        ("seed: 3", "endpoint: {timeout: aut}", "endpoint.timeout: unknown word 'aut'; did you mean 'auto'?"),
        ("seed: 3", "endpoint: {linear_tries: 8}", "endpoint.linear_tries: must be at most 7"),
        ("seed: 3", "endpoint: {exponential_tries: 26}", "endpoint.exponential_tries: must be at most 25"),
        ("seed: 3", "endpoint: {reorder_time: soon}", "endpoint.reorder_time: 'soon' is not a duration"),
        ("seed: 3", "endpoint: {reorder_packets: -1}", "endpoint.reorder_packets: must be at least 0"),
        ("seed: 3", "endpoint: {reinfer: later}", "endpoint.reinfer: must be true or false"),
        (
            "seed: 3",
            "endpoint: {ev_min_active: 0}",
            "ev_min_active: must be a whole number of 1 or more, or auto",
        ),
        (
            "seed: 3",
            "endpoint: {ev_active: 4, ev_min_active: 5}",
            "2:41: endpoint.ev_min_active: keeps 5 EVs, more than ev_active, which is 4",
        ),
        ("seed: 3", "endpoint: {probe_interval: 0ms}", "endpoint.probe_interval: must be more than 0"),
        ("seed: 3", "endpoint: {probe_successes: 25}", "endpoint.probe_successes: must be at most 24"),
        ("seed: 3", "endpoint: {ev_selection: rotation}", "'rotation'; there are adaptive, spec"),
        ("seed: 3", "endpoint: {denylist: p1}", "endpoint.denylist: must be a list"),
        ("seed: 3", "endpoint: {denylist: [3]}", "2:23: endpoint.denylist.0: must be a whole plane such as p1, or an"),
        ("seed: 3", "endpoint: {denylist: [p2]}", "2:23: endpoint.denylist.0: there is no plane 2; there are p0..p1"),
        (
            "seed: 3",
            "endpoint: {denylist: [p0-t1-9]}",
            "denylist.0: there is no switch 'p0-t1-9'; did you mean 'p0-t1-1'",
        ),
        ("seed: 3", "endpoint: {denylist: [p9-t1-0]}", "denylist.0: there is no switch 'p9-t1-0'; did you mean"),
        ("seed: 3", "endpoint: {denylist: [p0-t0-1]}", "p0-t0-1 is a T0; deny a whole plane such as p1, or an uplink"),
        ("seed: 3", "endpoint: {denylist: [h0]}", "h0 is a host; deny a whole plane"),
        ("seed: 3", "endpoint: {denylist: ['p0-t0-0:p0-t1-1']}", "p0-t0-0:p0-t1-1 is a link; deny a whole plane"),
        ("seed: 3", "endpoint: {denylist: [x]}", "x is no path; deny a whole plane"),
        ("seed: 3", 'endpoint: {denylist: ["p1\\n"]}', "'p1\\n' is not a name, such as p0-t1-2"),
        ("seed: 3", "endpoint: {denylist: [p\uff11]}", "is no path; deny a whole plane"),
        (
            "seed: 3",
            "endpoint: {denylist: [{hosts: [h0]}]}",
            "the key 'path' is missing; write for example `path: p0-t1",
        ),
        ("seed: 3", "endpoint: {denylist: [{path: p0, host: 3}]}", "unknown key 'host'; did you mean 'hosts'?"),
        (
            "seed: 3",
            "endpoint: {denylist: [{path: 3}]}",
            "2:30: endpoint.denylist.0.path: must be text, such as p0-t1-2",
        ),
        ("seed: 3", "endpoint: {denylist: [{path: p0, hosts: []}]}", "needs at least 1 host, such as [h0, h4]; got 0"),
        (
            "seed: 3",
            "endpoint: {denylist: [{path: p0, hosts: [h0, h9]}]}",
            "2:46: endpoint.denylist.0.hosts.1: there is no host 'h9'",
        ),
        ("seed: 3", "endpoint: {denylist: [{path: p0, hosts: [h0, h0]}]}", "denylist.0.hosts.1: duplicate host h0"),
        (
            "seed: 3",
            "endpoint: {denylist: [p1, p1]}",
            "2:27: endpoint.denylist.1: p1 is already denied by endpoint.denylist.0",
        ),
        (
            "seed: 3",
            "endpoint: {denylist: [p1-t1-0, {path: p1, hosts: [h0]}]}",
            "endpoint.denylist.1: p1 is already denied by endpoint.denylist.0 (p1-t1-0)",
        ),
        ("seed: 3", "endpoint: {denylist: [p0, p1]}", "2:27: endpoint.denylist.1: leaves no path from h0 to h"),
        (
            "seed: 3",
            "endpoint: {denylist: [p1, p0-t1-0, {path: p0-t1-1, hosts: [h1]}]}",
            "endpoint.denylist.2: leaves no path from h1 to h3; keep a plane or a T1 of one",
        ),
        ("small\n", "small\nendpoint: {denylist: [p9]}\nhosts: 3\n", "there is no plane 9"),
        ("seed: 3", "time_limit: 5", "s.yaml:2:13: time_limit: 5 has no unit"),
        ("seed: 3", "time_limit: 0s", "time_limit: must be more than 0"),
        ("seed: 3", "time_limit: 2s", "time_limit: is shorter than 22.1s, the time that the workload"),
        ("seed: 3", "faults: 3", "faults: must be a list"),
        ("seed: 3", "faults: [3]", "faults.0: must be a mapping such as {at: 6s"),
        ("planes: 2", "planes: 17", "s.yaml:3:18: fabric.planes: 17 is outside 1..16 (a uSID has 4 bits"),
        ("planes: 2", "planes: many", "s.yaml:3:18: fabric.planes: must be a whole number"),
        ("planes: 2", "plane: 2", "s.yaml:3:10: fabric.plane: unknown key 'plane'; did you mean 'planes'?"),
        ("planes: 2", "port_rate: 1kbit", "fabric.port_rate: 1000 is outside"),
        ("planes: 2", "rtt: 20", "fabric.rtt: 20 has no unit"),
        ("t1: 2", "t1: 0", "fabric.t1: must be at least 1 where there is more than one T0 group"),
        ("hosts_per_t0: 2", "hosts_per_t0: 0", "fabric.hosts_per_t0: 0 is outside 1..256"),
        ("t0_groups: 2, t1: 2, hosts_per_t0: 2", "t0_groups: 1, hosts_per_t0: 1", "needs at least 2 hosts"),
        ("hosts_per_t0: 2", "hosts_per_t0: 256, t0_groups: 200", "duplicate key 't0_groups'"),
        ("t0_groups: 2, t1: 2, hosts_per_t0: 2", "t0_groups: 200, hosts_per_t0: 200", "the limit is 2048 in all"),
        ("workload:\n", "workload: []\nw:\n", "workload: must have at least one entry"),
        (
            "- train",
            "- train: {steps: 1, compute: 1s, allreduce: 1MiB}\n  - train",
            "train and train are both jobs of steps; a scenario can have one",
        ),
        ("- train", "- trian", "workload.0.trian: unknown key 'trian'; did you mean 'train'?"),
        ("steps: 20, ", "", "s.yaml:5:5: workload.0.train: the key 'steps' is missing"),
        ("steps: 20", "steps: 0", "workload.0.train.steps: must be at least 1"),
        ("500ms", "soon", "workload.0.train.compute: 'soon' is not a duration"),
        ("2MiB", "2mib", "workload.0.train.allreduce: '2mib' has an unknown unit 'mib'; did you mean 'MiB'?"),
        ("2MiB", "3B", "workload.0.train.allreduce: 3B is less than a byte for each of 4 hosts"),
        ("2MiB", "2GiB", "workload: the hosts need 24580 MiB of memory for data, the limit is 4096 MiB"),
        ("steps: 20", "hosts: [h0], steps: 20", "hosts: needs at least 2 hosts"),
        ("steps: 20", "hosts: [], steps: 20", "needs at least 2 hosts"),
        ("steps: 20", "hosts: some, steps: 20", "must be `all` or a list of hosts"),
        ("steps: 20", "hosts: [h0, 3], steps: 20", "must be `all` or a list of hosts"),
        ("steps: 20", "hosts: [h0, h1, h0], steps: 20", "s.yaml:5:29: workload.0.train.hosts.2: duplicate host h0"),
        ("steps: 20", "hosts: [h0, h9], steps: 20", "hosts.1: there is no host 'h9'"),
        ("steps: 20", "hosts: [h0, gpu], steps: 20", "there is no host 'gpu'; there are h0..h3"),
    ],
)
def test_a_mistake_has_its_place_and_plain_words(old: str, new: str, says: str) -> None:
    assert old in HEAD
    assert any(says in line for line in mistakes(HEAD.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("qp_errors = 0", "s.yaml:9:15: expect.0: '=' is not one of"),
        ("'qp_errors = 0'", "s.yaml:9:16: expect.0: '=' is not one of"),
        ("qp_erors == 0", "s.yaml:9:5: expect.0: unknown metric 'qp_erors'; did you mean 'qp_errors'?"),
        ("steps_done == 8 during cat", "9:28: expect.0: there is no fault named 'cat'; did you mean 'cut'?"),
        ("steps_done == 8 during zzz", "there is no fault named 'zzz'; declared: cut"),
        ("3", "expect.0: must be an expectation in words"),
        ("warning: qp_errors = 0", "s.yaml:9:24: expect.0.warning: '=' is not one of"),
        ("warning: nacks == 0 during cat", "s.yaml:9:32: expect.0.warning: there is no fault named 'cat'"),
        ("warning: 3", "must be an expectation, or one with `warning:` before it"),
        ("{warning: nacks == 0, error: nacks == 0}", "must be an expectation, or one with `warning:` before it"),
        ("warn: nacks == 0", "must be an expectation, or one with `warning:` before it"),
        ("{}", "must be an expectation in words"),
        ("nacks == 0 before cat", "s.yaml:9:23: expect.0: there is no fault named 'cat'; did you mean 'cut'?"),
        ("nacks == 0 after cat heals", "there is no fault named 'cat'; did you mean 'cut'?"),
        ("nacks == 0 from cat to cut heals", "there is no fault named 'cat'; did you mean 'cut'?"),
        ("nacks == 0 from cut - 2s to cut", "expect.0: begins 1s before the workload"),
        ("nacks == 0 from cut heals to 1500ms", "expect.0: ends at 1.5s, before it begins"),
        ("nacks == 0 after cut heals + 90s", "expect.0: begins at 92s, but the workload takes about"),
        ("nacks of h99 == 0", "expect.0: there is no host named 'h99'"),
        ("fair_share.min of each flow >= 1", "fair_share is only defined for flows"),
        ("goodput of h0->h1 >= 1 mbit", "a job of steps has no flows to choose from, only hosts"),
        ("evs_retired of each flow == 0", "a job of steps has no flows to choose from, only hosts"),
        ("evs_retired of h0->h2 == 0", "there are no data 'h0->h2'; did you mean"),
        ("wait_time.p50 of h0->h1 <= 1s", "there are no data 'h0->h1'; did you mean"),
    ],
)
def test_a_wrong_expectation(line: str, says: str) -> None:
    assert any(says in problem for problem in mistakes(expect(line)))


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
  - {at: 2s, link-down: "p0-t0-0:p0-t1-1", for: 2s, name: a}
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
    ("override", "says"),
    [
        ("nonsense", "--set nonsense: must be KEY=VALUE with a dotted key"),
        ("=3", "--set =3: must be KEY=VALUE"),
        ("a..b=3", "must be KEY=VALUE"),
        ("name.x=3", "--set name.x=3: name is a plain value and has no keys"),
        ("workload.1.train.steps=3", "--set workload.1.train.steps=3: the list has no item 1"),
        ("workload.first=3", "a list needs a number from 0 to 1, not 'first'"),
        ("seed=[3", "--set seed=[3: not valid YAML"),
        ("seed=!x 3", "--set seed=!x 3: the tag !x is not supported"),
        ("seed=", "--set seed=: must be a whole number"),
        ("seed=-1", "--set seed=-1: must be at least 0"),
        ("fabric.planes=40", "--set fabric.planes=40: 40 is outside 1..16"),
        ("fabric.plans=4", "--set fabric.plans=4: unknown key 'plans'; did you mean 'planes'?"),
        ("fabric={planes: 40}", "--set fabric={planes: 40}: fabric.planes: 40 is outside 1..16"),
        ("expect=[qp_errors = 0]", "--set expect=[qp_errors = 0]: expect.0: '=' is not one of"),
    ],
)
def test_a_wrong_override(override: str, says: str) -> None:
    assert mistakes(HEAD, override)[0].startswith(says) or says in mistakes(HEAD, override)[0]


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


@settings(deadline=None, max_examples=150)
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


@settings(deadline=None, max_examples=150)
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
    assert load_scenario_text(text).train.total_steps == 1_000_000
    (told,) = mistakes(text.replace("1000000", "1000001"))
    assert "steps: must be at most 1000000" in told
