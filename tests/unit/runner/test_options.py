"""Which switch ports a run gets: what its scenario asks for, out of what the machine has."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from mrc_testbed.testbed.app import run
from mrc_testbed.testbed.errors import ExitCode, MissingCapability
from mrc_testbed.testbed.fabric import capabilities, sandbox
from mrc_testbed.testbed.fabric.capabilities import (
    HASH_SEED,
    KERNEL_DELAY,
    MULTIPATH,
    PATH_ORDER,
    PORT_PROGRAM,
    TCP_RTO_MIN,
    Capability,
)
from mrc_testbed.testbed.fabric.path_order import cpu_mask
from mrc_testbed.testbed.runner import environment
from mrc_testbed.testbed.runner.environment import describe
from mrc_testbed.testbed.runner.options import fabric_options, path_order_warnings, path_order_words, switch_words
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.switching.thresholds import DEFAULT_THRESHOLDS, PortThresholds
from tests.unit.fabric.test_capabilities import ALL
from tests.unit.scenario.test_mistakes import HEAD, LINK

PRESENT = [*ALL, Capability(PORT_PROGRAM, True, False, "no marks", "make setup")]
ABSENT = [*ALL, Capability(PORT_PROGRAM, False, False, "no marks", "make setup", "clang is missing")]
SILENT = "faults: [{at: 1s, switch-silent: p0-t1-1, for: 1s, name: grey}]\n"
SLOW = f"faults: [{{at: 1s, link-rate: '{LINK}', rate: 1mbit, for: 1s}}]\n"


def scenario(switch: str = "auto", faults: str = "") -> Scenario:
    return load_scenario_text(HEAD.replace("planes: 2", f"switch: {switch}, planes: 2") + faults)


@pytest.mark.parametrize(
    ("switch", "found", "ports", "words"),
    [
        ("auto", PRESENT, "port program", "port program (marks, trims)"),
        ("program", PRESENT, "port program", "port program (marks, trims)"),
        ("auto", ABSENT, "plain shaper", "plain shapers: no port program (clang is missing)"),
        ("plain", PRESENT, "plain shaper", "plain shapers (fabric.switch: plain)"),
        ("plain", ABSENT, "plain shaper", "plain shapers (fabric.switch: plain)"),
    ],
)
def test_what_the_scenario_asks_for_out_of_what_there_is(
    switch: str, found: list[Capability], ports: str, words: str
) -> None:
    asked = scenario(switch)
    options = fabric_options(asked, found)
    assert (options.switch_ports, options.thresholds) == (ports, DEFAULT_THRESHOLDS)
    assert switch_words(asked, found, options) == words
    told = describe(found, options)
    assert told["switch_ports"] == ports
    assert ("thresholds_bdp" in told) is (ports == "port program")


def test_a_run_without_root_says_how_small_its_buffers_are_where_proc_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Linux 6.11 net.core.rmem_max is no file in the sandbox's network namespace."""
    really = Path.read_text

    def read_text(path: Path, *args: str | None, **more: str | None) -> str:
        if path.name == "rmem_max":
            raise FileNotFoundError(path)
        return really(path, *args, **more)

    monkeypatch.setattr(environment, "is_rootless", lambda: True)
    monkeypatch.setattr(environment, "RECEIVE_BUFFER_BYTES", 1 << 30)
    monkeypatch.setattr(Path, "read_text", read_text)
    program, buffers = describe(ABSENT, fabric_options(scenario(), ABSENT))["rootless"]
    assert program.startswith("no port program")
    told = re.fullmatch(r"receive buffers of ([\d,]+) KiB \(net.core.rmem_max\) instead of 1,048,576 KiB", buffers)
    assert told
    file = "/proc/sys/net/core/rmem_max"
    if os.path.exists(file):
        with open(file, encoding="ascii") as text:
            assert int(told[1].replace(",", "")) == int(text.read()) >> 10


def test_levels_reach_the_fabric() -> None:
    options = fabric_options(scenario("{ecn: [0.1, 0.3], drop: 2.0}"), PRESENT)
    assert options.thresholds == PortThresholds(0.1, 0.3, 1.0, 1.5, 2.0)
    assert describe(PRESENT, options)["thresholds_bdp"]["ecn_high"] == 0.3


@pytest.mark.parametrize(
    ("switch", "faults", "what"),
    [
        ("auto", SILENT, "fault 'grey' (switch-silent)"),
        ("program", "", "`fabric.switch` as written"),
        ("{trim: 2.0}", "", "`fabric.switch` as written"),
    ],
)
def test_what_cannot_be_had_without_the_port_program_ends_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, switch: str, faults: str, what: str
) -> None:
    monkeypatch.setattr(capabilities, "probe", lambda: ABSENT)
    monkeypatch.setattr(sandbox, "run_isolated", lambda _, **__: pytest.fail("began to build"))
    with pytest.raises(MissingCapability) as refusal:
        run.run_scenario(scenario(switch, faults), tmp_path / "results", quiet=True)
    assert refusal.value.exit_code is ExitCode.MISSING
    assert str(refusal.value) == (f"{what} needs the port program, which is missing: clang is missing. Fix: make setup")
    assert not (tmp_path / "results").exists()


