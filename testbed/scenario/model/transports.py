"""The keys that make a scenario run over something else than MRC on SRv6, and the groups `roce`, `tcp` and `ecmp`.

What follows from what: `transport` decides the usual `routing` and `fabric.layout`. Sources of the defaults: InfiniBand
(the timeout is 4.096 us x 2^n), `net_ib.cc` of NCCL (timeout 18, 7 retries), Linux (`tcp_rto_min` 200 ms).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, PlainValidator, WithJsonSchema, field_validator, model_validator

from mrc_testbed.testbed.scenario.model.step_models import MAX_QPS
from mrc_testbed.testbed.scenario.model.switch_ports import Level
from mrc_testbed.testbed.scenario.text.fields import Duration, Model, Switchable, Whole, given, one_of, refuse
from mrc_testbed.testbed.scenario.text.fields import PositiveDuration as Positive
from mrc_testbed.testbed.switching.thresholds import MarkingCurve, PauseThresholds
from mrc_testbed.topos.plan import Routing
from mrc_testbed.topos.shape import HEADER_BYTES

W = TypeVar("W", bound=StrEnum)
IB_TIMER_NS = 4096
"""Unit of the InfiniBand timeout: it lasts 4.096 us x 2^timeout."""
LEAST_RTO_MIN_NS, MOST_RTO_MIN_NS = 1_000_000, 120_000_000_000
"""Of `tcp.rto_min`. The most is Linux's TCP_RTO_MAX."""


class TransportKind(StrEnum):
    """What the hosts speak."""

    MRC = "mrc"
    ROCE = "roce"
    TCP = "tcp"
    MPTCP = "mptcp"

    @property
    def of_kernel(self) -> bool:
        """True where the kernel makes the packets, of TCP: virtual time has no kernel, and no daemon counts them."""
        return self in (TransportKind.TCP, TransportKind.MPTCP)


class WorldKind(StrEnum):
    """Where a run happens: in namespaces of this kernel and in real time, or computed, in virtual time."""

    KERNEL = "kernel"
    VIRTUAL = "virtual"


class FabricLayout(StrEnum):
    """How the planes of `fabric` are built: as they are written, or as one plane whose ports have the rate of all."""

    AS_WRITTEN = "as-written"
    FOLDED = "folded"


class PathRoutes(StrEnum):
    """Between which hosts the kernel has routes, one a path, where hosts choose paths."""

    TALKING = "talking"
    """Those that the workload makes talk."""
    ALL = "all"


USUAL_ROUTING = {
    TransportKind.MRC: Routing.SRV6,
    TransportKind.ROCE: Routing.ECMP_STATIC,
    TransportKind.TCP: Routing.ECMP_STATIC,
    TransportKind.MPTCP: Routing.ECMP_STATIC,
}
USUAL_LAYOUT = {
    TransportKind.MRC: FabricLayout.AS_WRITTEN,
    TransportKind.ROCE: FabricLayout.FOLDED,
    TransportKind.TCP: FabricLayout.FOLDED,
    TransportKind.MPTCP: FabricLayout.AS_WRITTEN,
}


DEEP_DROP_BDP = 64
"""Backlog that `roce.buffers: deep` allows a port."""
USUAL_XOFF_BDP = {"none": 1.0, "dcqcn": 17.0, "dcqcn-vendor": 17.0}
"""htsim's RoCE pauses above 15 packets of 9000 bytes at 100 Gb/s, its DCQCN above 305, so that marks come first."""
USUAL_XON_SHARE = 0.8
"""htsim's RoCE goes on at 12 packets of these 15."""
MARKING = {
    "none": None,
    # 5 and 200 KB at 40 Gb/s, 1 %; 100 and 400 KB at 25 Gb/s, 20 %; both at T = 13 us.
    "dcqcn": MarkingCurve(0.08, 3.1, 0.01),
    "dcqcn-vendor": MarkingCurve(2.5, 10, 0.2),
}
"""How lossless switches mark, by congestion control: the same two sources as hosts/rc/dcqcn.py."""


