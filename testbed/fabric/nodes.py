"""The Mininet part: every host and switch is a Mininet Node, so `mininet>` and `node.cmd(...)` work as usual.

Mininet's links, interfaces and clean-up are not used: they log errors and go on, lose routes, or kill by broad names.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
from collections.abc import Iterator, Mapping
from typing import Any

from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.fabric.mininet_parts import Intf, Link, Mininet, Node, log
from mrc_testbed.testbed.fabric.node_shell import NodeShell
from mrc_testbed.testbed.fabric.privileges import refusal
from mrc_testbed.testbed.fabric.processes import Process
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan

SHELL_OF = "mininet:"
"""The last argument of a node's shell is this and the node's name."""


class FabricIntf(Intf):  # type: ignore[misc]
    """An interface that `ip -batch` made; Mininet only needs to know that it exists."""

    def __init__(self, end: Interface, node: Node) -> None:
        self.name, self.node, self.mac = end.name, node, end.mac
        self.ip = self.prefixLen = None
        self.link: Any = None
        self.params: dict[str, Any] = {}
        node.addIntf(self, moveIntfFn=lambda *_: None)


class FabricLink(Link):  # type: ignore[misc]
    """An existing link."""

    def __init__(self, near: FabricIntf, far: FabricIntf) -> None:
        self.intf1, self.intf2 = near, far
        near.link = far.link = self

    def __str__(self) -> str:
        ends = (f"{end.node.name}:{end.name}" for end in (self.intf1, self.intf2))
        return "<->".join(ends)


class _Address:
    """Replaces a host's first interface where Mininet's prompt substitutes `h5` by an address."""

    def __init__(self, address: str) -> None:
        self.address = address

    def updateIP(self) -> str:  # noqa: N802 (Mininet's name)
        return self.address


class FabricNode(Node):  # type: ignore[misc]
    """A namespace with a shell. `address` is None for a switch. The shell is usable after `await_shell`.

    The namespace is a new one, which lasts as long as the shell, or that of process `beside`.

    Mininet starts one shell after the other and has each run `stty`; here all start at once with terminals set by us:
    64 nodes in 0.15 s instead of 0.5 s (benchmarks/bringup.py). And a command of Mininet is over at the first byte 127
    in its output, and hangs where it ends the shell or leaves a quote open.
    """

    def __init__(self, name: str, address: str | None, beside: Process | None = None) -> None:
        self.address = address
        self.typed = False
        self._beside = beside
        super().__init__(name)

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 (Mininet's name)
        """Start the shell in its namespace, without waiting for it."""
        enter = ["mnexec", mnopts or "-cdn"]
        if self._beside is not None:
            enter = ["nsenter", *_namespaces_of(self._beside, self.name), "mnexec", "-cd"]
        self.shell: NodeShell | None = NodeShell(f"{SHELL_OF}{self.name}", enter)
        self.pid = self.shell.process.pid
        self.stdin = self.stdout = self.shell
        self.outToNode[self.shell.fileno()] = self.inToNode[self.shell.fileno()] = self

    def await_shell(self) -> None:
        """Wait until the shell accepts commands. Raises FabricError if it exits or stays silent."""
        self.live_shell.await_start()

    @property
    def live_shell(self) -> NodeShell:
        """The shell. Raises FabricError after `terminate`."""
        if self.shell is None:
            raise FabricError(self.name, "run a command", "its shell is gone")
        return self.shell

    @property
    def waiting(self) -> bool:
        """A command is running."""
        return self.shell is not None and self.shell.waiting

    @waiting.setter
    def waiting(self, value: bool) -> None:
        """Mininet sets what the shell knows by itself."""

    def sendCmd(self, *args: Any, **_: Any) -> None:  # noqa: N802 (Mininet's name)
        """Start a command; where `typed` is set it reads the node's terminal. Raises FabricError without a shell."""
        if self.live_shell.ended:
            raise FabricError(self.name, "run a command", "its shell has ended")
        words = args[0] if len(args) == 1 and isinstance(args[0], list) else args
        self.live_shell.send(" ".join(map(str, words)), self.typed)

    def monitor(self, timeoutms: int | None = None, findPid: bool = True) -> str:  # noqa: N803 (Mininet's name)
        """What the command has printed since the last call."""
        return str(self.live_shell.read(timeoutms))

    def watch(self, poll: select.poll) -> None:
        """Have `poll` return when `monitor` has something to say."""
        self.live_shell.watch(poll)

    def write(self, data: str) -> None:
        """What someone types at the node's terminal."""
        self.live_shell.type(data)

    def sendInt(self, intr: str = "") -> None:  # noqa: N802 (Mininet's name)
        """Ctrl-C for the command that is running."""
        self.live_shell.interrupt()

    def renew_shell(self) -> None:
        """A new shell for one that has ended. Raises FabricError where the namespace went with it."""
        if self._beside is None:
            raise FabricError(self.name, "start a shell", "the last one has ended, and its namespace with it")
        self.cleanup()
        self.startShell()
        self.await_shell()

    def terminate(self) -> None:
        """End the shell and all that runs in it."""
        self.cleanup()

    def cleanup(self) -> None:
        """End the shell."""
        if self.shell is not None:
            self.shell.end()
            self.shell = None

    def defaultIntf(self) -> Any:  # noqa: N802 (Mininet's name)
        return _Address(self.address) if self.address else super().defaultIntf()

    def IP(self, intf: object = None) -> str | None:  # noqa: N802 (Mininet's name)
        return self.address


