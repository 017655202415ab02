"""What a good scenario becomes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import (
    load_scenario,
    load_scenario_text,
    parse_paths,
    scenario_json_schema,
)
from mrc_testbed.testbed.scenario.faults.kinds.cuts import LinkDown, LinkFlap
from mrc_testbed.testbed.scenario.faults.kinds.switches import SwitchReboot
from mrc_testbed.testbed.scenario.text.denylist import PathGroup
from mrc_testbed.testbed.workloads.collective import Terms
from mrc_testbed.testbed.workloads.fairness import line_rate
from mrc_testbed.testbed.workloads.steps import ALL, Compute, Exchange
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.graph import SwitchPlace
from mrc_testbed.topos.plan import build_plan

QUICKSTART = Path(__file__).parents[3] / "scenarios" / "quickstart.yaml"
MINIMAL = "name: small\nfabric: {}\nworkload:\n  - train: {steps: 10, compute: 100ms, allreduce: 4MiB}\n"
LINK = "p0-t0-0:p0-t1-2"


def test_a_minimal_scenario_has_the_standard_shape() -> None:
    scenario = load_scenario_text(MINIMAL)
    assert scenario.shape() == replace(clos2_shape(4, 2, 4, 4, 12_500_000, 40_000_000), open_messages=32)
    assert scenario.seed == 1
    assert scenario.endpoint.ev_active == 128
    assert scenario.endpoint.icrc is False
    assert scenario.endpoint.congestion_control == "nscc"
    assert scenario.endpoint.denylist == ()
    assert scenario.jobs[0].entry.total_steps == scenario.jobs[0].entry.step_count == 10
    assert scenario.jobs[0].entry.parts == (Compute(100_000_000), Exchange("allreduce", ALL, Terms(4 << 20)))
    assert scenario.host_names == tuple(f"h{n}" for n in range(8))
    assert scenario.faults == ()
    assert scenario.expect == ()
    assert scenario.last_heal_ns == 0


def test_the_fabric_may_be_left_out() -> None:
    assert load_scenario_text(MINIMAL.replace("fabric: {}\n", "")).shape().planes == 4


def test_the_quickstart_loads_and_its_faults_end_in_time() -> None:
    scenario = load_scenario(QUICKSTART)
    half = replace(clos2_shape(4, 2, 4, 4, 12_500_000, 40_000_000), open_messages=32)
    assert scenario.shape() == half, "half the standard load, in as many packets"
    assert [fault.kind for fault in scenario.faults] == ["link-flap", "link-flap", "switch-reboot"]
    assert scenario.last_heal_ns <= 22 * 10**9 < scenario.estimate_ns
    assert 1.5 < scenario.estimate_ns / scenario.jobs[0].entry.total_steps / 1e9 < 1.8
    plan = build_plan(scenario.shape())
    planes = {
        plan.link_by_name[occurrence.targets[0]].plane
        for occurrence in scenario.occurrences
        if occurrence.kind == "link-flap"
    }
    assert len(planes) == 2


def test_faults_are_typed_and_numbered() -> None:
    faults = f"""\
faults:
  - {{at: 1s, link-down: "{LINK}", for: 500ms}}
  - {{at: 2s, link-flap: ["{LINK}", "h0:p1-t0-0"], period: 1s, count: 3}}
  - {{at: 7s, switch-reboot: p0-t1-2, boot: 3s, name: link-flap-1}}
  - {{at: 3s, link-flap: "p3-t0-0:p3-t1-0", period: 1s, count: 2, duty: 0.25}}
