"""Two hosts in memory whose daemons serve programs: real sockets and clocks, and between the endpoints a wire that
delays, loses, and has paths that can be dead."""

from __future__ import annotations

import contextlib
import random
import select
import threading
from heapq import heappop, heappush
from time import monotonic_ns, sleep
from typing import Any, cast

from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.endpoint import Endpoint
from mrc_testbed.hosts.network import DatagramNetwork
from mrc_testbed.hosts.qps import NamedQps
from mrc_testbed.hosts.rc.config import RcConfig
from mrc_testbed.hosts.rc.endpoint import RcEndpoint
from mrc_testbed.hosts.verbs.facts import HostFacts
from mrc_testbed.hosts.verbs.opening import gid_of, listen
from mrc_testbed.hosts.verbs.server import ProgramServer

PLANES, UPLINKS, RTT_NS, RATE = 2, 2, 2_000_000, 200_000_000
GIDS = {gid_of(f"10.64.0.{number}"): number for number in (0, 1)}


class Host:
    """One of them. `told`: lines for the run."""

    def __init__(self, number: int, socket_path: str, roce: bool) -> None:
        self.number = number
        self.path = socket_path
        self.endpoint = self._roce(number) if roce else self._mrc(number)
        self.network = DatagramNetwork.__new__(DatagramNetwork)
        self.network.endpoint, self.network.peers = self.endpoint, {1 - number: f"h{1 - number}"}
        self.network.rtt_ns = RTT_NS
        self.network.disabled, self.network.without_carrier = set(), set()
        self.network.read_remote = cast(Any, dict)
        self.names = NamedQps(self.network)
        self.told: list[tuple[str, dict[str, Any]]] = []
        gid = next(gid for gid, host in GIDS.items() if host == number)
        facts = HostFacts(number, f"h{number}", gid, GIDS, PLANES, 4096, 8, 32, RTT_NS)
        listening = listen(socket_path)
        tell = lambda event, _, fields: self.told.append((event, fields))  # noqa: E731
        self.server = ProgramServer(self.network, self.endpoint, self.names, facts, listening, tell)
        self.events: list[object] = []

    def hear(self) -> None:
        """Hand on what the endpoint has to tell."""
        while (event := self.endpoint.poll_event()) is not None:
            if not self.server.take_event(event):
                self.events.append(event)

    def _mrc(self, number: int) -> Endpoint:
        config = EndpointConfig(number, PLANES, 49152, RTT_NS, RATE, payload_bytes=4096, linear_tries=2)
        endpoint = Endpoint(config)
        paths = [(plane, uplink, (plane, uplink)) for plane in range(PLANES) for uplink in range(UPLINKS)]
        endpoint.add_peer(1 - number, paths)
        return endpoint

    def _roce(self, number: int) -> RcEndpoint:
        endpoint = RcEndpoint(RcConfig(number, PLANES, RTT_NS, RATE, timeout_ns=20_000_000))
        endpoint.add_peer(1 - number, [(plane, f"port{plane}") for plane in range(PLANES)])
        return endpoint


class Pair:
    """Use it as a context manager: it runs in a thread of its own. Or `drive` it, under a clock of its own. `loss`: of
    each packet. `dead`: (plane, uplink) of paths that carry nothing."""

    def __init__(self, folder, loss: float = 0.0, roce: bool = False, seed: int = 1) -> None:
        self.hosts = [Host(number, str(folder / f"h{number}"), roce) for number in (0, 1)]
        self.loss = loss
        self.dead: set[tuple[int, int]] = set()
        self.silent = False
        """Nothing arrives any more."""
        self.failure: BaseException | None = None
        self._roce = roce
        self._random = random.Random(seed)
        self._wire: list[tuple[int, int, int, bytes, object, int]] = []
        self._count = 0
        self.now_ns = 10**9
        """Of `drive`."""
        self._running = True
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._guarded, daemon=True)

    def __enter__(self) -> Pair:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._running = False
        self._thread.join(10)
        for host in self.hosts:
            with contextlib.suppress(OSError):
                host.server.close(monotonic_ns())
        if self.failure is not None:
            raise self.failure

    @contextlib.contextmanager
    def stopped(self):
        """The daemons do nothing meanwhile."""
        with self._lock:
            yield

    def drive(self, until=lambda: False, within_ns: int = 600 * 10**9, must: bool = True) -> None:
        """Turn by turn until it is so. The clock jumps to the next time at which something happens."""
        end_ns = self.now_ns + within_ns
        while not until():
            if self._turn(self.now_ns) or self.has_records() or until():
                continue
            next_ns = min(
                [each for host in self.hosts for each in self._next_of(host)] + [due for due, *_ in self._wire]
            )
            if next_ns > end_ns:
                assert not must, f"not so within {within_ns / 10**9} s"
                self.now_ns = end_ns
                return
            self.now_ns = max(next_ns, self.now_ns + 1)

    def has_records(self) -> bool:
        """Is there something that a daemon has not read?"""
        epolls = [fd for host in self.hosts for fd in host.server.wakes_by]
        return bool(select.select(epolls, [], [], 0)[0])

    def _next_of(self, host: Host) -> list[int]:
        due = host.endpoint.next_timeout()
        return [host.server.next_ns()] + ([] if due is None else [due])

    def _guarded(self) -> None:
        try:
            while self._running:
                with self._lock:
                    moved = self._turn(monotonic_ns())
                if not moved:
                    sleep(0.0002)
        except BaseException as failure:
            self.failure = failure

    def _turn(self, now_ns: int) -> bool:
        moved = False
        while self._wire and self._wire[0][0] <= now_ns:
            due, _, to, packet, token, traffic_class = heappop(self._wire)
            self._arrive(self.hosts[to], packet, token, traffic_class, due, now_ns)
            moved = True
        buffer = memoryview(bytearray(4400))
        for host in self.hosts:
            endpoint = host.endpoint
            timeout = endpoint.next_timeout()
            if timeout is not None and timeout <= now_ns:
                endpoint.handle_timeout(now_ns)
            host.hear()
            host.server.pump(now_ns)
            while (sent := endpoint.poll_transmit(now_ns, buffer)) is not None:
                size, token, traffic_class = sent
                self._send(1 - host.number, bytes(buffer[:size]), token, traffic_class, now_ns)
                moved = True
            host.hear()
        return moved

    def _send(self, to: int, packet: bytes, token: Any, traffic_class: int, now_ns: int) -> None:
        if self.silent or token in self.dead or self._random.random() < self.loss:
            return
        self._count += 1
        heappush(self._wire, (now_ns + RTT_NS // 2, self._count, to, packet, token, traffic_class))

    def _arrive(self, host: Host, packet: bytes, token: Any, traffic_class: int, due: int, now_ns: int) -> None:
        plane, uplink = (0, 0) if self._roce else token
        label = plane << 8 | uplink
        host.endpoint.handle_datagram(memoryview(packet), 1 - host.number, label, 49152, traffic_class, due, now_ns)
