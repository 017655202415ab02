"""The mapper's agent on a host: probes switches and back, without a pause, and tells the runner what came of it."""

from __future__ import annotations

from mrc_testbed.hosts.control import CommandError, Fields, Request
from mrc_testbed.hosts.network import DatagramNetwork
from mrc_testbed.hosts.self_probes import ProbePart, SelfProbes, probe_payload, sequence_of
from mrc_testbed.hosts.wiring import ProbeCarrier, Wiring


class MapperAgent:
    """Made by the command `map`. `targets`: of each probe the plane, and where to send it."""

    def __init__(
        self, network: DatagramNetwork, carrier: ProbeCarrier, probes: SelfProbes, targets: list[tuple[int, str]]
    ) -> None:
        self._network, self._carrier, self._probes, self._targets = network, carrier, probes, targets
        self.next_ns = 0
        """When `pump` has something to do. What is back waits until then: the kernel knows when it came."""
        self._sent = self._heard = self._unsent = self._garbage = 0

    def pump(self, now_ns: int) -> list[ProbePart]:
        """Take in what is back, send what is due; parts of rounds that are over by now. Sets `next_ns`."""
        self.take_in(now_ns)
        self._probes.give_up(now_ns)
        if not self._network.quiet:
            while (probe := self._probes.poll_probe(now_ns)) is not None:
                self._send(*probe)
        found = []
        while (over := self._probes.poll_part()) is not None:
            found.append(over)
        timeout_ns = self._probes.next_timeout()
        self.next_ns = timeout_ns if self._network.quiet else min(timeout_ns, self._probes.next_probe())
        return found

    def take_in(self, now_ns: int) -> None:
        """Read what is back, so that counts are whole."""
        while (packet := self._carrier.receive(now_ns)) is not None:
            payload, arrival_ns = packet
            sequence = sequence_of(payload)
            if sequence is None:
                self._garbage += 1
                continue
            self._heard += 1
            self._network.packets_in += 1
            self._probes.heard(sequence, arrival_ns)

    def _send(self, sequence: int, target: int) -> None:
        """A probe that cannot leave is lost: it is never heard of."""
        plane, destination = self._targets[target]
        if plane in self._network.without_carrier:
            self._unsent += 1
            return
        self._network.packets_out += 1
        if self._carrier.send(destination, probe_payload(sequence, target)):
            self._sent += 1
        else:
            self._unsent += 1

    def counters(self, network: Fields) -> Fields:
        """Those of the agent, and what its sockets add to those of the network."""
        lost = {f"send_lost_{name}": count for name, count in self._carrier.lost.items()}
        more = {**lost, "unknown_source": self._carrier.strangers + self._garbage}
        together = {name: network.get(name, 0) + count for name, count in more.items()}
        own = {"mapper_sent": self._sent, "mapper_heard": self._heard, "mapper_unsent": self._unsent}
        return {**network, **together, **own}


def open_agent(request: Request, network: DatagramNetwork, wiring: Wiring, now_ns: int) -> MapperAgent:
    """As `map` asks. Raises CommandError, OSError."""
    planes_and_lists = _targets(request.rows("targets"))
    period_ns, timeout_ns = request.number("period_ns", 1), request.number("timeout_ns", 1)
    probes = SelfProbes(len(planes_and_lists), period_ns, timeout_ns, request.number("seed"), now_ns)
    carrier = wiring.probes(request.text("address"), request.number("dscp") << 2)
    return MapperAgent(network, carrier, probes, planes_and_lists)


def _targets(rows: list[object]) -> list[tuple[int, str]]:
    """`[[plane, address], ...]`. Raises CommandError."""
    found = []
    for row in rows:
        match row:
            case [int(plane), str(address)]:
                found.append((plane, address))
            case _:
                raise CommandError(f"targets must be [[plane, address], ...], not {row!r}")
    return found


def described(over: ProbePart) -> Fields:
    """The fields of the event `map_window`."""
    return {
        "from_ns": over.begin_ns,
        "to_ns": over.end_ns,
        "order": over.order,
        "lost": [list(row) for row in over.lost],
        "late_ns": over.late_ns,
        "rtt_ns": list(over.rtt_ns),
    }