"""
    scenario = load_scenario_text(MINIMAL + faults)
    down, flap, reboot, again = scenario.faults
    assert isinstance(down, LinkDown)
    assert (down.name, down.at_ns, down.end_ns) == ("link-down-1", 10**9, 1_500_000_000)
    assert isinstance(flap, LinkFlap)
    assert flap.name == "link-flap-2"  # the first number is taken by the author
    occurrences = [occurrence for occurrence in scenario.occurrences if occurrence.fault == flap.name]
    assert {occurrence.targets for occurrence in occurrences} == {(LINK, "h0:p1-t0-0")}
    assert [(occurrence.begin_ns, occurrence.end_ns) for occurrence in occurrences] == [
        (2_000_000_000, 2_500_000_000),
        (3_000_000_000, 3_500_000_000),
        (4_000_000_000, 4_500_000_000),
    ]
    assert isinstance(reboot, SwitchReboot)
    assert (reboot.name, reboot.end_ns) == ("link-flap-1", 10_000_000_000)
    assert isinstance(again, LinkFlap)
    assert (again.name, again.end_ns) == ("link-flap-3", 4_250_000_000)


def test_a_reboot_breaks_every_link_of_the_switch() -> None:
    scenario = load_scenario_text(MINIMAL + "faults:\n  - {at: 1s, switch-reboot: p0-t0-1, boot: 1s}\n")
    links = scenario.occurrences[0].links
    assert len(links) == 8
    assert "h4:p0-t0-1" in links
    assert "p0-t0-1:p0-t1-3" in links


def test_hosts_may_be_listed() -> None:
    scenario = load_scenario_text(MINIMAL.replace("{steps", "{hosts: [h5, h0, h3], steps"))
    assert scenario.host_names == ("h5", "h0", "h3")
    assert load_scenario_text(MINIMAL.replace("{steps", "{hosts: all, steps")).host_names[0] == "h0"


def test_on_and_no_are_words_as_yaml_1_2_has_it() -> None:
    scenario = load_scenario_text(MINIMAL.replace("name: small", "name: on") + "about: 'no'\n")
    assert scenario.name == "on"
    assert scenario.about == "no"


def test_models_are_frozen() -> None:
    scenario = load_scenario_text(MINIMAL)
    with pytest.raises(ValidationError):
        scenario.seed = 3


def test_the_time_limit_may_be_given() -> None:
    assert load_scenario_text(MINIMAL + "time_limit: 2min\n").time_limit_ns == 120 * 10**9
    scenario = load_scenario_text(MINIMAL)
    assert scenario.time_limit_ns == 3 * scenario.estimate_ns + 60 * 10**9


def test_lines_of_the_file_are_known() -> None:
    scenario = load_scenario_text(MINIMAL + "expect:\n  - qp_errors == 0\n  - steps_done == 10\n")
    assert scenario.line_of("expect", 1) == 7
    assert scenario.line_of("nothing") is None


def test_dumped_text_is_the_file_itself_and_loads_again() -> None:
    text = QUICKSTART.read_text()
    assert load_scenario(QUICKSTART).dump_yaml() == text


def test_dumped_text_has_the_changes_and_keeps_the_comments() -> None:
    changed = load_scenario(QUICKSTART, ["fabric.rtt=30ms", "faults.0.count=2", "expect.6=steps_done == 18"], seed=99)
    text = changed.dump_yaml()
    assert "Every key is explained in docs/scenario.md." in text
    assert "seed: 99" in text
    again = load_scenario_text(text)
    assert again.model_dump() == changed.model_dump()
    assert again.fabric.rtt_ns == 30_000_000
    assert again.faults[0].end_ns == changed.faults[0].end_ns
    assert again.expect[-1].text == "steps_done == 18"


@pytest.mark.parametrize("written", ["2026-31-01", "!!int x", "!!timestamp soon", "2026-01-31"])
def test_a_word_that_yaml_takes_for_something_else_is_kept_with_changes(written: str) -> None:
    text = f"about: {written}\n{MINIMAL}"
    word = written.rpartition(" ")[2]
    changed = load_scenario_text(text, seed=3)
    assert (changed.about, changed.seed) == (word, 3)
    again = load_scenario_text(changed.dump_yaml())
    assert (again.about, again.seed) == (word, 3)


def test_a_change_inside_an_alias_keeps_to_its_own_place() -> None:
    text = f"""\
{MINIMAL}faults:
  - {{at: 1s, link-down: &both [p0-t0-0:p0-t1-1, p0-t0-0:p0-t1-2], for: 100ms}}
  - {{at: 3s, link-down: *both, for: 100ms}}
