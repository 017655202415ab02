"""Settings of one endpoint, and the attributes of a QP that its peer must know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mrc_testbed.hosts.common.bth import CLASS_CONTROL, ECN_ECT0
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.attributes import check_peer

PAYLOAD_BYTES = 4096
"""Payload of a full data packet: the path MTU of the API's example."""
FRAME_BYTES = 14 + 40 + 40 + 8
"""Ethernet, outer IPv6, inner IPv6, UDP: what the wire carries beside the UDP payload."""
FORWARDINGS = 4
"""Ports on the longest path over two tiers of switches; each switch takes in a whole packet before it sends it on."""
MPR_UNIT = 128
"""PSNs per unit of the `mpr` attribute (API)."""

DEFAULT_ALGORITHM = "nscc"
"""Congestion control, see hosts/mrc/cc."""
DEFAULT_SELECTION = "adaptive"
"""Choice of EVs, see hosts/mrc/evselect."""
WITH_DATA, CONTROL = "data", "control"
"""Values of `probe_class`."""
WAIT, PASS = "wait", "pass"
"""Values of `busy_port`."""
GOOD, PROBES = "good", "probes"
"""Values of `allow_to`."""
STAMP_SHIFT = 13
"""Timestamps with tsr = 1, our own unit, count 2^13 ns = 8.192 us in 16 bits and wrap after 537 ms (ours)."""
STAMPED_T = 8
"""Least number of T before the 16-bit time stamp wraps; with a longer T the unit is doubled until it fits. Round trips
are unambiguous up to one wrap, one-way delays up to half of one."""
SHORT_STAMP_SHIFT = 7
"""Timestamps with tsr = 0, the protocol's unit, count 128 ns (readers) and wrap after 8.4 ms."""
SHORT_STAMPS_UP_TO_NS = 100_000
"""T up to which they do: 83 T are between two wraps then, and our own unit would be a twelfth of T and more."""
_NEEDED = ("qpn", "psn", "mtu", "mpr", "max_wimm")
_OPTIONAL = ("planes", "port_mask", "dynamic_mpr", "trim_nack", "svc_time", "timeout", "linear", "exp", "tsr_unit_ns")


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """One host's settings. `rtt_ns` is the floor of T, the unit of all timers (0: as measured); rates are per plane
    (port)."""

    host: int
    planes: int
    udp_port: int
    """UDP source port of the one socket = EV[15:0] of every packet this endpoint sends."""
    rtt_ns: int
    port_rate_bps: int
    seed: int = 1
    payload_bytes: int = PAYLOAD_BYTES
    ev_active: int = 128
    """Most EVs in use at once to one peer, all planes together; further paths are backups (P1 2.1, 2.4)."""
    ev_min_active: int | None = None
    """Fewest EVs kept in use to one peer (API example: a quarter of the active ones, which None means). Shared out
    among the planes, at least one each; see `Peer.lose` for planes that are dead."""
    mpr: int = 8
    """Largest PSN range this side tracks, in units of 128 PSNs (8: the API's example)."""
    max_wimm: int = 32
    """Most WRITE-with-immediate messages outstanding on a QP (API; 32: readers)."""
    congestion_control: str = DEFAULT_ALGORITHM
    """A name in `mrc_testbed.hosts.mrc.cc.ALGORITHMS`, or of a plugin."""
    ev_selection: str = DEFAULT_SELECTION
    """A name in `mrc_testbed.hosts.mrc.evselect.SELECTIONS`, or of a plugin."""
    busy_port: str = WAIT
    """What a packet does when the port of the plane whose turn it is has no room: PASS, the plane loses its turn to the
    next whose port has (spec 9.3, by its readers), or WAIT for it (ours). Selections without rotations wait."""
    switches_trim: bool = False
    """Do the switches of this fabric trim? Must be the same on all hosts: NSCC's target delay follows from it."""
    dynamic_mpr: int = 0
    """PSN range that this side asks its peers to keep to, in every SACK and in units of 128 PSNs; at most `mpr`. 0: it
    asks for nothing and ignores what peers ask for (API: it holds only if both ends have it)."""
    trim_nack: bool = True
    """As a responder, ask for trimmed packets by NACK (API). Off, peers infer their loss as any other."""
    timeout: int = 0
    """Acknowledgement timeout, 1.024 us x 2^timeout, at most 24; 0: max(4T, 10 ms, two loaded round trips, T more than
    the slowest of late, 5/4 of that of a full packet), see `Timing.rto_ns`."""
    linear_tries: int = 7
    exponential_tries: int = 5
    """Retransmission timeouts at a constant, then at a doubling interval, before the QP fails (API: at most 7 and 25,
    and 25 of the latter are endless; the 5 is ours)."""
    reorder_ns: int | None = None
    """R: a packet sent this long before one that has arrived is taken for lost. None: follows the round trips, see
    `Timing.reorder_ns`; 0: `reorder_packets` alone decides."""
    reorder_packets: int = 3
    """PSNs above a hole that must be acknowledged before R counts against it."""
    reinfer: bool = True
    """Infer the loss of a retransmission from SACKs, as that of a first attempt. Off, only the timeout finds it."""
    probe_interval_ns: int = 0
    """First pause before an EV probe of a bad path; 0: max(4T, 10 ms)."""
    allow_to: str = PROBES
    """What a path is that a controller allows again: GOOD (readers; the API can ask for either), or ASSUMED_BAD until
    PROBES have vouched for it."""
    bad_after_losses: int = 1
    """Packets that an EV loses untrimmed within 64 T before it is ASSUMED_BAD (P1 2.1: one; a reader: "repeated")."""
    probe_class: str = CONTROL
    """How EV probes on bad paths travel: WITH_DATA, where switches may mark them (readers, of reliability probes, and
    needed by the way from ASSUMED_BAD to SKIP), or in the class of CONTROL, before data. Other EV probes do always."""
    probe_successes: int = 3
    """Consecutive answers to EV probes before a path carries data again (P1 2.1: "enough"; the 3 is
    ours)."""
    dscp_data: int = wire.CLASS_TRIMMABLE >> 2
    """DSCP of data that switches may trim. An operator's choice, as the next ones (readers name no values)."""
    dscp_retransmission: int = wire.CLASS_TRIMMABLE_RETX >> 2
    """The same of data sent again."""
    dscp_no_trim: int = wire.CLASS_NO_TRIM >> 2
    """Of probes that wait with the data and must not be trimmed."""
    dscp_control: int = CLASS_CONTROL >> 2
    """Of SACKs, NACKs, acknowledgements and other probes."""
    dscp_trimmed: int = wire.DSCP_TRIMMED
    """What switches write into packets that they trim, but for ports towards hosts."""
    dscp_trimmed_last_hop: int = wire.DSCP_TRIMMED_LASTHOP
    """What ports towards hosts write. Where both are one value, nobody can tell them apart: every trim counts as one
    of the way, and costs its EV."""
    icrc: bool = False
    """Compute and check the CRC trailer; off, the trailer is 0 and not looked at."""
    forwardings: int = FORWARDINGS
    """Ports on the longest path to a peer, this host's among them, as if all had its rate: one of half the rate counts
    as two."""
    pace: bool = True
    """Hold data back to the port rate. Off only for benchmarks."""
    swift: int = 1
    """How many times faster than daemons hosts and switches are. Least times that only their software makes necessary
    are divided by it; those of the protocol are not."""

    @property
    def data_class(self) -> int:
        """Traffic class of data."""
        return self.dscp_data << 2 | ECN_ECT0

    @property
    def retransmission_class(self) -> int:
        """Traffic class of data sent again."""
        return self.dscp_retransmission << 2 | ECN_ECT0

    @property
    def stamp_shift(self) -> int:
        """A timestamp counts 2^this ns."""
        return SHORT_STAMP_SHIFT if 0 < self.rtt_ns <= SHORT_STAMPS_UP_TO_NS else self.own_stamp_shift

    @property
    def own_stamp_shift(self) -> int:
        """The same of timestamps with tsr = 1; both ends of a QP have the same T."""
        wraps = STAMPED_T * self.rtt_ns >> STAMP_SHIFT + 16
        return STAMP_SHIFT + wraps.bit_length()

    @property
    def ts_field(self) -> int:
        """What goes with each timestamp to say its unit."""
        return wire.TS_FIELD_SHORT if self.stamp_shift == SHORT_STAMP_SHIFT else wire.TS_FIELD


