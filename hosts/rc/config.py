"""Settings of one RoCE-like endpoint, and the attributes of a QP that its peer must know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mrc_testbed.hosts.common.attributes import check_integers
from mrc_testbed.hosts.common.errors import PeerAttributeError, UnknownChoiceError
from mrc_testbed.hosts.rc.dcqcn import PROFILES

PAYLOAD_BYTES = 4096
"""Payload of a full data packet: the largest path MTU of InfiniBand."""
GO_BACK_N = "go-back-n"
SELECTIVE = "selective"
LOSSLESS = "lossless"
RECOVERIES = (GO_BACK_N, SELECTIVE, LOSSLESS)
IN_TURN = "in-turn"
SPREAD = "spread"
BALANCED = "balanced"
SPREADINGS = (IN_TURN, SPREAD, BALANCED)
NO_CONTROL = "none"
CONTROLS = (NO_CONTROL, *PROFILES)
IB_TIMER_NS = 4096
"""Unit of the acknowledgement timeout, which lasts 4.096 us x 2^n."""


@dataclass(frozen=True, slots=True)
class RcConfig:
    """One host's settings. `rtt_ns` is T (0: what is agreed on as base RTT); rates are per plane (port)."""

    host: int
    planes: int
    rtt_ns: int
    port_rate_bps: int
    seed: int = 1
    payload_bytes: int = PAYLOAD_BYTES
    recovery: str = GO_BACK_N
    timeout_ns: int = IB_TIMER_NS << 18
    """Time without progress after which everything outstanding is sent again (NCCL: 2^18)."""
    retries: int = 7
    """Such timeouts in a row that a QP survives (NCCL, and the most that InfiniBand can say)."""
    spreading: str = IN_TURN
    """How the planes to a host are used: a QP keeps to one, or each packet takes one (`mrc_testbed.hosts.rc.planes`),
    which needs `LOSSLESS`."""
    congestion_control: str = "dcqcn"
    icrc: bool = False
    """Compute and check the CRC trailer; off, the trailer is 0 and not looked at."""
    pace: bool = True
    """Hold data back to the port rate. Off only for benchmarks."""
    speed: int = 1
    """How many times faster than written all is: times of the library are divided by it."""
    swift: int = 1
    """As of `EndpointConfig`."""
    failover: bool = False
    """The QPs of a pair are one a port, and a failed port's work goes on over the others (hosts/rc/failover.py)."""
    port_recovery: bool = False
    """Such a port is asked for, and used again."""
    retry_hold_ns: int = 0
    """With one port: when a QP has used up its retries, wait so long, then do what was open once again; 0: do not."""
    hash_seed: int | None = None
    """With which QPs are hashed to the ports of this host, as switches hash them; None deals them out in turn."""

    def __post_init__(self) -> None:
        """Raises `UnknownChoiceError`."""
        if self.recovery not in RECOVERIES:
            raise UnknownChoiceError("recovery", self.recovery, RECOVERIES)
        if self.spreading not in SPREADINGS or (self.spreads and self.recovery != LOSSLESS):
            raise UnknownChoiceError("planes", self.spreading, SPREADINGS if self.recovery == LOSSLESS else (IN_TURN,))
        if self.congestion_control not in CONTROLS:
            raise UnknownChoiceError("congestion_control", self.congestion_control, CONTROLS)

    @property
    def spreads(self) -> bool:
        """Does a QP use all planes at once?"""
        return self.spreading != IN_TURN

    @property
    def placed(self) -> bool:
        """Does each packet say where it belongs, so that it is kept whatever came before it?"""
        return self.recovery != GO_BACK_N


@dataclass(frozen=True, slots=True)
class RcAttributes:
    """One side of a QP as its peer must know it. Carried out of band, see `as_json`."""

    qpn: int
    psn: int
    """PSN of the first data packet this side will send."""
    mtu: int
    region_address: int
    """First virtual address of the registered region."""
    region_bytes: int
    rkey: int
    recovery: str

    def as_json(self) -> dict[str, Any]:
        """The set-up object."""
        return {
            "qpn": self.qpn,
            "psn": self.psn,
            "mtu": self.mtu,
            "recovery": self.recovery,
            "regions": [{"addr": self.region_address, "len": self.region_bytes, "rkey": self.rkey}],
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> RcAttributes:
        """Inverse of `as_json`, checked. Raises KeyError, IndexError or TypeError for what is missing or has another
        shape, and `PeerAttributeError` for a value that cannot be."""
        region = fields["regions"][0]
        values = {key: fields[key] for key in ("qpn", "psn", "mtu", "recovery")}
        values |= {"region_address": region["addr"], "region_bytes": region["len"], "rkey": region["rkey"]}
        check_integers(values, _RANGES)
        check_recovery(values["recovery"], RECOVERIES)
        return cls(**values)


_RANGES = {
    "qpn": (0, (1 << 24) - 1),
    "psn": (0, (1 << 24) - 1),
    "mtu": (1, (1 << 16) - 1),
    "region_address": (0, (1 << 64) - 1),
    "region_bytes": (0, (1 << 64) - 1),
    "rkey": (0, (1 << 32) - 1),
}


def check_recovery(recovery: object, wanted: Sequence[str]) -> None:
    """Raises `PeerAttributeError` for another one than those `wanted`: its packets have other headers."""
    if recovery not in wanted:
        raise PeerAttributeError("recovery", recovery, " or ".join(wanted))