def test_a_slower_link_needs_no_port_program() -> None:
    assert fabric_options(scenario("auto", SLOW), ABSENT).switch_ports == "plain shaper"


def plain(**ecmp: object) -> Scenario:
    told = ", ".join(f"{key}: {value}" for key, value in ecmp.items())
    return load_scenario_text(f"{HEAD}transport: roce\necmp: {{{told}}}\n")


ECMP = [*PRESENT, *(Capability(name, True, False, "", "") for name in (MULTIPATH, HASH_SEED))]


def test_what_a_scenario_says_of_ecmp_reaches_the_fabric() -> None:
    options = fabric_options(plain(hash="independent", repath="true"), ECMP)
    assert (options.ecmp_hash, options.repath, options.hash_seed) == ("independent", True, 3)
    old = [*PRESENT, ECMP[-2], Capability(HASH_SEED, False, False, "", "use Linux 6.11", "no such file")]
    assert fabric_options(plain(), old).hash_seed is None, "the kernel's own will do"
    with pytest.raises(MissingCapability, match=r"^ecmp.hosts: hashed needs hash seed"):
        fabric_options(plain(hosts="hashed"), old)
    with pytest.raises(MissingCapability, match=r"^ecmp.hash: independent needs hash seed .* missing: no such file"):
        fabric_options(plain(hash="independent"), old)


def test_hosts_that_hash_have_switches_hash_the_same_with_a_seed_that_can_be_given() -> None:
    options = fabric_options(plain(hosts="hashed", seed=9), ECMP)
    assert (options.hash_ports, options.hash_seed) == (True, 9)
    assert not fabric_options(plain(), ECMP).hash_ports


def test_switches_that_choose_packet_by_packet_need_the_port_program() -> None:
    assert fabric_options(plain(choose="adaptive"), ECMP).adaptive
    assert not fabric_options(plain(), ECMP).adaptive
    without = [*ABSENT, *ECMP[-2:]]
    with pytest.raises(MissingCapability, match=r"^ecmp.choose: adaptive .* needs the port program.*: make setup"):
        fabric_options(plain(choose="adaptive"), without)


def test_ecmp_without_multipath_routes_is_refused() -> None:
    without = [*PRESENT, Capability(MULTIPATH, False, False, "", "use Linux 6.1", "not supported")]
    with pytest.raises(MissingCapability, match=r"^routing: ecmp-static needs multipath .* missing: not supported"):
        fabric_options(plain(), without)


def test_a_path_keeps_its_order_where_switches_choose_it_and_the_kernel_lets_us() -> None:
    able = [*ECMP, Capability(PATH_ORDER, True, False, "", "")]
    assert fabric_options(plain(), able).path_order
    assert not fabric_options(load_scenario_text(HEAD), able).path_order, "MRC takes any order"
    assert path_order_words(plain(), able)["path_order"].startswith("kept: ")
    assert not list(path_order_warnings(plain(), able))
    assert not path_order_words(load_scenario_text(HEAD), able)


def test_where_a_path_does_not_keep_its_order_the_run_says_so() -> None:
    unable = [*ECMP, Capability(PATH_ORDER, False, False, "", "", "cannot create rps_cpus: Permission denied")]
    assert not fabric_options(plain(), unable).path_order
    assert path_order_words(plain(), unable) == {"path_order": f"not kept: {unable[-1].detail}"}
    (warning,) = path_order_warnings(plain(), unable)
    assert warning == (
        "packets may overtake each other on a path here, which roce may take for loss:"
        " cannot create rps_cpus: Permission denied"
    )


def test_a_set_of_one_cpu_as_the_kernel_reads_it() -> None:
    assert [cpu_mask(cpu) for cpu in (0, 5, 32, 64)] == [
        *("00000001", "00000020", "00000001,00000000"),
        "00000001,00000000,00000000",
    ]


def over_tcp(**tcp: object) -> Scenario:
    told = ", ".join(f"{key}: {value}" for key, value in tcp.items())
    return load_scenario_text(f"{HEAD}transport: tcp\ntcp: {{{told}}}\n")


DELAYED = [*ECMP, Capability(KERNEL_DELAY, True, False, "", "")]


def test_tcp_with_a_delay_of_the_kernel_needs_nothing_else_as_it_is() -> None:
    assert fabric_options(over_tcp(), DELAYED).delay == "nfqueue"


def test_a_retransmission_timeout_that_the_kernel_cannot_have_is_refused() -> None:
    old = [*DELAYED, Capability(TCP_RTO_MIN, False, False, "", "use Linux 6.11 or newer", "no such file")]
    assert fabric_options(over_tcp(rto_min="200ms"), old)
    with pytest.raises(MissingCapability, match=r"^tcp.rto_min needs .* missing: no such file\. Fix: use Linux 6.11"):
        fabric_options(over_tcp(rto_min="5ms"), old)


def test_a_congestion_control_that_the_kernel_lacks_is_refused_with_those_it_has() -> None:
    capabilities.require_congestion_control("cubic")
    with pytest.raises(MissingCapability, match=r"no TCP congestion control nosuch .* Fix: write one of .*cubic.*, or"):
        capabilities.require_congestion_control("nosuch")
