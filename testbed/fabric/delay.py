"""The delay T for kernel protocols: packets that arrive at a host's ports wait half of T before TCP sees them.

It is what the daemons' delay line (hosts/delay.py) is for them, made by NFQUEUE at the receiver and one process for all
hosts (c/kernel_delay.c). At the sender TCP small queues would count what waits as not yet sent
(docs/decisions/0069-kernel-delay-at-the-receiver.md).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric import delay_program, nfqueue
from mrc_testbed.testbed.fabric.sandbox import network_of, open_of, scratch_network
from mrc_testbed.topos.plan import Plan

TICKS = 20
"""Most times in T that packets are let go: each is late by T/20 at most, and some go together."""
_WHO = "kernel delay"
_ANSWER_S = 5
_READ_BYTES = 4096
_STAMPS = 35
"""SO_TIMESTAMPNS: the kernel stamps packets where a socket wants stamps, and then all of them."""


@dataclass(frozen=True, slots=True)
class DelayStats:
    """Packets since the figures began. `dropped`: by a queue that was full or read too slowly, since the start.

    `late_*_ns`: how long after its time a packet was let go; a tick is meant to be. `unstamped`: packets without the
    kernel's stamp, which waited too long. `cpu_ns` of the process since its start, the receive path of TCP included.
    """

    received: int
    released: int
    held: int
    unstamped: int
    wakeups: int
    dropped: int
    late_p50_ns: int
    late_p99_ns: int
    late_max_ns: int
    cpu_ns: int


@contextmanager
def _refused(node: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FabricError(node, "queue packets for the kernel delay", os.strerror(error.errno or 0)) from None


class KernelDelay:
    """The process and its queues. It ends with `stop`, with this process, and with the sandbox."""

    def __init__(self, one_way_ns: int, sockets: Iterable[nfqueue.NetfilterSocket], counts: Iterable[IO[str]]) -> None:
        """Start the process on `sockets`, which it takes over. `counts`: /proc files of their namespaces' queues."""
        self._counts = list(counts)
        self._stamping = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self._stamping.setsockopt(socket.SOL_SOCKET, _STAMPS, 1)
        self._stopped = False
        self.channel, theirs = socket.socketpair()
        self.channel.settimeout(_ANSWER_S)
        served = list(sockets)
        descriptors = [theirs.fileno(), *(each.socket.fileno() for each in served)]
        tick_ns = 2 * one_way_ns // TICKS
        with theirs:
            self.process = subprocess.Popen(
                [delay_program.RECIPE.compiled(), str(one_way_ns), str(tick_ns), *map(str, descriptors)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=descriptors,
                start_new_session=True,
            )
        if self.process.stderr is None:
            raise RuntimeError("a pipe was asked for")
        self._errors = self.process.stderr
        for each in served:
            each.close()  # the process alone holds them: its end is the end of what they queue

    @classmethod
    def start(cls, plan: Plan, pids: Mapping[str, int], one_way_ns: int, hosts: Iterable[str]) -> KernelDelay:
        """Delay what arrives at the ports of these hosts. `pids`: who holds their namespaces.

        Raises FabricError where the kernel refuses, MissingCapability where the process cannot be compiled.
        """
        delay_program.RECIPE.compiled()
        sockets, counts = [], []
        with _refused("fabric"), scratch_network():  # its rules would stay
            queue_by = nfqueue.supported()
        for host in hosts:
            with _refused(host), network_of(pids[host], host):
                served = nfqueue.NetfilterSocket()
                served.queue([own.ifindex for own, _ in plan.ports[host]], queue_by)
            sockets.append(served)
            counts.append(os.fdopen(open_of(pids[host], host, "net/netfilter/nfnetlink_queue"), encoding="ascii"))
        return cls(one_way_ns, sockets, counts)

    def begin_figures(self) -> None:
        """Packets and lateness count from here on."""
        self._send(b"b")

    def stats(self) -> DelayStats:
        """The figures. Raises FabricError if the process has ended."""
        self._send(b"s")
        told = b""
        while not told.endswith(b"\n"):
            try:
                part = self.channel.recv(_READ_BYTES)
            except TimeoutError:
                raise FabricError(_WHO, "ask for its figures", f"no answer within {_ANSWER_S} s") from None
            except ConnectionError:  # it ended with an unread request
                raise self.death() from None
            if not part:
                raise self.death()
            told += part
        figures = json.loads(told)
        late = {f"late_{name}": figures.pop(name) for name in ("p50_ns", "p99_ns", "max_ns")}
        return DelayStats(**figures, **late, dropped=self._dropped())

    def _send(self, request: bytes) -> None:
        try:
            self.channel.sendall(request)
        except OSError:
            raise self.death() from None

    def _dropped(self) -> int:
        dropped = 0
        for file in self._counts:
            file.seek(0)
            dropped += sum(queue.queue_dropped + queue.user_dropped for queue in nfqueue.read_counts(file.read()))
        return dropped

    def on_readable(self) -> None:
        """For the loop that watches `channel`: between requests it is readable only at the end of the process.

        Raises FabricError then, unless `stop` was called.
        """
        if not self._stopped:
            raise self.death()

    def death(self) -> FabricError:
        """An error with the way in which the process ended. What it held was dropped, and no host receives any more."""
        try:
            code = self.process.wait(timeout=_ANSWER_S)
        except subprocess.TimeoutExpired:
            return FabricError(_WHO, "hold packets", "its process closed its channel but is still running")
        last = self._errors.read().strip().rpartition("\n")[2]
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        return FabricError(_WHO, "hold packets", f"its process {how}" + (f": {last}" if last else ""))

    def stop(self) -> None:
        """End the process. The rules stay: what arrives from now on is dropped, never delivered without T."""
        self._stopped = True
        self.channel.close()
        self._stamping.close()
        self.process.wait(timeout=_ANSWER_S)
        self._errors.close()
        for file in self._counts:
            file.close()
