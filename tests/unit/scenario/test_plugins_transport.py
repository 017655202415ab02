"""A transport from a plugin: a value with facts, with an endpoint of ours or one of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mrc_testbed.api import load_run
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.errors import ExitCode, ScenarioError
from mrc_testbed.testbed.scenario import load_recorded, load_scenario
from mrc_testbed.topos.routes import Routing

ROOT = Path(__file__).parents[3]
FOLDED = (ROOT / "docs/examples/mrc_folded.py").read_text(encoding="utf-8")
OWN = """
from dataclasses import replace

from mrc_testbed.api import TRANSPORTS


def two_evs(request, plugins, wiring):
    from mrc_testbed.hosts.mrc.transport import mrc_hashed

    for row in request.rows("peers"):
        row["evs"] = [ev for ev in row["evs"] if ev[1] < 2]
    return mrc_hashed(request, plugins, wiring)


TWO = replace(TRANSPORTS["mrc-hashed"], word="two-evs", protocol="two-evs", endpoint="two_evs")
PLUGIN = {"transport": {"two-evs": TWO}}
"""
HASTY = (
    OWN.replace("two-evs", "hasty").replace("two_evs", "hasty")
    + """

class Without:
    def __init__(self, wiring):
        self._wiring = wiring

    def __getattr__(self, name):
        return getattr(self._wiring, name)

    def receiver(self, hosts, *_):
        return self._wiring.receiver(hosts, 0, False)


def hasty(request, plugins, wiring):
    from mrc_testbed.hosts.mrc.transport import mrc_hashed

    network = mrc_hashed(request, plugins, Without(wiring))
    network.delay_ns, network.stamped, network.speed, network.swift = 0, False, 1, 1
    return network
"""
)
OWN_PACKETS = """
from dataclasses import replace

from mrc_testbed.api import TRANSPORTS, DataPackets


class OtherOpcodes:
    def __init__(self, endpoint):
        self.endpoint = endpoint

    def __getattr__(self, name):
        return getattr(self.endpoint, name)

    def poll_transmit(self, now_ns, buffer):
        packet = self.endpoint.poll_transmit(now_ns, buffer)
        if packet:
            buffer[0] ^= 0x40
        return packet

    def handle_datagram(self, view, *rest):
        own = bytearray(view)
        own[0] ^= 0x40
        self.endpoint.handle_datagram(memoryview(own), *rest)


def other_opcodes(request, plugins, wiring):
    from mrc_testbed.hosts.rc.transport import roce

    network = roce(request, plugins, wiring)
    network.endpoint = OtherOpcodes(network.endpoint)
    return network


