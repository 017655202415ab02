"""Congestion control and EV selection from files of a user: loaded, driven, held to the rules, and blamed."""

import hashlib
import inspect
import json
from pathlib import Path

import pytest

from mrc_testbed.hosts.common.errors import PluginError, UnknownChoiceError
from mrc_testbed.hosts.control import CommandError
from mrc_testbed.hosts.mrc.cc.base import CongestionControl
from mrc_testbed.hosts.mrc.evselect.base import EvSelection
from mrc_testbed.hosts.mrc.plugins import CONTROL_METHODS, SELECTION_METHODS
from mrc_testbed.hosts.plugins import LoadedPlugins
from tests.sim.simnet import RATE, EvChanged, Net, T, pattern
from tests.sim.test_transfer import transfer

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
RATE_ROW = {
    "name": "fixed-rate", "kind": "congestion_control", "file": str(EXAMPLES / "my_cc.py"), "attribute": "FixedRate",
}  # fmt: skip
SPRAY_ROW = {
    "name": "spray", "kind": "ev_selection", "file": str(EXAMPLES / "random_spray.py"), "attribute": "RandomSpray",
}  # fmt: skip
SPRAY_BASE = "from mrc_testbed.hosts.mrc.evselect.base import NO_PLANE, EvSelection\n"


def loaded(*rows):
    plugins = LoadedPlugins()
    plugins.load(rows)
    return plugins


def net_with(plugins, **settings):
    return Net(plugins=plugins.plugins, **settings)


def row_of(tmp_path, source, kind, attribute="Mine"):
    file = tmp_path / "mine.py"
    file.write_text(source)
    return {"name": "mine", "kind": kind, "file": str(file), "attribute": attribute}


def goodput(net, size=8 << 20):
    flow = net.join(region_bytes=size)
    data = pattern(size)
    flow.write(data)
    took = net.run(lambda: net.completed(), within=2000 * T)
    assert flow.region() == data
    return size * 8e9 / took / (net.planes * RATE)


# --- the examples ---


@pytest.mark.parametrize("file", ["my_cc.py", "random_spray.py"])
def test_an_example_fits_in_40_lines(file):
    assert len((EXAMPLES / file).read_text().splitlines()) <= 40


def test_the_fixed_rate_is_half_the_rate_of_the_ports():
    net = net_with(loaded(RATE_ROW), congestion_control="fixed-rate")
    assert goodput(net) == pytest.approx(0.5, abs=0.05)
    assert net.counters()["retransmitted"] == 0


def test_the_random_spray_uses_every_ev_and_never_rests_one():
    net = net_with(loaded(SPRAY_ROW), ev_selection="spray")
    net.worsen(plane=1, uplink=1, ce=True)
    goodput(net)
    packets = net.hosts[0].path_packets(1)
    mean = sum(packets.values()) / len(packets)
    assert all(0.6 * mean < count < 1.4 * mean for count in packets.values())
    assert net.counters()["sacks_with_ce"] > 0
    assert net.counters()["evs_skipped"] == net.counters()["data_on_skip_ev"] == 0


def test_a_spray_leaves_dead_evs_denied_ones_and_lost_ports_and_all_arrives():
    net = net_with(loaded(SPRAY_ROW), ev_selection="spray")
    net.hosts[0].deny(1, [(2, 3)])
    net.cut(plane=0, uplink=1)
    flow = net.join(region_bytes=8 << 20)
    data = pattern(8 << 20)
    flow.write(data)
    net.run(within=5 * T, must=False)
    net.port_down(0, 1)
    before = net.plane_packets()[1]
    net.run(lambda: net.completed(), within=3000 * T)
    assert flow.region() == data
    assert net.plane_packets()[1] == before
    assert net.hosts[0].path_packets(1)[2, 3] == 0
    assert net.counters()["data_on_bad_ev"] == net.counters()["qp_errors"] == 0


def test_a_spray_lives_through_the_loss_of_all_planes():
    net = net_with(loaded(SPRAY_ROW), ev_selection="spray", planes=2, uplinks=2)
    flow = net.join()
    data = pattern(1 << 20)
    flow.write(data)
    net.run(within=2 * T, must=False)
    net.cut()
    net.run(within=20 * T, must=False)
    net.heal()
    net.run(lambda: net.completed(), within=300 * T)
    assert flow.region()[: len(data)] == data


