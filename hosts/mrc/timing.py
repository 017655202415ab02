"""T, the base round trip to one peer, and everything measured in it (docs/protocol.md, "Loss and recovery")."""

from __future__ import annotations

from mrc_testbed.hosts.common.bth import ICRC_BYTES
from mrc_testbed.hosts.mrc.config import FRAME_BYTES, EndpointConfig
from mrc_testbed.hosts.mrc.wire import DATA_HEADER_BYTES

TIMER_UNIT_NS = 1024
"""Retransmission timeouts are 1.024 us x 2^n (API)."""
MAX_TIMEOUT = 24
FLOOR_NS = 10_000_000
"""No timeout or probe interval below this: scheduling delay would look like loss."""
REORDER_FLOOR_NS = 1_000_000
UNKNOWN_T_NS = 1_000_000
"""T where none is configured (0), until it is measured: what daemons on one machine take for a round trip."""
TRIMMING_QUEUES_T = 2.5
"""Deepest queues of a path whose switches trim, T: one port of the core and the last hop, each at its trim threshold (1
and 1.5 plane-BDP: docs/switch.md, "The virtual queue")."""
SPREAD_T = 8
"""Period of the largest round trip, T: the last one or two periods count for R."""
STALL_NS = 4_000_000
"""For how long the CPU of a switch may be away with a packet in its hands, while another CPU passes on what comes after
on the same path. Linux keeps a backlog of packets for each CPU, so a path is first in, first out only up to that: once
four packets, one on each plane, were taken for lost at one instant, and all four had arrived."""
LEAST_PLANE_PACKETS = 14
"""Full packets that a plane is taken to hold in T at least: windows, and the queue that senders aim at, are made for
them. Switches do the same for their levels (docs/switch.md, "The virtual queue"). With fewer, the time of a packet on
its way is most of the target delay, and windows stop growing before the ports are full
(docs/decisions/0111-fourteen-packets-count.md)."""
COUNTED_HEADER_BYTES = 40 + 8
"""What the window counts beside the UDP payload: UDP length + 40 (spec 8.3.1, by a reader)."""