def _namespaces_of(process: Process, node: str) -> list[str]:
    """The network that this process holds, and its mounts (FRR's folders), where it knows our processes: /proc there
    shows the processes of its own PID namespace alone. Raises FabricError if the process is gone."""
    kinds = {"net": "net", "mount": "mnt"}
    try:
        names = kinds if os.path.samefile(process.path("ns/pid"), "/proc/self/ns/pid") else ["net"]
    except OSError:
        raise FabricError(node, "enter its namespace", "its shell is gone; was it killed?") from None
    return [f"--{name}={process.path(f'ns/{kinds[name]}')}" for name in names]


class ShellsOf(Mapping[str, int]):
    """The process of each node's shell, by the node's name: the one that it has now."""

    def __init__(self, net: Mininet) -> None:
        self._nodes = net.nameToNode

    def __getitem__(self, name: str) -> int:
        return int(self._nodes[name].pid)

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def start_nodes(
    plan: Plan,
    beside: Mapping[str, Process] | None = None,
    started: contextlib.ExitStack | None = None,
    addresses: Mapping[str, str] | None = None,
) -> Mininet:
    """A shell for every host and switch of the plan, in namespaces of their own or in those of processes `beside`.

    They end with this process, or with `started`. `addresses`: what names of hosts mean in commands, where that is
    not their address in the fabric. Raises MissingCapability without mnexec, FabricError.
    """
    log.setLogLevel("critical")
    Mininet.inited = True  # its init() would write sysctls of the whole machine
    net = Mininet(controller=None, build=False)
    meant = {host.name: plan.address_of(host) for host in plan.hosts} | dict(addresses or {})
    held = beside or {}
    if started is not None:
        started.callback(_terminate, net)
    try:
        for name in plan.node_names:
            net.nameToNode[name] = FabricNode(name, meant.get(name), held.get(name))
    except SystemExit as stop:  # Mininet's answer to a missing mnexec
        raise MissingCapability("mnexec is missing", "apt-get install mininet, or make setup") from stop
    for node in net.nameToNode.values():
        try:
            node.await_shell()
        except FabricError as refused:
            if os.strerror(errno.ENOSPC) in refused.detail:
                raise refusal("a network namespace", errno.ENOSPC) from None
            raise
        (net.hosts if node.address else net.switches).append(node)
    return net


def _terminate(net: Mininet) -> None:
    for node in net.nameToNode.values():
        node.terminate()


def describe_links(net: Mininet, plan: Plan) -> None:
    """Register the links with Mininet, for `net`, `links` and `dump` at its prompt."""
    for link in plan.links:
        near = FabricIntf(link.near, net.nameToNode[link.near.node])
        far = FabricIntf(link.far, net.nameToNode[link.far.node])
        net.links.append(FabricLink(near, far))
