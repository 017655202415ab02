"""Hostile input: packets nobody should send, into an endpoint in the middle of a transfer.

    PYTHONPATH=. .venv/bin/python -m tests.sim.fuzz [--inputs N] [--seed N]

Inputs are random bytes, and real packets of both directions: changed in one to three bytes, cut, repeated, sent to
another QP, from another host, or marked as trimmed. After every few the endpoint may send and run its timers, as in a
daemon. A round ends after `ROUND` inputs, or soon after the QP failed; what the endpoint holds is then looked at:
nothing may have grown past the bound its design gives it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from random import Random
from time import perf_counter

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from tests.sim.simnet import MS, RATE, Net, T, pattern

PAYLOAD = 256
"""Small packets: the headers are what is attacked."""
ROUND = 4_000
AFTER_ERROR = 100
POLL_EVERY = 16
REGION = 1 << 18


class Round:
    """One endpoint under attack, and the real packets it might have got."""

    def __init__(self, seed, icrc=False):
        settings = {"payload_bytes": PAYLOAD, "pace": False, "mpr": 2, "dynamic_mpr": 2, "icrc": icrc}
        self.net = net = Net(hosts=3, planes=4, uplinks=2, seed=seed, port_rate_bps=RATE // 4, **settings)
        net.worsen(loss=0.02)
        flow = net.join(region_bytes=REGION)
        self.idle = net.join(0, 2, region_bytes=4096)
        self.corpus = []
        net.taps.append(self._record)
        for host in (0, 1):
            for i in range(4):
                flow.write(pattern(100 * PAYLOAD + 7, i), offset=i * 101 * PAYLOAD, wr_id=i, immediate=i, source=host)
        net.hosts[1].probe_paths(0, net.now)
        net.hosts[0].probe_paths(1, net.now)
        net.run(within=2 * T, must=False)
        net.hosts[1].port_down(3, net.now)
        net.run(within=T, must=False)
        self.corpus += self._nacks(flow)
        if not icrc:
            self.corpus += self._lies(flow)
        self.target = net.hosts[0]
        self.now = net.now

    def _nacks(self, flow):
        """NACKs of packets that are under way, for every reason."""
        sender = self.net.hosts[0]._qps[flow.qpn[0]].sender
        flight, psn, buffer = sender.flight, flow.attributes[0].psn, self.net.buffer
        packets = []
        for seq in range(flight.una, flight.next):
            bits = psn + seq & bth.PSN_MASK
            for reason in (1, 2, 6, 7, 10, 11):
                entropy = flight.at(seq).path.ev
                size = wire.emit_nack(buffer, flow.qpn[0], bits, reason, entropy, flow.qpn[1], 0)
                bth.seal(buffer, size)
                packets.append((1, 0x0100, bth.CLASS_CONTROL, bytes(buffer[:size])))
        return packets[:60]

    def _lies(self, flow):
        """Requests that are well formed and cannot be: longer than their length, and one number for two immediates."""
        receiver, buffer = self.net.hosts[0]._qps[flow.qpn[0]].receiver, self.net.buffer
        mine, theirs = flow.attributes[0], flow.attributes[1]
        first = theirs.psn + receiver._expected
        wanted = [(bth.WRITE_ONLY, 90, 1), (bth.WRITE_ONLY_IMM, 91, 64), (bth.WRITE_ONLY_IMM, 92, 64)]
        packets = []
        for opcode, ahead, length in wanted:
            bits, number = first + ahead & bth.PSN_MASK | wire.TIMESTAMP, receiver._next_rqmsn + 20 & 0xFFFF
            immediate = 7 if opcode in bth.HAS_IMMEDIATE else None
            place = (mine.region_address, mine.rkey, length, memoryview(bytes(64)), immediate)
            size = wire.emit_data(buffer, opcode, mine.qpn, bits, number, 99, 0, *place)
            bth.seal(buffer, size)
            packets += [(1, 0x0100, wire.CLASS_TRIMMABLE, bytes(buffer[:size]))] * 3
        return packets

    def _record(self, src, token, traffic_class, packet):
        if token[0] == 0 and len(self.corpus) < 600:
            self.corpus.append((src, token[1] << 8 | token[2], traffic_class, packet))
        return True

    def poll(self):
        """Let the endpoint send, speak and run its timers; what it sends is lost."""
        self.now += MS
        target, buffer = self.target, self.net.buffer
        target.handle_timeout(self.now)
        while target.poll_event() is not None:
            pass
        while target.poll_transmit(self.now, buffer) is not None:
            pass

    def bounded(self):
        """Everything that could grow is within the bound of its design."""
        context = self.target._context
        assert not context.control
        assert not context.events
        assert len(context.timers._heap) < 2000
        for peer in self.target._peers.values():
            assert len(peer.prober._pending) <= 4 * len(peer.paths) + 1
            assert len(peer.prober._heap) < 500
            assert len(peer.reverse._chosen) <= 4
        for qp in self.target._qps.values():
            assert len(qp.receiver._stash) <= qp.attributes.max_wimm
            assert len(qp.receiver._ends) <= 256
            assert qp.receiver._received.bit_length() <= 256
            assert len(qp.sender._lost) <= 1024
            assert qp.sender.flight.next - qp.sender.flight.una <= 256
            assert len(qp.region) == qp.attributes.region_bytes
        assert not any(self.idle.region(0)), "bytes of another QP changed"


def mangle(random, packet):
    """One to three changed bytes, most of them in the headers."""
    bad = bytearray(packet)
    for _ in range(random.randrange(1, 4)):
        bad[random.randrange(min(len(bad), 56))] = random.randrange(256)
    return bad


def attack(random, corpus):
    """(peer, flow label, traffic class, packet, kind)."""
    source, label, traffic_class, packet = corpus[int(random.random() * len(corpus))]
    kind = int(random.random() * 8)
    if kind == 0:
        return source, random.getrandbits(20), random.getrandbits(8), random.randbytes(random.randrange(90)), "random"
    if kind == 1:
        return source, label, traffic_class, packet[: random.randrange(len(packet))], "truncated"
    if kind == 2:
        return source, label, traffic_class, packet, "replayed"
    if kind == 3:
        wrong = bytearray(packet)
        wrong[5:8] = random.randrange(32).to_bytes(3, "big")
        return source, label, traffic_class, wrong, "wrong QP"
    if kind == 4:
        return 2 + int(random.random() * 2), label, traffic_class, packet, "wrong host"
    if kind == 5:
        return source, label, random.choice((12, 16)) << 2, mangle(random, packet)[: random.randrange(60)], "trimmed"
    return source, label, traffic_class, mangle(random, packet), "mutated"


def fuzz(inputs, seed=1, icrc=False):
    """Returns how many inputs of each kind were given, and what the endpoints counted. Raises on the first mistake."""
    random = Random(seed)
    kinds, counted = Counter(), Counter()
    done = rounds = 0
    while done < inputs:
        rounds += 1
        story = Round(seed + rounds, icrc)
        handle, corpus = story.target.handle_datagram, story.corpus
        left = min(ROUND, inputs - done)
        while left:
            for _ in range(min(POLL_EVERY, left)):
                peer, label, traffic_class, packet, kind = attack(random, corpus)
                handle(memoryview(packet), peer, label, 0xC000, traffic_class, story.now, story.now)
                kinds[kind] += 1
                done += 1
                left -= 1
            story.poll()
            if left > AFTER_ERROR and not story.target._qps[16].live:
                left = AFTER_ERROR
        story.bounded()
        counted.update(story.target.counters())
    return kinds, counted, rounds


def main() -> None:
    """Print what was given and what became of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    begun = perf_counter()
    kinds, counted, rounds = fuzz(arguments.inputs, arguments.seed)
    taken = perf_counter() - begun
    print(f"{arguments.inputs} inputs in {taken:.1f} s, {arguments.inputs / taken:.0f}/s, {rounds} rounds")  # noqa: T201
    print("given:", dict(kinds))  # noqa: T201
    wanted = {name: count for name, count in counted.items() if name.startswith("refused_") or name == "qp_errors"}
    print("counted:", wanted)  # noqa: T201


if __name__ == "__main__":
    main()
