"""Questions of a host to switches on this kernel: raw sockets in its namespace."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Sequence

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.sandbox import made_in_network_of
from mrc_testbed.testbed.oam.packets import heard, packet_of
from mrc_testbed.testbed.oam.probes import PACE_NS, TIMEOUT_NS, TIMEOUT_T, HopAnswer, HopProber, Probe
from mrc_testbed.topos import names, usid
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan

_MOST_BYTES = 2048


def _raw_sockets() -> tuple[socket.socket, socket.socket]:
    """One that sends whole IPv6 packets, and one that hears all of ICMPv6."""
    protocols = socket.IPPROTO_RAW, socket.IPPROTO_ICMPV6
    out, into = (socket.socket(socket.AF_INET6, socket.SOCK_RAW, protocol) for protocol in protocols)
    return out, into


class KernelProber(HopProber):
    """Asks as `host`, whose namespace process `pid` holds."""

    def __init__(self, plan: Plan, host: Host, pid: int) -> None:
        """Raises FabricError where this process may not."""
        self._plan = plan
        self.sent = 0
        """Packets so far."""
        self._identifier = os.getpid() & 0xFFFF
        self._sent_ns: dict[int, int] = {}
        self._asked: dict[int, int] = {}
        self._answers: list[HopAnswer | None] = []
        try:
            self._out, self._in = made_in_network_of(pid, host.name, _raw_sockets)
        except OSError as error:
            raise FabricError(host.name, "open raw sockets", error.strerror or str(error)) from None
        self._in.setblocking(False)

    def ask(self, probes: Sequence[Probe]) -> list[HopAnswer | None]:
        """As of `HopProber`."""
        self._answers = [None] * len(probes)
        self._asked = {probe.number & 0xFFFF: at for at, probe in enumerate(probes)}
        for probe in probes:
            self._send(probe)
            self._listen_until(time.monotonic_ns() + PACE_NS, for_all=False)
        patience_ns = max(TIMEOUT_NS, TIMEOUT_T * self._plan.shape.rtt_ns)
        self._listen_until(time.monotonic_ns() + patience_ns, for_all=True)
        return self._answers

    def _send(self, probe: Probe) -> None:
        packet = packet_of(probe, self._identifier)
        self._sent_ns[probe.number & 0xFFFF] = time.monotonic_ns()
        try:
            self._out.sendto(packet, (probe.list_address, 0))
        except OSError:  # its own port is down, so nothing comes back either
            return
        self.sent += 1

    def _listen_until(self, end_ns: int, for_all: bool) -> None:
        """Take answers in until then; `for_all`: or until all have come."""
        while (left_ns := end_ns - time.monotonic_ns()) > 0:
            if for_all and None not in self._answers:
                return
            if select.select([self._in], [], [], left_ns / 1e9)[0]:
                self._take(time.monotonic_ns())

    def _take(self, now_ns: int) -> None:
        try:
            message, address = self._in.recvfrom(_MOST_BYTES)
        except OSError:  # an error that an earlier packet has met
            return
        said = heard(message, self._identifier)
        at = None if said is None else self._asked.get(said.number)
        if said is not None and at is not None:
            rtt_ns = now_ns - self._sent_ns[said.number]
            self._answers[at] = HopAnswer(said.kind, self._name(address[0]), rtt_ns, said.left)

    def _name(self, address: str) -> str:
        """Of the node that has this address; the address itself where none has."""
        try:
            if usid.is_in_block(address):
                plane, place = usid.switch_of_address(address)
                return names.switch_name(plane, *place)
            return names.host_name(usid.host_of_address(address))
        except ValueError:
            return address

    def close(self) -> None:
        """Close its sockets."""
        self._out.close()
        self._in.close()
