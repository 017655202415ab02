"""QPs of programs in the simulator: memory with addresses of its own, regions by key, and a pair of QPs over them.

pair = joined("mrc")                      # both ends in RTS, one region each
pair.write(b"abc", at=5, immediate=7)     # from end 0 into the region of end 1
"""

from __future__ import annotations

from mrc_testbed.hosts.common.events import ImmediateDelivered, QpError, WriteCompleted
from mrc_testbed.hosts.common.memory import Domain, MemoryWindow, QpTerms
from tests.sim.rcnet import RcNet
from tests.sim.simnet import MS, Net, T

PAYLOAD = 256
RC_TIMEOUT = 6 * T
TRANSPORTS = ("mrc", "go-back-n", "selective")
MANY = 1000
KEY, ADDRESS = 0x1100, 0x7F00_0000_1003
"""Of the region that an end has when nothing else is said. Addresses of programs are seldom aligned."""


class Ram:
    """Memory from `address` on. `times`: how often each byte was written; `closed`: nothing can be written any more."""

    def __init__(self, size, address=ADDRESS):
        self.address, self.bytes, self.times = address, bytearray(size), [0] * size
        self.closed = False

    def write(self, address, data):
        at = address - self.address
        assert 0 <= at <= at + len(data) <= len(self.bytes), "no region lets this through"
        if self.closed:
            return False
        self.bytes[at : at + len(data)] = data
        for place in range(at, at + len(data)):
            self.times[place] += 1
        return True

    def window(self, first=0, size=None):
        """A region in it."""
        return MemoryWindow(self.address + first, len(self.bytes) - first if size is None else size, self)


class Source:
    """The bytes of a write; all from `there` on are not mapped."""

    def __init__(self, data):
        self.data, self.there = bytes(data), len(data)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, part):
        start, stop, _ = part.indices(len(self.data))
        return memoryview(self.data)[start : max(min(stop, self.there), start)]


class End:
    """One end: a domain with one region, and a QP in no state yet."""

    def __init__(self, net, host, size):
        self.net, self.host = net, host
        self.ram, self.domain = Ram(size), Domain()
        self.domain.windows[KEY] = self.ram.window()
        self.endpoint = net.hosts[host]
        self.qpn = self.endpoint.new_qpn()
        self.psn = (1 << 24) - 3 - host
        self.posted = 0

    def receive_from(self, other, receives=MANY, **terms):
        """RESET -> RTR."""
        self.terms = {"remote_qpn": other.qpn, "remote_psn": other.psn, "mtu": 4096} | terms
        self.endpoint.open_receiver(self.qpn, other.host, QpTerms(**self.terms), self.domain)
        self.endpoint.post_receives(self.qpn, receives)

    def send(self):
        """RTR -> RTS."""
        self.endpoint.enable_send(
            self.qpn, self.psn, QpTerms(**self.terms | {"remote_qpn": 0, "remote_psn": 0, "mtu": 0})
        )

    def post(self, data, address, key=KEY, immediate=None):
        """A write; returns its number, which its completion has."""
        source = data if isinstance(data, Source) else Source(data)
        self.endpoint.post_of_program(self.qpn, source, address, key, self.posted + 1, immediate)
        self.posted += 1
        return self.posted

    def _of(self, kind):
        return [event for event in self.net.events_of(kind, self.host) if event.qpn == self.qpn]

    def completed(self):
        """Numbers of complete writes, in order."""
        return [event.wr_id for event in self._of(WriteCompleted)]

    def delivered(self):
        """(immediate, bytes) in order."""
        return [(event.immediate, event.length) for event in self._of(ImmediateDelivered)]

    def failures(self):
        """Why it went to ERROR."""
        return [event.reason for event in self._of(QpError)]


class Pair:
    """Two ends on hosts 0 and 1."""

    def __init__(self, net, size=1 << 16):
        self.net = net
        self.ends = [End(net, host, size) for host in (0, 1)]

    def join(self, receives=MANY, **terms):
        """Both ends to RTS."""
        for end, other in zip(self.ends, reversed(self.ends), strict=True):
            end.receive_from(other, receives, **terms)
            end.send()
        return self

    def write(self, data, at=0, key=KEY, immediate=None):
        """From end 0 into the memory of end 1."""
        return self.ends[0].post(data, self.ends[1].ram.address + at, key, immediate)

    def run_until_told(self, within=600 * T):
        """Until everything that end 0 posted is complete, or it has failed."""
        sender = self.ends[0]
        self.net.run(lambda: len(sender.completed()) == sender.posted or sender.failures(), within=within)


def network(transport, seed=1, **config):
    """Small packets, so that short messages are many."""
    config = {"payload_bytes": PAYLOAD} | config
    if transport == "mrc":
        return Net(seed=seed, **config)
    return RcNet(seed=seed, recovery=transport, **{"timeout_ns": RC_TIMEOUT} | config)


def joined(transport, seed=1, size=1 << 16, receives=MANY, terms=None, **config):
    """A pair, ready to send."""
    return Pair(network(transport, seed, **config), size).join(receives, **terms or {})


_DATA = frozenset(range(0x06, 0x0C)) | frozenset(range(0xC6, 0xCC))
"""Opcodes of data, of RoCE and of MRC."""


def is_data(packet):
    """And not an answer or a probe?"""
    return packet[0] in _DATA


def packets_of(net, src, wanted=is_data):
    """A list that grows with every such packet of a host."""
    seen = []
    net.taps.append(lambda host, _, __, packet: seen.append(packet) if host == src and wanted(packet) else None)
    return seen


__all__ = ["ADDRESS", "KEY", "MS", "PAYLOAD", "RC_TIMEOUT", "TRANSPORTS", "End", "Pair", "Ram", "Source", "T"]