def _read(noun: str, kind: type[W]) -> PlainValidator:
    known = one_of(noun, [word.value for word in kind])
    return PlainValidator(lambda value: kind(known(value)))


def _enum(kind: type[StrEnum]) -> WithJsonSchema:
    return WithJsonSchema({"enum": [word.value for word in kind]})


Transport = Annotated[TransportKind, _read("a transport", TransportKind), _enum(TransportKind)]
RoutingWord = Annotated[Routing, _read("a routing", Routing), _enum(Routing)]
WorldWord = Annotated[WorldKind, _read("a world", WorldKind), _enum(WorldKind)]
RoutesWord = Annotated[PathRoutes, _read("a choice of routes", PathRoutes), _enum(PathRoutes)]
Layout = Annotated[FabricLayout, _read("a layout", FabricLayout), _enum(FabricLayout)]


def _usual(field: str, about: str, example: str) -> Any:
    return Field(default=None, alias=field, description=about, examples=[example])


class RoceSettings(Model):
    """The RoCE-like reliable connection: what its NICs and their switches would be set to."""

    recovery: Literal["go-back-n", "selective"] = Field(
        default="go-back-n", description="what is sent again after a gap", examples=["selective"]
    )
    timeout: Whole = Field(
        default=18, ge=0, le=31, description="acknowledgement timeout, 4.096 us x 2^timeout", examples=[16]
    )
    retries: Whole = Field(
        default=7, ge=0, le=7, description="timeouts without progress before the QP fails", examples=[7]
    )
    congestion_control: Literal["none", "dcqcn", "dcqcn-vendor"] = Field(
        default="dcqcn", description="how fast a QP may send", examples=["none"]
    )
    buffers: Literal["lossy", "deep", "pfc"] = Field(
        default="lossy",
        description="switch ports: drop as usual, only above 64 BDP, or pause each other (virtual time only)",
        examples=["deep"],
    )
    given_xoff: Annotated[Level | None, given("1.0")] = _usual(
        "xoff", "with pfc: a port pauses its link above this backlog of what came in by it; 1, with DCQCN 17", "1.0"
    )
    given_xon: Annotated[Level | None, given("0.8")] = _usual(
        "xon", "with pfc: and lets it go on at this one; left out: 0.8 of xoff", "0.8"
    )

    @model_validator(mode="after")
    def _in_order(self) -> RoceSettings:
        try:
            self.pause_thresholds()
        except ValueError:
            raise refuse("must be above 0 and at most `xoff`, such as {xoff: 1.0, xon: 0.8}", key="xon") from None
        return self

    def pause_thresholds(self) -> PauseThresholds:
        """Of lossless ports. Raises ValueError if they are not in order."""
        xoff = USUAL_XOFF_BDP[self.congestion_control] if self.given_xoff is None else self.given_xoff
        xon = USUAL_XON_SHARE * xoff if self.given_xon is None else self.given_xon
        return PauseThresholds(xoff, xon, MARKING[self.congestion_control])

    @property
    def timeout_ns(self) -> int:
        """The acknowledgement timeout."""
        return IB_TIMER_NS << self.timeout


class TcpSettings(Model):
    """Kernel TCP, and the subflows of MPTCP."""

    congestion_control: Literal["cubic", "reno", "bbr", "dctcp"] = Field(
        default="cubic", description="the kernel's, by its name", examples=["bbr"]
    )
    rto_min_ns: Positive = Field(
        default=200_000_000,
        alias="rto_min",
        description="least retransmission timeout",
        examples=["5ms"],
        json_schema_extra={"default": "200ms"},
    )
    connections: Annotated[Whole | None, Field(ge=1, le=MAX_QPS), given("4")] = _usual(
        "connections", "connections of a flow or pair of ranks; left out: its `qps`", "4"
    )

    @field_validator("rto_min_ns")
    @classmethod
    def _settable(cls, value: int) -> int:
        """No timer of TCP waits longer than the most; the kernel's clocks do not tell less than the least apart."""
        if not LEAST_RTO_MIN_NS <= value <= MOST_RTO_MIN_NS:
            raise refuse("must be from 1ms to 2min, such as 5ms")
        return value


