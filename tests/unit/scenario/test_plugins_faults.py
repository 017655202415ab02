"""Fault kinds of the plugins that a scenario names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.faults.actions import action_of
from mrc_testbed.testbed.scenario import load_scenario, scenario_json_schema
from tests.plugins import MTU_FAULT
from tests.unit.scenario.test_plugins import written

SOURCE = MTU_FAULT.read_text()
HEAD = """\
name: small
plugins: [mine.py]
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 90, compute: 100ms, allreduce: 1MiB}}]
faults:
"""
FAULT = "  - {at: 1s, link-mtu: 'p0-t0-0:p0-t1-1', mtu: 2000, for: 2s}\n"


def mistakes(folder: Path) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(folder / "s.yaml")
    return [problem.message for problem in caught.value.problems]


def test_a_scenario_uses_the_kind_of_its_plugin(tmp_path: Path) -> None:
    scenario = load_scenario(written(tmp_path, HEAD + FAULT, mine=SOURCE) / "s.yaml")
    (one,) = scenario.occurrences
    assert (one.fault, one.kind, one.targets) == ("link-mtu-1", "link-mtu", ("p0-t0-0:p0-t1-1",))
    assert [(plugin.kind, plugin.name) for plugin in scenario.offered.plugins] == [("fault", "link-mtu")]


def test_a_kind_is_known_to_the_scenarios_that_name_its_file_alone(tmp_path: Path) -> None:
    text = HEAD + FAULT
    load_scenario(written(tmp_path, text, mine=SOURCE) / "s.yaml")
    (told,) = mistakes(written(tmp_path, text.replace("plugins: [mine.py]\n", "")))
    assert told.startswith("unknown fault kind 'link-mtu'")
    assert "link-mtu" not in json.dumps(scenario_json_schema())


def test_two_plugins_may_use_one_name_in_two_scenarios_of_a_process(tmp_path: Path) -> None:
    loaded = {}
    for name in ("one", "two"):
        source = SOURCE.replace('words=f"at {', f'words=f"{name} {{')
        text = (HEAD + FAULT).replace("mine.py", f"{name}.py")
        loaded[name] = load_scenario(written(tmp_path, text, **{name: source}) / "s.yaml")
    # What was loaded first still has its own after the second was.
    titles = {name: scenario.occurrences[0].title for name, scenario in loaded.items()}
    assert titles == {name: f"link-mtu p0-t0-0:p0-t1-1 {name} 2000 bytes" for name in loaded}
    actions = [action_of(scenario.occurrences[0].model) for scenario in loaded.values()]
    assert actions == [scenario.offered.named("fault")["link-mtu"] for scenario in loaded.values()]
    assert actions[0] is not actions[1]


def test_a_changed_file_and_a_copy_take_the_place_of_the_kind(tmp_path: Path) -> None:
    for source, folder in ((SOURCE, "one"), (SOURCE.replace("ge=1280", "ge=1999"), "two"), (SOURCE, "three")):
        (tmp_path / folder).mkdir()
        load_scenario(written(tmp_path / folder, HEAD + FAULT, mine=source) / "s.yaml")
    (told,) = mistakes(
        written(tmp_path / "two", HEAD + FAULT.replace("2000", "1500"), mine=SOURCE.replace("1280", "1999"))
    )
    assert told == "must be at least 1999, such as 2000; got 1500"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("LinkMtu}", "set_mtu}", "mine.py:33: fault kind 'link-mtu' must be a class that inherits from"),
        ("    def heal(", "    def hea(", "mine.py:8: fault kind 'link-mtu' lacks heal()"),
        ('"link-mtu", Target', '"link-mtv", Target', "has an `aims` that needs the alias 'link-mtv'"),
        ('{"link-mtu": LinkMtu}', '{"link-mtv": LinkMtu}', "fault kind 'link-mtv' is called 'link-mtu' by its class"),
        ('{"link-mtu": LinkMtu}', '{"link-down": LinkMtu}', "fault kind 'link-down' has the name of a built-in one"),
        ("from pydantic", "1 / 0\nfrom pydantic", "mine.py:3: ZeroDivisionError: division by zero"),
    ],
)
def test_a_kind_that_cannot_be_used_is_one_mistake(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in SOURCE
    (told,) = mistakes(written(tmp_path, HEAD + FAULT, mine=SOURCE.replace(old, new, 1)))
    assert says in told