class Timing:
    """Durations towards one peer, ns. R follows the queues, the others change only when a smaller RTT is measured."""

    __slots__ = (
        "_agreed_ns",
        "_config",
        "_floor_ns",
        "_period_end_ns",
        "_reorder_floor_ns",
        "_slowest_before_ns",
        "_slowest_ns",
        "base_ns",
        "bdp_bytes",
        "delayed_sack_ns",
        "first_window_bytes",
        "forwarding_ns",
        "least_t_ns",
        "nack_wait_ns",
        "packet_bytes",
        "packet_ns",
        "reorder_ns",
        "reorder_packets",
        "smallest_rtt_ns",
        "smoothed_rtt_ns",
        "stall_ns",
        "stamp_shift",
        "swift",
        "t_bytes",
        "t_ns",
        "trimming",
        "trims_tell",
        "unit_ns",
        "window_bytes",
    )

    def __init__(self, config: EndpointConfig) -> None:
        self._config = config
        self.swift = config.swift
        self.stamp_shift = config.stamp_shift
        self.stall_ns = STALL_NS // config.swift
        self._floor_ns = FLOOR_NS // config.swift
        self._reorder_floor_ns = REORDER_FLOOR_NS // config.swift
        self._agreed_ns = 0
        self.base_ns = 0
        """Round trip without queues, from which congestion control counts delay."""
        self.smallest_rtt_ns: int | None = None
        self.smoothed_rtt_ns = 0
        self.packet_bytes = config.payload_bytes + DATA_HEADER_BYTES + ICRC_BYTES + COUNTED_HEADER_BYTES
        """A full packet, as windows count it."""
        on_wire = config.payload_bytes + DATA_HEADER_BYTES + ICRC_BYTES + FRAME_BYTES
        self.packet_ns = on_wire * 8_000_000_000 // config.port_rate_bps
        """What a port takes to send one."""
        self.forwarding_ns = config.forwardings * self.packet_ns
        """What the ports of a path take to pass one on. Probes are small, so T and the delays of probes lack this for
        full packets."""
        self.least_t_ns = LEAST_PLANE_PACKETS * self.packet_ns
        """T for what is made for a number of packets, where T itself is shorter."""
        self.trimming = config.switches_trim
        self.trims_tell = config.switches_trim
        """Does a NACK tell of every packet that a full queue cost? Then a loss without one is a path's failure. The
        peer says whether it sends any when a QP connects."""
        self.reorder_packets = config.reorder_packets
        self.nack_wait_ns = self.forwarding_ns if config.switches_trim else 0
        """By how much a NACK may be later than a SACK that left with it on another path: at each port a packet that is
        being sent is not interrupted, not even for the control class."""
        self._slowest_ns = 0
        self._slowest_before_ns = 0
        self._period_end_ns = 0
        self._derive(config.rtt_ns or UNKNOWN_T_NS // config.swift)

    def _derive(self, t_ns: int) -> None:
        config = self._config
        self.t_ns = t_ns
        # At slow ports of a near fabric a full packet takes longer on its way than T, which small ones measure.
        self.unit_ns = max(t_ns, self.forwarding_ns)
        self.base_ns = self._agreed_ns or t_ns
        self._set_reorder()
        self.delayed_sack_ns = t_ns // 4
        packet = self.packet_bytes
        wire_share = packet / (config.payload_bytes + DATA_HEADER_BYTES + ICRC_BYTES + FRAME_BYTES)
        bytes_a_ns = config.planes * config.port_rate_bps / 8e9 * wire_share
        self.t_bytes = t_ns * bytes_a_ns
        self.bdp_bytes = (t_ns + self.forwarding_ns) * bytes_a_ns  # of a full packet; T is measured with small ones
        least = LEAST_PLANE_PACKETS * config.planes * packet
        self.window_bytes = int(1.5 * max(self.bdp_bytes, least))
        self.first_window_bytes = int(1.5 * max(self.t_bytes, least))

    def _set_reorder(self) -> None:
        """R: as configured, else T or the time of a full packet on its way, whichever is longer, and as much more as
        queues have lately made round trips differ. Two packets sent R apart cannot change places in queues no deeper
        than those seen; with R = T a permutation retired 25 good EVs in 150 T. Bounded by what switches trim: what
        waits longer is on a path that its plane does better without, if it has another."""
        if self._config.reorder_ns is not None:
            self.reorder_ns = self._config.reorder_ns
            return
        spread = max(min(self.slowest_ns - self.t_ns, int(TRIMMING_QUEUES_T * self.unit_ns)), 0)
        self.reorder_ns = max(self.unit_ns + spread, self._reorder_floor_ns)

    def _note_slowest(self, rtt_ns: int, now_ns: int) -> None:
        """Keep the largest round trip of the last one or two periods of SPREAD_T."""
        if now_ns >= self._period_end_ns:
            idle = now_ns >= self._period_end_ns + SPREAD_T * self.unit_ns
            self._slowest_before_ns = 0 if idle else self._slowest_ns
            self._slowest_ns = rtt_ns
            self._period_end_ns = now_ns + SPREAD_T * self.unit_ns
        elif rtt_ns > self._slowest_ns:
            self._slowest_ns = rtt_ns
        else:
            return
        self._set_reorder()

    @property
    def slowest_ns(self) -> int:
        """The slowest round trip of late; 0 without one."""
        return max(self._slowest_ns, self._slowest_before_ns)

    def sample(self, rtt_ns: int, now_ns: int) -> None:
        """One measured round trip, which ended at `now_ns`."""
        self._note_slowest(rtt_ns, now_ns)
        self.smoothed_rtt_ns += (rtt_ns - self.smoothed_rtt_ns) >> 3 if self.smoothed_rtt_ns else rtt_ns
        if self.smallest_rtt_ns is None or rtt_ns < self.smallest_rtt_ns:
            self.smallest_rtt_ns = rtt_ns
            self._derive(max(self._config.rtt_ns, rtt_ns, 1 << self.stamp_shift))

    def agree(self, base_ns: int) -> None:
        """Take what all senders were told for the round trip without queues. Each by its own smallest one, two whose
        measurements differed by T/100 had 0.3 and 0.7 of a path that they shared."""
        self._agreed_ns = self.base_ns = base_ns

    def note_arrival(self, sent_ns: int, heard_ns: int) -> None:
        """Note the oldest of the packets that a SACK made known: if it waited in a queue, what is behind it will be as
        late. Round trips alone do not show it. With four planes each fourth packet causes a SACK, and for many T none
        of these may be of the slow plane."""
        late_ns = heard_ns - sent_ns - self.delayed_sack_ns
        if late_ns > 2 * self.unit_ns:
            self._note_slowest(late_ns, heard_ns)

    def note_trim(self, now_ns: int) -> None:
        """A queue is full: what waits in it will be as late as anything can be, though no round trip shows it yet."""
        self._note_slowest(self.t_ns + int(TRIMMING_QUEUES_T * self.unit_ns), now_ns)

    def age_ns(self, echo: int, arrival_ns: int) -> int:
        """How long before `arrival_ns` was an echoed 16-bit timestamp of ours taken? In whole units of timestamps."""
        return ((arrival_ns >> self.stamp_shift) - echo & 0xFFFF) << self.stamp_shift

    def sample_echo(self, echo: int, arrival_ns: int) -> int:
        """A round trip from an echoed 16-bit timestamp; returns it."""
        rtt_ns = self.age_ns(echo, arrival_ns)
        self.sample(rtt_ns, arrival_ns)
        return rtt_ns

    def rto_ns(self) -> int:
        """First retransmission timeout: as configured, else max(4T, 10 ms, two loaded round trips, T more than the
        slowest of late, 5/4 of that of a full packet), rounded up to 1.024 us x 2^n. Of T and a full packet's time on
        its way the longer one counts."""
        if self._config.timeout:
            return TIMER_UNIT_NS << min(self._config.timeout, MAX_TIMEOUT)
        full_ns = (self.t_ns + self.forwarding_ns) * 5 // 4  # at slow ports the round trips of probes say little of it
        late_ns = self.slowest_ns + self.unit_ns
        wanted = max(4 * self.unit_ns, self._floor_ns, 2 * self.smoothed_rtt_ns, late_ns, full_ns)
        return TIMER_UNIT_NS << min((-(-wanted // TIMER_UNIT_NS) - 1).bit_length(), MAX_TIMEOUT)

    def silence_ns(self, may_send: bool) -> int:
        """How long to hear nothing before a reliability probe: T + target delay, or 3T with more to send and room in
        the window for it. Of T and a full packet's time on its way the longer one counts, here and for EV probes: an
        answer waits behind packets, and probes by a T that is shorter filled ports of 0.1 packets a BDP."""
        return 3 * self.unit_ns if may_send else 2 * self.unit_ns

    def late_ns(self) -> int:
        """Age of a packet that cannot have waited in a queue alone: T more than the slowest round trip of late, R at
        the least."""
        return max(self.slowest_ns + self.t_ns, self.reorder_ns)

    def answer_ns(self) -> int:
        """By when a reliability probe that goes before data is answered: at each port both wait for a packet that is
        being sent, and at both ends for a turn."""
        return self.t_ns + 2 * self.forwarding_ns + self.t_ns // 4

    def probe_interval_ns(self) -> int:
        """First pause before an EV probe of a bad path: as configured, else max(4T, 10 ms)."""
        return self._config.probe_interval_ns or max(4 * self.unit_ns, self._floor_ns)

    def probe_timeout_ns(self) -> int:
        """How long an EV probe may take: 4T, but never less than a loaded round trip."""
        return max(4 * self.unit_ns, 2 * self.smoothed_rtt_ns)