"""
    changed = load_scenario_text(text, overrides=["faults.1.link-down.0=h0:p0-t0-0"])
    assert changed.occurrences[0].targets == ("p0-t0-0:p0-t1-1", "p0-t0-0:p0-t1-2")
    assert changed.occurrences[1].targets == ("h0:p0-t0-0", "p0-t0-0:p0-t1-2")
    assert load_scenario_text(changed.dump_yaml()).model_dump() == changed.model_dump()


def test_changed_lines_have_no_place_in_the_file() -> None:
    scenario = load_scenario(QUICKSTART, ["expect.0=qp_errors == 1"])
    assert scenario.line_of("expect", 0) is None
    assert scenario.line_of("expect", 1) is not None


def test_changes_reach_into_what_is_not_there_yet() -> None:
    scenario = load_scenario_text(MINIMAL, overrides=["endpoint.icrc=true", "expect=[qp_errors == 0]"])
    assert scenario.endpoint.icrc is True
    assert len(scenario.expect) == 1


def test_a_list_that_is_not_there_can_be_begun() -> None:
    scenario = load_scenario_text(MINIMAL, overrides=["endpoint.denylist.0=p1", "endpoint.denylist.1=p0-t1-2"])
    assert [denial.path for denial in scenario.endpoint.denylist] == ["p1", "p0-t1-2"]
    assert load_scenario_text(scenario.dump_yaml()).endpoint == scenario.endpoint
    for option, says in (("expect.1=x", "largest number that fits is 0"), ("faults.0.at=1s", "the list is empty")):
        with pytest.raises(ScenarioError, match=says) as refusal:
            load_scenario_text(MINIMAL, overrides=[option])
        assert str(refusal.value).startswith(f"--set {option}: ")


def test_an_expectation_may_be_a_warning(tmp_path: Path) -> None:
    kinds = scenario_json_schema()["properties"]["expect"]["items"]["anyOf"]
    assert [kind["type"] for kind in kinds] == ["string", "object", "object"]
    assert kinds[1]["required"] == ["warning"]
    text = "name: a\nworkload:\n  - train: {steps: 9, compute: 1s, allreduce: 1MiB}\nexpect:\n"
    loaded = load_scenario_text(text + "  - nacks == 0\n  - warning: timeouts == 0\n")
    assert [line.level for line in loaded.expect] == ["error", "warning"]
    assert loaded.model_dump(by_alias=True)["expect"] == ("nacks == 0", {"warning": "timeouts == 0"})
    assert loaded.line_of("expect", 1) == 6
    assert load_scenario_text(loaded.dump_yaml()).expect == loaded.expect


def test_the_schema_speaks_the_words_of_the_file() -> None:
    schema = scenario_json_schema()
    text = json.dumps(schema)
    for word in ("deny", "denylist", "cold-start", "congestion_control", "nscc", "fixed"):
        assert f'"{word}"' in text
    for word in ("link-flap", "link-down", "switch-reboot", "allreduce", "port_rate", "time_limit", "duty"):
        assert f'"{word}"' in text
    assert "allreduce_bytes" not in text
    assert set(schema["required"]) == {"name", "workload"}
    assert schema["properties"]["name"]["description"]


def test_the_package_is_light_until_a_scenario_is_loaded() -> None:
    code = "import sys, mrc_testbed.testbed.scenario\n"
    code += "print([m for m in ('pydantic', 'ruamel.yaml', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_has_no_other_names() -> None:
    import mrc_testbed.testbed.scenario

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mrc_testbed.testbed.scenario.nothing


def test_the_estimate_follows_the_ring() -> None:
    scenario = load_scenario_text(MINIMAL)
    # 512 KiB a phase: 128 packets of 4238 bytes over 50 Mb/s, half a T, and one more hop of one packet; three of them
    # in four of the phases. Then the last acknowledgement: half a T, and little more.
    packet = 4238 * 8 / 12.5e6
    phase = 128 * 4238 * 8 / 50e6 + 0.020 + packet
    assert scenario.estimate_ns / 1e9 == pytest.approx(10 * (0.1 + 14 * phase + 4 * 2 * packet + 0.020), rel=1e-3)


def test_a_small_chunk_is_not_charged_as_a_whole_packet() -> None:
    text = MINIMAL.replace("{}", "{rtt: 0s}").replace("100ms, allreduce: 4MiB", "0s, hosts: [h0, h1], allreduce: 200B")
    assert load_scenario_text(text).estimate_ns / 10 < 2 * 4 * 4238 * 8 / 12.5e6 * 1e9 / 2


def test_replacing_a_list_that_holds_comments_gives_a_text_that_means_it() -> None:
    quickstart = Path(__file__).parents[3] / "scenarios/quickstart.yaml"
    loaded = load_scenario(quickstart, ["faults=[]", "expect=[qp_errors == 0]"])
    again = load_scenario_text(loaded.dump_yaml())
    assert again.faults == ()
    assert [wanted.text for wanted in again.expect] == ["qp_errors == 0"]


def test_the_settings_of_the_endpoint_as_they_are_written_and_as_they_are_told() -> None:
    usual = load_scenario_text(MINIMAL).endpoint
    assert usual.changed() == {}
    text = "endpoint: {timeout: 80ms, payload: 1KiB, reorder_time: auto, ev_min_active: 2, trim_nack: false}\n"
    endpoint = load_scenario_text(MINIMAL + text).endpoint
    assert endpoint.changed() == {
        "timeout": "134.217728ms",
        "payload": "1KiB",
        "ev_min_active": "2",
        "trim_nack": "false",
    }
    told = endpoint.settings()
    assert {key: told[key] for key in told if told[key] != usual.settings().get(key)} == {
        "timeout": 17,
        "payload_bytes": 1024,
        "ev_min_active": 2,
        "trim_nack": False,
    }
    again = [f"endpoint.{key}={value}" for key, value in endpoint.written().items()]
    assert load_scenario_text(MINIMAL, overrides=again).endpoint.written() == endpoint.written()


def test_smaller_packets_take_longer_and_carry_less() -> None:
    usual, small = (load_scenario_text(MINIMAL + more) for more in ("", "endpoint: {payload: 256B}\n"))
    assert small.estimate_ns > 1.2 * usual.estimate_ns
    assert line_rate(small.shape()) == pytest.approx(line_rate(usual.shape()) * (256 / 398) / (4096 / 4238))
    assert small.shape().port_pps == pytest.approx(usual.shape().port_pps * 4238 / 398)


@pytest.mark.parametrize(("written", "code"), [("1us", 1), ("2048ns", 1), ("2049ns", 2), ("17s", 24)])
def test_a_timeout_is_rounded_up_to_a_power_of_two(written: str, code: int) -> None:
    assert load_scenario_text(f"{MINIMAL}endpoint: {{timeout: {written}}}\n").endpoint.timeout == code


def test_the_endpoint_may_be_told_its_congestion_control_and_denylist() -> None:
    endpoint = "endpoint: {congestion_control: fixed, denylist: [p1, p0-t1-2, {path: p0-t1-3, hosts: [h0]}]}\n"
    scenario = load_scenario_text(MINIMAL + endpoint)
    assert scenario.endpoint.congestion_control == "fixed"
    assert [(entry.path, entry.hosts) for entry in scenario.endpoint.denylist] == [
        ("p1", ()),
        ("p0-t1-2", ()),
        ("p0-t1-3", ("h0",)),
    ]
    assert load_scenario_text(scenario.dump_yaml()).endpoint == scenario.endpoint
    schema = scenario_json_schema()["$defs"]["EndpointSettings"]["properties"]["denylist"]["items"]
    assert [entry.get("type") for entry in schema["anyOf"]] == ["string", None], "a name, or a mapping"


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("p1", PathGroup(1)),
        ("p0-t1-2", PathGroup(0, SwitchPlace(1, 2))),
        ("p15-t2-0", PathGroup(15, SwitchPlace(2, 0))),
        ("p3/u12", PathGroup(3, number=12)),
        *((name, None) for name in ("p0-t0-1", "p01", "h0", "p1/u", "p1/u01", "p1/2", "p1-u2")),
    ],
)
def test_names_of_paths(name: str, group: PathGroup | None) -> None:
    assert parse_paths(name) == group


def test_paths_may_be_denied_in_mid_run() -> None:
    line = "faults: [{at: 4s, deny: [p0-t1-2, p1], for: 3s, hosts: [h0, h4]}]\n"
    (occurrence,) = load_scenario_text(MINIMAL + line).occurrences
    assert (occurrence.fault, occurrence.kind) == ("deny-1", "deny")
    assert (occurrence.targets, occurrence.hosts) == (("p0-t1-2", "p1"), ("h0", "h4"))
    assert (occurrence.begin_ns, occurrence.end_ns) == (4 * 10**9, 7 * 10**9)
    assert occurrence.title == "deny p0-t1-2, p1 for h0 h4"


def test_what_is_only_denied_is_not_broken_and_may_break_meanwhile() -> None:
    faults = f"""\
faults:
  - {{at: 4s, deny: p0-t1-2, for: 3s}}
  - {{at: 5s, link-down: "{LINK}", for: 1s}}
"""
    scenario = load_scenario_text(MINIMAL + faults)
    assert scenario.occurrences[0].links == ()


def test_a_fault_may_be_there_before_the_endpoints() -> None:
    faults = f"""\
faults:
  - {{at: cold-start, link-down: "{LINK}", for: 4s}}
  - {{at: cold-start, link-flap: h0:p1-t0-0, period: 2s, count: 2}}
  - {{at: cold-start, switch-reboot: p2-t1-0, boot: 1s}}
  - {{at: 0s, link-down: h1:p1-t0-0, for: 1s}}
"""
    down, flap, reboot, later = load_scenario_text(MINIMAL + faults).faults
    assert [fault.at.cold for fault in (down, flap, reboot, later)] == [True, True, True, False]
    assert [fault.at_ns for fault in (down, flap, reboot, later)] == [0, 0, 0, 0]
    assert [down.end_ns, flap.end_ns, reboot.end_ns] == [4 * 10**9, 3 * 10**9, 10**9], "from the workload's start"