OTHER = replace(TRANSPORTS["roce"], word="other", protocol="other", endpoint="other_opcodes", data=DATA)
PLUGIN = {"transport": {"other": OTHER}}
"""
SCENARIO = """
name: s
plugins: [mine.py]
transport: {transport}
world: virtual
fabric: {{planes: 2, t0_groups: 2, t1: 4, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 40ms}}
workload: [{{sendrecv: {{size: 64KiB, iterations: 3}}}}]
expect: [bytes_wrong == 0]
"""


def written(folder: Path, source: str, transport: str) -> Path:
    (folder / "mine.py").write_text(source, encoding="utf-8")
    (folder / "s.yaml").write_text(SCENARIO.format(transport=transport), encoding="utf-8")
    return folder / "s.yaml"


def mistakes(file: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file)
    return " ".join(problem.message for problem in caught.value.problems)


def test_facts_of_ours_may_be_changed(tmp_path: Path) -> None:
    scenario = load_scenario(written(tmp_path, FOLDED, "mrc-folded"))
    assert (scenario.transport, scenario.routing, scenario.shape().planes) == ("mrc-folded", Routing.SRV6, 1)
    outcome = run_scenario(scenario, tmp_path / "out", quiet=True)
    assert outcome.exit_code is ExitCode.PASS
    assert outcome.folder is not None
    again = load_recorded(outcome.folder)
    assert again.transport == "mrc-folded"


def test_it_may_bring_its_own_endpoint_which_hosts_load(tmp_path: Path) -> None:
    outcome = run_scenario(load_scenario(written(tmp_path, OWN, "two-evs")), tmp_path / "out", quiet=True)
    assert outcome.exit_code is ExitCode.PASS, outcome.error
    assert outcome.folder is not None
    paths = load_run(outcome.folder).paths
    used = set(paths[paths["packets"] > 0][["plane", "uplink"]].itertuples(index=False, name=None))
    assert used == {(plane, ev) for plane in range(2) for ev in range(2)}


def test_no_endpoint_can_leave_out_the_delay_of_the_world(tmp_path: Path) -> None:
    """Its packets arrived when they had left the last link, 0.5 ms after a round trip of 40 had begun: a pass."""
    outcome = run_scenario(load_scenario(written(tmp_path, HASTY, "hasty")), tmp_path / "out", quiet=True)
    assert outcome.exit_code is ExitCode.PASS, outcome.error
    assert outcome.base_rtt_ns == pytest.approx(40_000_000, rel=0.05)


def summary(folder: Path, data: str, exit_code: ExitCode) -> str:
    """Of a run whose transport says this of its data, as one line."""
    scenario = load_scenario(written(folder, OWN_PACKETS.replace("DATA)", f"{data})"), "other"))
    outcome = run_scenario(scenario, folder / "out", quiet=True)
    assert outcome.folder is not None, outcome.error
    text = " ".join((outcome.folder / "summary.txt").read_text(encoding="utf-8").split())
    assert outcome.exit_code is exit_code, text
    return text


@pytest.mark.parametrize(
    "data",
    [
        "DataPackets({0x40 + code: 32 for code in range(12)}, by_opcode=True)",
        "DataPackets(dscps=frozenset({26}))",
        "DataPackets()",
    ],
)
def test_it_says_how_switches_know_its_data(tmp_path: Path, data: str) -> None:
    text = summary(tmp_path, data, ExitCode.PASS)
    assert re.search(r" packets ([1-9]\d*) data sent: \1 arrived whole, 0 dropped ", text), text
    assert re.search(r" control ([1-9]\d*) sent: \1 arrived, 0 dropped ", text), text


@pytest.mark.parametrize("data", ['TRANSPORTS["roce"].data', "DataPackets({0x11: 12}, by_opcode=True)"])
def test_data_that_switches_take_for_control_are_no_pass(tmp_path: Path, data: str) -> None:
    text = summary(tmp_path, data, ExitCode.INCONCLUSIVE)
    assert re.search(r"NIC of h0: (\d+) data packets lost; NIC of h0: \1 high class packets too many", text), text
    assert re.search(r" packets not known: the books do not balance: NIC of h0: \d+ data packets lost ", text), text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('word="mrc-folded"', 'word="other"', "mine.py: transport 'mrc-folded' is called 'other' by its Transport"),
        (
            "    layout=",
            "    protocol='none',\n    layout=",
            "has the protocol 'none'; write one of mrc, ",
        ),
        ("    layout=", "    endpoint='none',\n    layout=", "there is no function none"),
        ("    layout=", "    group='none',\n    layout=", "has the settings 'none'; there are endpoint, roce, tcp"),
        ("MRC_FOLDED}", "3}", "must be a mrc_testbed.api.Transport"),
        ('{"mrc-folded": MRC', '{"roce": MRC', "transport 'roce' has the name of a built-in one; choose another"),
    ],
)
def test_one_that_cannot_be_used_is_one_mistake(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in FOLDED
    assert said in mistakes(written(tmp_path, FOLDED.replace(old, new), "mrc-folded"))


def test_an_unknown_one_is_told_with_those_of_the_plugin(tmp_path: Path) -> None:
    said = mistakes(written(tmp_path, FOLDED, "mrc-foldet"))
    assert "mrc-folded" in said
