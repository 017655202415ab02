"""A scenario's fabric as a folder for containerlab: the topology, one file a node, and what a lab lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.export.lab import frr, linux, sonic
from mrc_testbed.testbed.export.lab.topology import LabNode, topology_text
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.switching.classes import TrimRules
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import Routing

_BATCH, _SHAPE, _FRR, _SONIC = "/fabric.ip", "/fabric.tc", "/etc/frr/frr.conf", "/etc/sonic/fabric.json"
_IMAGE = "nicolaka/netshoot:v0.13"
"""Has iproute2 that knows `next-csid` (from 6.1 on)."""


class LabTool(StrEnum):
    """What the switches of a lab are."""

    CONTAINERLAB = "containerlab"
    """Linux, with the kernel's routes."""
    FRR = "frr"
    """Linux, with FRR's daemons."""
    SONIC = "sonic"
    """SONiC's virtual switch."""


@dataclass(frozen=True, slots=True)
class Lab:
    """`files`: name in the folder -> text. `lost`: what of the scenario is not in them, a sentence each."""

    files: Mapping[str, str]
    lost: tuple[str, ...]


_IMAGES = {
    LabTool.CONTAINERLAB: _IMAGE,
    LabTool.FRR: "quay.io/frrouting/frr:10.4.1",
    LabTool.SONIC: "docker-sonic-vs:latest",
}
_LOST = (
    "The endpoints: no MRC runs in the lab. Hosts have the kernel's SRv6 routes, one address a path.",
    "Workload, faults and expectations.",
)
_OWN_SWITCHES = "Trimming, ECN marks and virtual queues of switch ports: a port drops at its tail."
_LOST_BY = {
    LabTool.CONTAINERLAB: (_OWN_SWITCHES,),
    LabTool.FRR: (_OWN_SWITCHES, "MAC addresses: neighbours are found in the /127 of their link."),
    LabTool.SONIC: (
        "Thresholds of queues, ECN marks and buffer profiles; SWITCH_TRIMMING alone says how to trim.",
        "MAC addresses: neighbours are found in the /127 of their link.",
        "Lanes and speeds of ports, which are the image's.",
    ),
}


def lab_of(scenario: Scenario, tool: LabTool, shaped: bool = False, image: str = "") -> Lab:
    """The folder. `shaped`: ports of Linux have the scenario's rate, and hosts its T. `image`: of the switches.

    Raises UsageError for a fabric whose switches learn their routes: only written tables are exported.
    """
    if scenario.routing is Routing.BGP:
        raise UsageError(f"--to {tool}: {scenario.name} has routing: bgp; only tables that are written are exported")
    plan = scenario.plan(prompt=True)
    wanted = _Wanted(plan, scenario.trimming.rules(), shaped, image or _IMAGES[tool])
    lines = linux.linux_lines if tool is LabTool.CONTAINERLAB else linux.addressed_lines
    made = {host.name: _linux_node(replace(wanted, image=_IMAGE), host.name, lines) for host in plan.hosts}
    made |= {switch.name: _SWITCHES[tool](wanted, switch.name) for switch in plan.switches}
    lost = (*_LOST, *_LOST_BY[tool], *_not_shaped(tool, shaped))
    nodes = {name: node for name, (node, _) in made.items()}
    text = topology_text(scenario.name, plan, nodes, _notes(scenario, tool, lost))
    files = {f"{scenario.name}.clab.yml": text}
    for _, seen in made.values():
        files |= seen
    return Lab(files, lost)


def _not_shaped(tool: LabTool, shaped: bool) -> tuple[str, ...]:
    if not shaped:
        return ("Rates of ports and T: links are as fast as the machine (--shape has them by HTB and netem).",)
    return ("Rates of switch ports: those of SONiC are as fast as the machine.",) if tool is LabTool.SONIC else ()


def _notes(scenario: Scenario, tool: LabTool, lost: tuple[str, ...]) -> Iterator[str]:
    yield f"The fabric of the scenario {scenario.name}, by `mrc-testbed export --to {tool}`. Start it in this folder:"
    yield f"    sudo containerlab deploy -t {scenario.name}.clab.yml"
    yield "Not in it:"
    yield from (f"  - {each}" for each in lost)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the nodes of a lab are made of."""

    plan: Plan
    trimming: TrimRules
    shaped: bool
    image: str


_Made = tuple[LabNode, dict[str, str]]
"""A node, and the files that it sees."""


def _linux_node(wanted: _Wanted, node: str, lines: Callable[[Plan, str], Iterator[str]]) -> _Made:
    files = {f"{node}.ip": _text(lines(wanted.plan, node))}
    execs = (*linux.SYSCTLS, f"ip -6 -batch {_BATCH}")
    return _shaped(wanted, node, LabNode("linux", wanted.image, {f"{node}.ip": _BATCH}, execs), files)


def _linux_switch(wanted: _Wanted, switch: str) -> _Made:
    return _linux_node(wanted, switch, linux.linux_lines)


def _frr_switch(wanted: _Wanted, switch: str) -> _Made:
    """FRR puts uSIDs on the device sr0."""
    files = {f"{switch}.frr.conf": frr.frr_text(wanted.plan, switch), "daemons": frr.DAEMONS}
    binds = {f"{switch}.frr.conf": _FRR, "daemons": "/etc/frr/daemons"}
    device = ("ip link add name sr0 type dummy", "ip link set dev sr0 up") if wanted.plan.by_usid else ()
    return _shaped(wanted, switch, LabNode("linux", wanted.image, binds, (*linux.SYSCTLS, *device)), files)


def _shaped(wanted: _Wanted, node: str, row: LabNode, files: dict[str, str]) -> _Made:
    if not wanted.shaped:
        return row, files
    files = {**files, f"{node}.tc": _text(linux.shaping_lines(wanted.plan, node))}
    return replace(row, binds={**row.binds, f"{node}.tc": _SHAPE}, exec=(*row.exec, f"tc -batch {_SHAPE}")), files


def _sonic_switch(wanted: _Wanted, switch: str) -> _Made:
    files = {f"{switch}.json": sonic.sonic_text(wanted.plan, switch, wanted.trimming)}
    ports = {own: f"eth{number}" for number, own in enumerate(sonic.port_names(wanted.plan, switch), 1)}
    load = (f"config load -y {_SONIC}",)
    return LabNode("sonic-vs", wanted.image, {f"{switch}.json": _SONIC}, load, ports), files


def _text(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


_SWITCHES: dict[LabTool, Callable[[_Wanted, str], _Made]] = {
    LabTool.CONTAINERLAB: _linux_switch,
    LabTool.FRR: _frr_switch,
    LabTool.SONIC: _sonic_switch,
}
