"""MRC without SRv6, in virtual time: its data are trimmed and marked, its EVs retired and taken back."""

from __future__ import annotations

import pytest

from mrc_testbed.api import load_run
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.errors import ExitCode, ScenarioError
from mrc_testbed.testbed.report.frames.run import Run
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.hashed import SCENARIO


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("hashed")
    scenario = load_scenario_text(SCENARIO, overrides=["world=virtual", "capture=[{links: 'h2:*', around: far}]"])
    outcome = run_scenario(scenario, out, quiet=True)
    assert outcome.folder is not None
    assert outcome.exit_code is ExitCode.PASS, outcome.error
    return load_run(outcome.folder)


def test_every_path_table_has_an_ev_for_each_path(run: Run) -> None:
    found = run.paths[(run.paths["host"] == "h0") & (run.paths["peer"] == "h2")]
    assert sorted(found[["plane", "uplink"]].itertuples(index=False, name=None)) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_all_evs_of_the_dead_plane_were_given_up_and_no_other(run: Run) -> None:
    retired = run.events[run.events["new"] == "ASSUMED_BAD"] if "new" in run.events else run.events.iloc[:0]
    assert set(retired["plane"]) <= {0}


def test_captured_packets_are_plain_and_each_ev_is_a_source_port(run: Run) -> None:
    from scapy.utils import PcapNgReader

    ports = set()
    for file in sorted(run.folder.glob("pcap/*.pcapng")):
        with PcapNgReader(str(file)) as reader:
            for packet in reader:
                frame = bytes(packet)
                assert frame[12:14] == b"\x86\xdd"
                assert frame[20] == 17, "UDP stands behind the first IPv6 header"
                ports.add(int.from_bytes(frame[54:56]))
    assert {0xC000, 0xC001, 0xC100, 0xC101} <= ports


def test_a_path_cannot_be_denied_and_srv6_is_refused() -> None:
    with pytest.raises(ScenarioError, match="leaves the path to the switches"):
        load_scenario_text(SCENARIO, overrides=["routing=srv6"])
    with pytest.raises(ScenarioError, match="does not run over bgp; write `routing: ecmp-static`"):
        load_scenario_text(SCENARIO, overrides=["routing=bgp"])
