"""Switches that answer: their addresses and routes, and what ping and trace find of whole and broken paths."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.batch import IP, run_batch
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.prober import KernelProber
from mrc_testbed.testbed.oam.commands import carry_out, read
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.topos import usid
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape
from tests.emu.conftest import QUICK, isolated
from tests.emu.runs import COMMAND, Run

FAMILIES = {
    "clos2": QUICK,
    "clos3": Shape(1, Clos3(2, 2, 2, 2, 1), 25_000_000, 20_000_000),
    "rail": Shape(1, Rail(2, 2, 2), 25_000_000, 20_000_000),
}


def answering(shape: Shape, options: FabricOptions) -> Fabric:
    fabric = Fabric.build(build_plan(shape).answering(), options)
    fabric.verify()
    return fabric


@pytest.mark.parametrize("word", FAMILIES)
@pytest.mark.nightly(keep=1)
def test_switches_have_their_addresses_and_faults_heal_them(word: str, options: FabricOptions) -> None:
    def body() -> None:
        fabric = answering(FAMILIES[word], options)
        plan = fabric.plan
        t0, t1 = plan.switches[0], next(switch for switch in plan.switches if switch.tier == 1)
        asked = f"ping -c1 -W2 -q {usid.switch_address(t0.usid)}"
        assert ", 0% packet loss" in fabric.node(plan.hosts[0].name).cmd(asked)
        link = plan.link_between(t0.name, t1.name)
        fabric.prepare_faults(plan.switch_by_name)
        fabric.ports_down([link.far])
        fabric.verify()
        fabric.ports_up([link.far])
        fabric.verify()
        for switch in (t0, t1):
            assert fabric.switch_off(switch.name) == 0
            fabric.verify()
            fabric.switch_on(switch.name, [own for own, _ in plan.ports[switch.name]])
            fabric.verify()

    isolated(body)


def test_a_missing_address_or_way_back_is_drift(options: FabricOptions) -> None:
    def body() -> None:
        fabric = answering(QUICK, options)
        run_batch(IP, "p0-t1-0", fabric.pids["p0-t1-0"], ["addr del fcbb:bb00:2000::/128 dev lo"])
        with pytest.raises(FabricError, match="p0-t1-0 lacks address fcbb:bb00:2000::"):
            fabric.verify(["p0-t1-0"])
        run_batch(IP, "p1-t0-0", fabric.pids["p1-t0-0"], ["route del fd00::1:0:0:0/80 dev down0"])
        with pytest.raises(FabricError, match="p1-t0-0 lacks route via fd00::1:0:0:0/80 down0"):
            fabric.verify(["p1-t0-0"])

    isolated(body)


def asked(fabric: Fabric, line: str) -> tuple[int, list[str]]:
    plan, words, lines = fabric.plan, line.split(), list[str]()
    with contextlib.closing(KernelProber(plan, plan.host_by_name[words[0]], fabric.pids[words[0]])) as prober:
        return carry_out(read(plan, words), prober, plan, lines.append), lines


def nodes_of(lines: list[str]) -> list[str]:
    return [line.split()[1] for line in lines[1:] if line[0].isdigit() and " *" not in line]


@pytest.mark.parametrize("word", FAMILIES)
def test_every_path_is_traced_through_its_switches_and_every_switch_answers(word: str, options: FabricOptions) -> None:
    def body() -> None:
        fabric = answering(FAMILIES[word], options)
        plan = fabric.plan
        first, last = plan.hosts[0], plan.hosts[-1]
        for path in plan.paths(first, last):
            status, lines = asked(fabric, f"h0 trace {last.name} p{path.id.plane}/u{path.id.uplink}")
            passed = plan.switches_on_path(first, last, path.id)
            assert (status, nodes_of(lines)) == (0, [*passed, last.name]), lines
            assert [line.rpartition(" ")[2] for line in lines[1:-1]] == [*passed[1:], last.name], "what comes next"
        for switch in plan.switches:
            status, lines = asked(fabric, f"h0 ping {switch.name}")
            assert (status, " 3 of 3 " in lines[0]) == (0, True), lines

    isolated(body)


@pytest.mark.nightly
def test_a_path_that_is_broken_shows_where_it_ends(options: FabricOptions) -> None:
    if not options.port_program:
        pytest.skip("a silent switch and a lossy link are rules of the port program")

    def body() -> None:
        fabric = answering(clos2_shape(1, 2, 3, 1, 25_000_000, 20_000_000), options)
        plan, trace = fabric.plan, "h0 trace h1 p0/u1"
        entry, other = plan.port_toward("p0-t0-0", "p0-t1-1"), plan.port_toward("p0-t0-0", "p0-t1-2")
        fabric.mislead("p0-t0-0", {entry: None})
        assert asked(fabric, trace)[1][-1] == "ends at p0-t0-0, which has no entry for p0-t1-1"
        fabric.verify()
        fabric.mislead("p0-t0-0", {entry: other})
        status, lines = asked(fabric, trace)
        assert (status, lines[-1]) == (
            1,
            "ends at p0-t1-2, which is not on the path: p0-t0-0 sends there what is for p0-t1-1",
        )
        fabric.verify()
        fabric.mislead("p0-t0-0", {})
        rules = fabric.silence("p0-t1-1")
        status, lines = asked(fabric, trace)
        assert (status, lines[-1]) == (
            1,
            "ends behind p0-t0-0: the link p0-t0-0:p0-t1-1 or p0-t1-1 says nothing",
        )
        assert asked(fabric, "h0 trace h1 p0/u2")[0] == 0
        for rule in rules:
            fabric.remove_rule(rule)
        fabric.add_rule("p0-t0-1:p0-t1-1", "near", PortRule("drop", 0.5))
        status, lines = asked(fabric, f"{trace} -c 60")
        assert (status, "there or back" in lines[-1]) == (0, True), lines
        assert asked(fabric, "h0 trace h1 p0/u0 -c 60")[1][-1].split()[1] == "h1", "another path loses nothing"

    isolated(body)


def test_an_unknown_switch_on_the_list_is_dropped_and_never_routed(options: FabricOptions) -> None:
    def body() -> None:
        fabric = answering(QUICK, options)
        before = {(node, port): tx for node, port, _, _, _, _, tx, _ in fabric.sample_ports()}
        ping = fabric.node("h0").cmd("ping -c3 -i0.01 -W1 fcbb:bb00:1000:2009:1001:d000::")
        assert "100% packet loss" in ping
        heard = fabric.node("h0").cmd("cat /proc/net/snmp6")
        assert "Icmp6InDestUnreachs 3" in " ".join(heard.split()), "its T0 says so"
        sent = {(node, port): tx - before[node, port] for node, port, _, _, _, _, tx, _ in fabric.sample_ports()}
        grown = {place for place, packets in sent.items() if packets >= 3}
        assert grown <= {("h0", "port0"), ("p0-t0-0", "down0")}, grown

    isolated(body)


TRACED = """
name: traced
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 20ms, switch: SWITCH}
workload:
  - train: {hosts: all, steps: 60, compute: 20ms, allreduce: 256KiB}
expect:
  - qp_errors == 0
"""


@pytest.mark.parametrize("switch", ["auto", "plain"])
@pytest.mark.nightly
def test_questions_in_a_run_are_in_its_books(tmp_path: Path, switch: str) -> None:
    run = Run(tmp_path / uuid4().hex, scenario=TRACED.replace("SWITCH", switch))
    run.wait_until_step(2)
    commands = ["h0 trace h1 p1/u1", "h0 ping -c 50 p0-t1-1", "h1 trace h0"]
    ran = subprocess.run(
        [*COMMAND, "attach", str(run.folder), *(word for command in commands for word in ("-c", command))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\n4  h1  " in ran.stdout
    run.finish()
    run.assert_passed_or_machine_was_busy()
    figures = {one["name"]: one["observed"] for one in run.verdict["fidelity"]["figures"]}
    assert figures["unexplained packets"] == 0, figures