@dataclass(frozen=True, slots=True)
class QpAttributes:
    """One side of a QP as its peer must know it (API; docs/protocol.md, "A QP"). Carried out of band, see
    `as_json`."""

    qpn: int
    psn: int
    """PSN of the first data packet this side will send."""
    mtu: int
    mpr: int
    max_wimm: int
    region_address: int
    """First virtual address of the registered region; `post_write` of the peer takes addresses from here on."""
    region_bytes: int
    rkey: int
    planes: int = 0
    """Ports of this side, 0: not said."""
    port_mask: int = 0
    """Bit n - 1: port n was usable when this was written; 0: not said. Port Status Updates overrule it."""
    dynamic_mpr: bool = False
    """This side takes new values of `mpr` from SACKs. Effective when both ends say so."""
    trim_nack: bool = True
    """This side sends NACKs of trimmed packets; without it they are left to the peer's loss inference."""
    svc_time: bool = False
    """Service time in endpoint responses: never."""
    timeout: int = 0
    """Acknowledgement timeout as 1.024 us x 2^timeout; 0: worked out from T. It informs the peer, as the next two."""
    linear: int = 7
    exp: int = 5
    tsr_unit_ns: int = 1 << STAMP_SHIFT
    """Unit of the timestamps that this side sends."""

    def as_json(self) -> dict[str, Any]:
        """What the two sides exchange before they connect, as a JSON object (its form is ours)."""
        return {
            "ver": 1,
            "qpn": self.qpn,
            "psn": self.psn,
            "mtu": self.mtu,
            "mpr": self.mpr,
            "max_wimm": self.max_wimm,
            "planes": self.planes,
            "port_mask": self.port_mask,
            "dynamic_mpr": self.dynamic_mpr,
            "trim_nack": self.trim_nack,
            "svc_time": self.svc_time,
            "timeout": self.timeout,
            "linear": self.linear,
            "exp": self.exp,
            "tsr_unit_ns": self.tsr_unit_ns,
            "regions": [{"addr": self.region_address, "len": self.region_bytes, "rkey": self.rkey}],
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> QpAttributes:
        """Inverse of `as_json`, checked. Unknown keys are ignored. Raises KeyError, IndexError or TypeError for what is
        missing or has another shape, and `PeerAttributeError` for a value that cannot be."""
        region = fields["regions"][0]
        values = {key: fields[key] for key in _NEEDED} | {key: fields[key] for key in _OPTIONAL if key in fields}
        values |= {"region_address": region["addr"], "region_bytes": region["len"], "rkey": region["rkey"]}
        check_peer(values)
        return cls(**values)
