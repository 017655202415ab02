"""The Mininet part: every host and switch is a Mininet Node, so `mininet>` and `node.cmd(...)` work as usual.

Mininet's links, interfaces and clean-up are not used: they log errors and go on, lose routes, or kill by broad names.
"""

from __future__ import annotations

import os
import pty
import select
import sys
import termios
from collections.abc import Mapping
from typing import Any

from testbed.errors import FabricError, MissingCapability
from testbed.fabric.mininet_parts import Intf, Link, Mininet, Node, log
from topos.plan import Interface, Plan

_PROMPT = chr(127)
"""Mininet marks the end of a command by this character."""
_SHELL_TIMEOUT_MS = 20_000
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
    """A namespace with a shell. `address` is None for a switch. The shell is usable after `await_prompt`.

    The namespace is a new one, or that of process `beside`.

    Mininet starts one shell after the other and has each run `stty`; here all start at once with terminals set by us:
    64 nodes in 0.15 s instead of 0.5 s (benchmarks/bringup.py).
    """

    def __init__(self, name: str, address: str | None, beside: int | None = None) -> None:
        self.address = address
        self._beside = beside
        super().__init__(name)

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 (Mininet's name)
        """Start the shell in its namespace, without waiting for it."""
        self.master, self.slave = pty.openpty()
        _echo_off(self.slave)
        enter = ["mnexec", mnopts or "-cdn"]
        if self._beside is not None:
            enter = ["nsenter", f"--net=/proc/{self._beside}/ns/net", "mnexec", "-cd"]
        command = [*enter, "bash", "--norc", "--noediting", "+m", "-is", f"{SHELL_OF}{self.name}"]
        environment = {**os.environ, **_plain_where_unseen(), "PS1": _PROMPT, "HISTFILE": ""}
        self.shell = self._popen(
            command, stdin=self.slave, stdout=self.slave, stderr=self.slave, env=environment, close_fds=False
        )
        self.pid = self.shell.pid
        self.stdin = self.stdout = os.fdopen(self.master, "r")
        self.pollOut = select.poll()
        self.pollOut.register(self.stdout)
        self.outToNode[self.master] = self.inToNode[self.master] = self
        self.waiting = True

    def await_prompt(self) -> None:
        """Wait until the shell accepts commands. Raises FabricError if it exits or stays silent."""
        seen = ""
        while not seen.endswith(_PROMPT):
            if not self.pollOut.poll(_SHELL_TIMEOUT_MS) or self.shell.poll() is not None:
                raise FabricError(self.name, "start a shell with mnexec", seen.strip() or "no answer")
            seen += self.read(1024)
        self.waiting = False

    def defaultIntf(self) -> Any:  # noqa: N802 (Mininet's name)
        return _Address(self.address) if self.address else super().defaultIntf()

    def IP(self, intf: object = None) -> str | None:  # noqa: N802 (Mininet's name)
        return self.address


def _plain_where_unseen() -> dict[str, str]:
    """Disables colours: a node's shell has a terminal, where newer `ip` and `tc` print in colour even into a file."""
    return {} if sys.stdout.isatty() else {"NO_COLOR": "1"}


def _echo_off(terminal: int) -> None:
    """Without this every command sent to the shell would appear in its output."""
    settings = termios.tcgetattr(terminal)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, settings)


def start_nodes(plan: Plan, beside: Mapping[str, int] | None = None) -> Mininet:
    """A shell for every host and switch of the plan, in namespaces of their own or in those of processes `beside`.

    Raises MissingCapability without mnexec.
    """
    log.setLogLevel("critical")
    Mininet.inited = True  # its init() would write sysctls of the whole machine
    net = Mininet(controller=None, build=False)
    addresses = {host.name: plan.address_of(host) for host in plan.hosts}
    pids = beside or {}
    try:
        nodes = [FabricNode(name, addresses.get(name), pids.get(name)) for name in plan.node_names]
    except SystemExit as stop:  # Mininet's answer to a missing mnexec
        raise MissingCapability("mnexec is missing", "apt-get install mininet, or make setup") from stop
    for node in nodes:
        node.await_prompt()
        (net.hosts if node.address else net.switches).append(node)
        net.nameToNode[node.name] = node
    return net


def describe_links(net: Mininet, plan: Plan) -> None:
    """Register the links with Mininet, for `net`, `links` and `dump` at its prompt."""
    for link in plan.links:
        near = FabricIntf(link.near, net.nameToNode[link.near.node])
        far = FabricIntf(link.far, net.nameToNode[link.far.node])
        net.links.append(FabricLink(near, far))
