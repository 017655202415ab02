"""Single fast changes by netlink: one port down takes 0.3 ms here, a process for it 1.3 ms."""

from __future__ import annotations

from collections.abc import Iterable

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.sandbox import network_of


class LivePorts:
    """Netlink sockets in the nodes that faults will touch; opened before the run."""

    def __init__(self, pids: dict[str, int], nodes: Iterable[str]) -> None:
        self._sockets = {node: _socket_in(pids[node], node) for node in nodes}

    def down(self, node: str, ifindex: int) -> None:
        """Take one port admin-down. Its peer loses carrier; this side also loses the port's neighbour and routes."""
        try:
            self._sockets[node].link("set", index=ifindex, state="down")
        except NetlinkError as error:
            raise FabricError(node, f"interface {ifindex} down", str(error)) from error

    def close(self) -> None:
        """Close every socket."""
        for socket in self._sockets.values():
            socket.close()
        self._sockets.clear()


def _socket_in(pid: int, node: str) -> IPRoute:
    # IPRoute(netns=...) would fork a helper and end it by SIGTERM, which our own handler would take in that helper.
    with network_of(pid, node):
        return IPRoute()