TCP_PAYLOAD_BYTES = 4096 - 12
"""Data of a full segment: a maximum segment size of 4096 bytes holds the time stamps too."""
_TCP_HEADER_BYTES = 14 + 40 + 20 + 12
"""Ethernet, IPv6, TCP, time stamps."""
_DSS_BYTES = 28
"""Options of MPTCP in a packet with data: where it belongs in the whole stream, and how far that was received."""
_ROCE_HEADER_BYTES = 14 + 40 + 8 + 12 + 4
"""Ethernet, IPv6, UDP, BTH, ICRC: of the packets in the middle of a message. The first one has a RETH too."""
_RETH_BYTES = 16

ANSWER_BYTES = {TransportKind.MRC: 14 + 40 + 40 + 8 + 52, TransportKind.ROCE: 14 + 40 + 8 + 12 + 4 + 4}
"""What acknowledges a message, on a veth: a SACK of MRC behind two IPv6 headers; an ACK of RoCE, with AETH and ICRC."""


def full_packet(transport: TransportKind, payload_bytes: int, roce: RoceSettings) -> tuple[int, int]:
    """Data and headers of a full data packet on a veth, in bytes. `payload_bytes`: what endpoints of ours are told."""
    if transport is TransportKind.MPTCP:
        return TCP_PAYLOAD_BYTES - _DSS_BYTES, _TCP_HEADER_BYTES + _DSS_BYTES
    if transport is TransportKind.TCP:
        return TCP_PAYLOAD_BYTES, _TCP_HEADER_BYTES
    if transport is TransportKind.ROCE:
        return payload_bytes, _ROCE_HEADER_BYTES + (_RETH_BYTES if roce.recovery == "selective" else 0)
    return payload_bytes, HEADER_BYTES


class VirtualSettings(Model):
    """The key `virtual`: what virtual time leaves out and can put back."""

    busy_ns: Duration = Field(
        default=0,
        alias="busy",
        description="CPU time that a host needs for each packet; its turns wait for it",
        examples=["100us"],
    )
    lateness_ns: Annotated[Duration | None, given("0s")] = Field(
        default=None,
        alias="lateness",
        description="by how much the turns of hosts are late, in the median; 0s: exact; left out: 100us, at most T/200",
        examples=["0s"],
    )


class EcmpSettings(Model):
    """How switches choose among equal next hops, and hosts among their ports."""

    hash: Literal["polarised", "independent"] = Field(
        default="polarised", description="one hash seed in all switches, or one in each", examples=["independent"]
    )
    repath: Switchable = Field(
        default=False,
        description="switches hash what the sending kernel drew anew at each timeout (as with flow labels)",
        examples=["true"],
    )
    hosts: Literal["in-turn", "hashed"] = Field(
        default="in-turn",
        description="hosts deal QPs and connections out to their ports, or hash them as switches do (protocol, ports)",
        examples=["hashed"],
    )
    seed: Annotated[Whole | None, Field(ge=0, lt=1 << 32), given("3")] = Field(
        default=None, description="of the hash; left out, the scenario's `seed`", examples=[3]
    )


def program_need(transport: TransportKind, routing: Routing, roce: RoceSettings, ecmp: EcmpSettings) -> str:
    """What only the port program can do for this transport, and how to do without; empty if nothing."""
    if routing is Routing.BGP:
        return "bgp (its packets go before data; without it: `routing: ecmp-static`)"
    if transport.of_kernel and not ecmp.repath:
        return f"{transport} (or switches hash what its kernel draws anew at each timeout: `ecmp: {{repath: true}}`)"
    if transport is TransportKind.ROCE and roce.buffers == "deep":
        return "roce.buffers: deep (without it: `buffers: lossy`)"
    return ""
