"""Parameters of a congestion control and of an EV selection: keys in `endpoint` below the plugin's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.timing import Timing
from mrc_testbed.hosts.plugins import LoadedPlugins
from mrc_testbed.testbed.compare.settings import settings_of
from mrc_testbed.testbed.runner.plugins import copy_plugins, plugin_rows
from mrc_testbed.testbed.scenario import Scenario, load_cells, load_scenario, scenario_json_schema
from mrc_testbed.testbed.scenario.cells.axes import Sweep
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings
from tests.unit.scenario.test_plugins import EXAMPLES, SCENARIO, here, mistakes, with_plugin, written

__all__ = ["here"]

SHARE = "endpoint.fixed-rate.share"
SOURCE = (EXAMPLES / "my_cc.py").read_text().replace('"fixed-rate"', '"mine"')
SPRAY = (EXAMPLES / "random_spray.py").read_text().replace('"random-spray"', '"mine"')


def share_on_a_host(scenario: Scenario, folder: Path) -> float:
    """Of an object made as a daemon makes it from what it is told."""
    folder.mkdir()
    copy_plugins(scenario, folder)
    loaded = LoadedPlugins()
    loaded.load(plugin_rows(scenario, folder)["plugins"])
    config = EndpointConfig(host=0, planes=2, udp_port=0xC000, rtt_ns=20_000_000, port_rate_bps=25_000_000)
    made = loaded.plugins.congestion_control["fixed-rate"](Timing(config))
    share: float = made.share  # type: ignore[attr-defined]
    return share


def test_the_hosts_get_the_values_of_the_scenario_and_defaults_of_the_rest(here: Path) -> None:
    assert share_on_a_host(load_scenario(here / "s.yaml"), here / "usual") == 0.5
    changed = load_scenario(here / "s.yaml", [f"{SHARE}=0.8"])
    assert share_on_a_host(changed, here / "changed") == 0.8
    assert "fixed-rate" not in changed.endpoint.settings()
    assert changed.endpoint.written()["fixed-rate.share"] == "0.8"
    assert changed.endpoint.changed()["fixed-rate.share"] == "0.8"


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("{share: 7}", "s.yaml:4:84: endpoint.fixed-rate: share must be more than 0 and at most 1"),
        ("{share: much}", "s.yaml:4:92: endpoint.fixed-rate.share: must be a number; got 'much'"),
        ("{shar: 0.3}", "s.yaml:4:85: endpoint.fixed-rate.shar: unknown key 'shar'; did you mean 'share'?"),
        ("0.3", "s.yaml:4:84: endpoint.fixed-rate: must be a mapping"),
    ],
)
def test_a_wrong_value_is_told_at_its_place(here: Path, section: str, says: str) -> None:
    text = SCENARIO.replace("random-spray}", f"random-spray, fixed-rate: {section}}}")
    (told,) = mistakes(written(here, text))
    assert told.startswith(says)


def test_a_matrix_varies_a_key_and_runs_of_other_values_are_no_repeats(here: Path) -> None:
    cells = load_cells(here / "s.yaml", sweep=Sweep((f"{SHARE}=0.3,0.5,0.9",)))
    settings = [settings_of(cell.scenario) for cell in cells]
    assert [each[SHARE] for each in settings] == ["0.3", "0.5", "0.9"]
    assert settings[1] == settings_of(load_scenario(here / "s.yaml")), "a default that is written changes nothing"


def test_the_text_of_a_run_has_the_keys_and_the_schema_too(here: Path) -> None:
    scenario = load_scenario(here / "s.yaml", [f"{SHARE}=0.8"])
    (here / "again.yaml").write_text(scenario.dump_yaml())
    assert load_scenario(here / "again.yaml").endpoint == scenario.endpoint
    assert "keys of the plugin fixed-rate" in str(scenario_json_schema(scenario.offered))


def test_keys_of_a_plugin_that_is_not_chosen_do_nothing_and_validate_says_so(here: Path) -> None:
    sets = [f"{SHARE}=0.8", "endpoint.congestion_control=nscc"]
    assert [*scenario_warnings(load_scenario(here / "s.yaml", sets))] == [
        "endpoint.fixed-rate: the plugin is not chosen, so nothing comes of its keys"
    ]
    assert not [*scenario_warnings(load_scenario(here / "s.yaml", sets[:1]))]


def test_an_ev_selection_has_keys_too_and_times_are_scaled(here: Path) -> None:
    made = "    def __init__(self, evs"
    keys = "    @dataclass\n    class Keys:\n        rest: Duration = 0\n\n"
    imported = "from dataclasses import dataclass\nfrom mrc_testbed.api import Duration\n"
    source = imported + SPRAY.replace(made, f"{keys}{made}, keys")
    text = SCENARIO.replace("[my_cc", "[mine.py, my_cc").replace("random-spray}", "mine, mine: {rest: 5ms}}")
    written(here, text, mine=source)
    assert load_scenario(here / "s.yaml").endpoint.keys_of("mine") == {"rest": 5_000_000}
    sets = ["world=virtual", "scale=100"]
    assert load_scenario(here / "s.yaml", sets).endpoint.keys_of("mine") == {"rest": 50_000}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (SOURCE.replace("share: float = 0.5", "share: float"), "mine.py:9: congestion control 'mine' has Keys without"),
        (SOURCE.replace("@dataclass(frozen=True)", ""), "has a Keys class that is not a dataclass"),
        (SOURCE.replace("= 0.5", "= ()"), "mine.py:17: TypeError: "),
        (SOURCE.replace("= 0.5", "= 5"), "mine.py:18: ValueError: share must be more than 0 and at most 1"),
        (SOURCE.replace("timing, keys)", "timing)").replace("keys.share", "1"), "takes 2 positional arguments but 3"),
        (SOURCE.replace('"mine"', '"icrc"'), "'icrc' has keys, and the name of a key of `endpoint`; choose another"),
        (
            SOURCE.replace("share: float = 0.5", "share: float = 0.5\n        of: tuple = ()"),
            "has a key 'of' whose def",
        ),
    ],
)
def test_keys_that_cannot_be_are_one_mistake_with_the_file(here: Path, source: str, says: str) -> None:
    (told,) = with_plugin(here, source)
    assert told.startswith("s.yaml:2:")
    assert says in told


def test_two_plugins_of_one_name_cannot_both_have_keys(here: Path) -> None:
    source = SOURCE.replace(
        "PLUGIN = {",
        "from mrc_testbed.hosts.mrc.evselect.base import NO_PLANE, EvSelection\n\n\nclass Other(EvSelection):\n"
        "    Keys = FixedRate.Keys\n    turn = NO_PLANE\n\n    def __init__(self, evs, keys): pass\n\n"
        "    def take(self, avoid=None): pass\n\n\nPLUGIN = {'ev_selection': {'mine': Other}, ",
    )
    (told,) = with_plugin(here, source)
    assert told.endswith("congestion control and EV selection 'mine' both have keys in `endpoint`; rename one")