def test_an_ev_that_returns_after_a_marked_probe_is_good_for_a_selection_without_skip():
    net = net_with(loaded(SPRAY_ROW), ev_selection="spray")
    net.mark_probes = True
    net.hosts[0].deny(1, [(0, 0)])
    net.hosts[0].allow(1, [(0, 0)], net.now)
    net.run(lambda: net.counters()["evs_restored"], within=100 * T)
    assert net.events_of(EvChanged)[-1].new.value == "GOOD"


def test_both_seams_at_once():
    net = net_with(loaded(RATE_ROW, SPRAY_ROW), congestion_control="fixed-rate", ev_selection="spray")
    net.worsen(loss=0.01)
    transfer(net, net.join(), pattern(300_000))


# --- the rules ---


def test_the_lists_of_methods_are_those_of_the_protocols():
    for protocol, methods in ((CongestionControl, CONTROL_METHODS), (EvSelection, SELECTION_METHODS)):
        assert {name for name, _ in inspect.getmembers(protocol, inspect.isfunction) if name[0] != "_"} == set(methods)


CHEATS = {
    "return self.evs.paths[0] if self.turn else self.gone": "the EV of plane 0, uplink 0 (DENIED), which may not carry",
    "return 'plane 0'": "take() returned 'plane 0', which may not carry data",
    "return next(path for path in self.evs.paths if path.plane != self.turn)": "but turn was 0",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_no_packet_follows_an_answer_against_the_rules(tmp_path, cheat):
    source = SPRAY_BASE + (
        "class Mine(EvSelection):\n"
        "    def __init__(self, evs):\n        self.evs, self.turn, self.gone = evs, 0, None\n"
        "    def leave(self, path):\n        self.gone = path\n"
        f"    def take(self, avoid=None):\n        {cheat}\n"
    )
    plugins = loaded(row_of(tmp_path, source, "ev_selection"))
    net = net_with(plugins, ev_selection="mine")
    net.hosts[0].deny(1, [(0, 0)])
    net.join().write(pattern(9000))
    with pytest.raises(PluginError, match="plugin mine: ") as found:
        net.run(lambda: net.completed())
    assert CHEATS[cheat] in str(found.value)
    assert net.counters()["data_sent"] == net.counters()["data_on_bad_ev"] == 0
    assert plugins.reason(found.value) == str(found.value)


@pytest.mark.parametrize("turn", ["NO_PLANE", "1", "7", "None"])
def test_a_turn_on_a_plane_that_cannot_be_used_is_refused(tmp_path, turn):
    source = SPRAY_BASE + (
        "class Mine(EvSelection):\n    turn = 0\n    def __init__(self, evs):\n        pass\n"
        f"    def close(self, plane):\n        self.turn = {turn}\n"
    )
    net = net_with(loaded(row_of(tmp_path, source, "ev_selection")), ev_selection="mine")
    flow = net.join()
    net.port_down(0, 1)
    flow.write(pattern(9000))
    with pytest.raises(PluginError, match="has no EV that may carry data"):
        net.run(lambda: net.completed())


@pytest.mark.parametrize(
    ("kind", "source", "mistake"),
    [
        ("congestion_control", "def Mine(timing):\n    return 7", "lacks begin(), on_sack(), on_trim(), on_loss()"),
        ("ev_selection", "def Mine(evs):\n    return 7", "lacks take(), changed()"),
        ("ev_selection", SPRAY_BASE + "class Mine(EvSelection):\n    def __init__(self, evs): pass", "turn must be"),
    ],
)
def test_a_plugin_that_is_not_whole_is_refused_before_the_first_packet(tmp_path, kind, source, mistake):
    plugins = loaded(row_of(tmp_path, source, kind))
    with pytest.raises(PluginError) as found:
        net_with(plugins, **{kind: "mine"}).join()
    assert str(found.value).startswith("plugin mine: ")
    assert mistake in str(found.value)


@pytest.mark.parametrize("setting", ["congestion_control", "ev_selection"])
def test_an_unknown_name_is_refused(setting):
    with pytest.raises(UnknownChoiceError, match=f"{setting} must be one of .*, not 'x'"):
        Net(**{setting: "x"})


# --- errors inside ---


@pytest.mark.parametrize("method", ["begin", "on_sack", "on_loss"])
def test_an_error_inside_a_plugin_ends_the_run_and_names_file_line_and_plugin(tmp_path, method):
    source = (EXAMPLES / "my_cc.py").read_text()
    line = len(source.splitlines()) + 3
    source += f"class Mine(FixedRate):\n    def {method}(self, *_):\n        1 / 0\n"
    plugins = loaded(row_of(tmp_path, source, "congestion_control"))
    net = net_with(plugins, congestion_control="mine")
    net.worsen(loss=0.2)
    with pytest.raises(ZeroDivisionError) as found:
        transfer(net, net.join(), pattern(300_000))
    assert plugins.reason(found.value) == f"plugin mine.py:{line}: ZeroDivisionError: division by zero (mine)"


def test_an_error_that_became_another_on_its_way_is_still_the_plugins(tmp_path):
    row = row_of(tmp_path, "def Mine(timing):\n    raise StopIteration('no')", "congestion_control")
    plugins = loaded(row)

    def program():
        net_with(plugins, congestion_control="mine").join()
        yield

    with pytest.raises(RuntimeError) as found:
        next(program())
    assert plugins.reason(found.value) == "plugin mine.py:2: StopIteration: no (mine)"


def test_an_error_of_the_core_names_the_plugins_in_use():
    error = TypeError("a\nb")
    assert LoadedPlugins().reason(error) == "TypeError: a b"
    assert loaded(RATE_ROW).reason(error) == "TypeError: a b (plugins in use: fixed-rate)"
    assert loaded(RATE_ROW).blame(error) is None


# --- loading ---


def test_a_module_of_an_installed_package_can_be_a_plugin():
    row = {
        "name": "other",
        "kind": "congestion_control",
        "module": "mrc_testbed.hosts.mrc.cc.fixed",
        "attribute": "FixedWindow",
    }
    net = net_with(loaded(row), congestion_control="other")
    transfer(net, net.join(), pattern(100_000))


def test_what_is_hashed_is_what_is_run():
    content = (EXAMPLES / "my_cc.py").read_bytes()
    loaded(RATE_ROW | {"sha256": hashlib.sha256(content).hexdigest()})


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ({"kind": "colour"}, "kind must be one of congestion_control, ev_selection, transport, not 'colour'"),
        ({"name": "nscc"}, "plugin nscc: there is already a congestion_control of this name"),
        ({"name": None}, "name must be a string, not None"),
        ({"module": "x"}, "plugin fixed-rate: give either a file or a module"),
        ({"file": "my_cc.py"}, "plugin fixed-rate: my_cc.py must be an absolute path"),
        ({"file": "/nowhere/x.py"}, "plugin fixed-rate: cannot load /nowhere/x.py: FileNotFoundError: "),
        ({"file": "/nowhere/x.txt"}, "plugin fixed-rate: cannot load /nowhere/x.txt: ImportError: not a Python file"),
        ({"sha256": "0" * 64}, "my_cc.py: ImportError: it has changed since it was checked"),
        ({"attribute": "Nobody"}, "my_cc.py has no class Nobody"),
        ({"keys": {"share": 7}}, "its Keys refuse {'share': 7}: ValueError: share must be more than 0 and at most 1"),
        ({"keys": {"shares": 0.5}}, "its Keys refuse {'shares': 0.5}: TypeError: "),
        ({"attribute": "PLUGIN"}, "my_cc.py has no class PLUGIN"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_a_reason(change, mistake):
    with pytest.raises(CommandError) as found:
        loaded(RATE_ROW | change)
    assert mistake in str(found.value)


@pytest.mark.parametrize(
    ("source", "mistake"),
    [
        ("\n1 / 0\n", "mine.py:2: ZeroDivisionError"),
        ("class", "SyntaxError"),
        ("raise SystemExit(0)", "mine.py:1: Sys"),
    ],
)
def test_a_file_that_fails_while_it_is_read_is_refused_with_its_line(tmp_path, source, mistake):
    with pytest.raises(CommandError) as found:
        loaded(row_of(tmp_path, source, "ev_selection"))
    assert str(found.value).startswith("plugin mine: cannot load ")
    assert mistake in str(found.value)
    assert not list(tmp_path.glob("__pycache__"))


def test_two_plugins_may_share_a_file(tmp_path):
    row = row_of(tmp_path, (EXAMPLES / "my_cc.py").read_text(), "congestion_control", "FixedRate")
    plugins = loaded(row, json.loads(json.dumps(row)) | {"name": "twin"})
    assert set(plugins.plugins.congestion_control) == {"mine", "twin"}
    with pytest.raises(CommandError, match="already"):
        plugins.load([row])
