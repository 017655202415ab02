"""A lab's commands in network namespaces, as containerlab would run them in its containers: every host reaches every
other one over each path, with switches of Linux's routes and with FRR's daemons."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mrc_testbed.testbed.export.lab.lab import Lab, LabTool
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos import usid
from mrc_testbed.topos.plan import Plan
from tests.emu.conftest import isolated
from tests.labs import lab, scenario_of

FRR = Path("/usr/lib/frr")
START_FRR = """
for parent in /var/run /var/tmp; do
    mount -t tmpfs -o mode=0755 tmpfs $(realpath $parent) && mkdir $parent/frr && chown frr:frr $parent/frr || exit 1
done
/usr/lib/frr/zebra -P 0 --log file:/var/run/frr/log &
until [ -S /var/run/frr/zserv.api ]; do sleep 0.05; done
/usr/lib/frr/staticd -P 0 &
until vtysh -c 'show version' 2>/dev/null | grep -q FRR; do sleep 0.05; done
vtysh -f {config}
wait
"""
WAIT_S = 60.0
PING = ("ping", "-6", "-c", "1", "-W", "2")


def topology_of(made: Lab) -> dict[str, Any]:
    (text,) = [text for name, text in made.files.items() if name.endswith(".clab.yml")]
    found: dict[str, Any] = YAML(typ="safe").load(text)["topology"]
    return found


class Containers:
    """Namespaces in place of a lab's containers: `exec` commands run there, with the files they see."""

    def __init__(self, made: Lab, folder: Path, sid_device: str) -> None:
        self._folder = folder
        self.topology = topology_of(made)
        self.pids: dict[str, int] = {}
        for name, text in made.files.items():
            # A machine may lack the dummy device; the kind of the uSID routes' device changes nothing else.
            (folder / name).write_text(text.replace("type dummy", f"type {sid_device}"))
        self._sid_device = sid_device

    @contextmanager
    def running(self) -> Iterator[None]:
        """Their processes end with this."""
        with ExitStack() as stack:
            for node in self.topology["nodes"]:
                holder = subprocess.Popen(
                    ["unshare", "--net", "--mount", "sh", "-c", "echo up; exec sleep 600"], stdout=subprocess.PIPE
                )
                stack.callback(holder.wait)
                stack.callback(holder.kill)
                assert holder.stdout is not None
                assert holder.stdout.readline() == b"up\n"
                self.pids[node] = holder.pid
            self._link()
            yield

    def _link(self) -> None:
        for link in self.topology["links"]:
            (near, near_port), (far, far_port) = (end.split(":") for end in link["endpoints"])
            ends = f"netns {self.pids[near]} type veth peer name {far_port} netns {self.pids[far]} mtu {link['mtu']}"
            command = f"ip link add name {near_port} mtu {link['mtu']} {ends}"
            subprocess.run(command.split(), check=True)

    def inside(self, node: str, *command: str) -> subprocess.CompletedProcess[str]:
        """A command in the namespaces of a node."""
        return subprocess.run([*self.entry(node), *command], capture_output=True, text=True, check=False)

    def entry(self, node: str) -> list[str]:
        """What enters them."""
        held = f"/proc/{self.pids[node]}/ns"
        return ["nsenter", f"--net={held}/net", f"--mount={held}/mnt"]

    def execute(self) -> None:
        """Every `exec` command of every node."""
        for node, row in self.topology["nodes"].items():
            seen = {bind.split(":")[1]: str(self._folder / bind.split(":")[0]) for bind in row["binds"]}
            for line in row["exec"]:
                words = [seen.get(word, word) for word in line.replace("dummy", self._sid_device).split()]
                done = self.inside(node, *words)
                assert done.returncode == 0, f"{node}: {line}: {done.stderr}"


def addresses(plan: Plan) -> Iterator[tuple[str, str]]:
    """A host, and the address of each path to each other one."""
    for source in plan.hosts:
        for target in plan.hosts:
            yield from ((source.name, path.inner) for path in plan.paths(source, target))


def unreached(containers: Containers, plan: Plan) -> list[tuple[str, str]]:
    """Those that answer no ping within a minute: addresses of new ports count after a second (RFC 4862, 5.4)."""
    left, deadline = list(addresses(plan)), time.monotonic() + WAIT_S
    while left and time.monotonic() < deadline:
        left = [(host, to) for host, to in left if containers.inside(host, *PING, to).returncode != 0]
    return left


def counted(containers: Containers, plan: Plan) -> Mapping[str, int]:
    """Packets that each switch's own uSID has shifted on."""
    found = {}
    for switch in plan.switches:
        line = containers.inside(switch.name, "ip", "-6", "-s", "route", "show", usid.locator(switch.usid)).stdout
        found[switch.name] = int(line.split("packets ")[1].split()[0])
    return found


def test_every_path_of_a_lab_of_linux_carries_a_ping(tmp_path: Path, options: FabricOptions) -> None:
    plan = scenario_of().plan(prompt=True)
    containers = Containers(lab(LabTool.CONTAINERLAB), tmp_path, options.sid_device)

    def body() -> None:
        with containers.running():
            containers.execute()
            assert unreached(containers, plan) == []
            assert min(counted(containers, plan).values()) >= len(plan.hosts)

    isolated(body)


@pytest.mark.skipif(not (FRR / "staticd").exists(), reason="FRR is not installed")
def test_every_path_of_a_lab_of_frr_carries_a_ping(tmp_path: Path, options: FabricOptions) -> None:
    """The installed FRR may know no static SIDs (before 10.4): then iproute2 writes the switch's own one."""
    plan = scenario_of().plan(prompt=True)
    containers = Containers(lab(LabTool.FRR), tmp_path, options.sid_device)

    def body() -> None:
        with containers.running(), ExitStack() as stack:
            containers.execute()
            for switch in plan.switches:
                script = START_FRR.replace("{config}", str(tmp_path / f"{switch.name}.frr.conf"))
                daemons = subprocess.Popen(
                    [*containers.entry(switch.name), "bash", "-c", script],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                stack.callback(daemons.wait)
                stack.callback(daemons.kill)
            for switch in plan.switches:
                await_routes(containers, plan, switch.name)
                own_sid(containers, usid.locator(switch.usid), switch.name)
            assert unreached(containers, plan) == []

    isolated(body)


def await_routes(containers: Containers, plan: Plan, switch: str) -> None:
    """Until the kernel has a static route a port, or for a minute."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        routes = containers.inside(switch, "ip", "-6", "route", "show").stdout
        if routes.count(" via fd00:2::") + routes.count("nexthop via") >= len(plan.ports[switch]):
            return
        time.sleep(0.2)
    pytest.fail(f"{switch}: FRR wrote no routes in {WAIT_S:g} s: {routes}")


def own_sid(containers: Containers, locator: str, switch: str) -> None:
    """As FRR's `static-sids` would have it, where the version here knows none."""
    if "seg6local" in containers.inside(switch, "ip", "-6", "route", "show", locator).stdout:
        return
    action = "encap seg6local action End flavors next-csid lblen 32 nflen 16 dev sr0"
    done = containers.inside(switch, "ip", "-6", "route", "add", locator, *action.split())
    assert done.returncode == 0, done.stderr
