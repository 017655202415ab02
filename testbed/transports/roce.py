"""A RoCE-like reliable connection, as NICs have it: a queue pair's packets follow one path (docs/baselines.md).

Sources of the defaults: InfiniBand (the timeout is 4.096 us x 2^n), `net_ib.cc` of NCCL (timeout 18, 7 retries).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mrc_testbed.hosts.mrc.settings import OF_ALL_PACKETS
from mrc_testbed.hosts.rc.failover import FailoverTimes
from mrc_testbed.hosts.rc.parts import ALIGN_BYTES
from mrc_testbed.testbed.scenario.text.fields import (
    Level,
    Model,
    PositiveDuration,
    Switchable,
    Whole,
    given,
    refuse,
    usual,
)
from mrc_testbed.testbed.switching.classes import ROCE_DATA
from mrc_testbed.testbed.switching.thresholds import MarkingCurve, PauseThresholds
from mrc_testbed.testbed.transports.base import (
    Chooser,
    FabricLayout,
    PortNeeds,
    SettingsBeside,
    SoftwareTimer,
    TimeWords,
    Transport,
)
from mrc_testbed.topos.cost import Cost
from mrc_testbed.topos.routes import Routing

IB_TIMER_NS = 4096
"""Unit of the InfiniBand timeout: it lasts 4.096 us x 2^timeout."""
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


class RoceSettings(Model):
    """The RoCE-like reliable connection: what its NICs and their switches would be set to."""

    recovery: Literal["go-back-n", "selective", "lossless"] = Field(
        default="go-back-n",
        description="sent again after a gap: all from it on, what is missing, nothing (any order is fine)",
        examples=["selective"],
    )
    planes: Literal["in-turn", "spread", "balanced"] = Field(
        default="in-turn",
        description="a QP keeps to one plane; or each packet takes one, with one window and rate, or one a plane",
        examples=["balanced"],
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
    given_xoff: Annotated[Level | None, given("1.0")] = usual(
        "xoff", "with pfc: a port pauses its link above this backlog of what came in by it; 1, with DCQCN 17", "1.0"
    )
    given_xon: Annotated[Level | None, given("0.8")] = usual(
        "xon", "with pfc: and lets it go on at this one; left out: 0.8 of xoff", "0.8"
    )
    failover: Literal["off", "port"] = Field(
        default="off",
        description="what becomes of a QP that has used up its retries: it fails, or a library moves its work on to"
        " the next port",
        examples=["port"],
    )
    port_recovery: Switchable = Field(
        default=False,
        description="with `failover: port`: the dead port is asked for, and used again if it answers in time",
        examples=["true"],
    )
    retry_hold_ns: Annotated[PositiveDuration | None, given("5s")] = Field(
        default=None,
        alias="retry_hold",
        description="with one port: a library waits so long after the last retry, then does what was open once again",
        examples=["5s"],
    )

    @model_validator(mode="after")
    def _in_order(self) -> RoceSettings:
        try:
            self.pause_thresholds()
        except ValueError:
            raise refuse("must be above 0 and at most `xoff`, such as {xoff: 1.0, xon: 0.8}", key="xon") from None
        return self

    @model_validator(mode="after")
    def _any_order(self) -> RoceSettings:
        if self.spreads and self.recovery != "lossless":
            why = f"planes keep no order among each other, which `{self.recovery}` takes for loss"
            raise refuse(f"{why}; write `recovery: lossless`, or `planes: in-turn`", key="planes")
        return self

    @property
    def spreads(self) -> bool:
        """Does a QP use all planes at once?"""
        return self.planes != "in-turn"

    def pause_thresholds(self) -> PauseThresholds:
        """Of lossless ports. Raises ValueError if they are not in order."""
        xoff = USUAL_XOFF_BDP[self.congestion_control] if self.given_xoff is None else self.given_xoff
        xon = USUAL_XON_SHARE * xoff if self.given_xon is None else self.given_xon
        return PauseThresholds(xoff, xon, MARKING[self.congestion_control])

    @property
    def timeout_ns(self) -> int:
        """The acknowledgement timeout."""
        return IB_TIMER_NS << self.timeout


_HEADER_BYTES = 14 + 40 + 8 + 12 + 4
"""Ethernet, IPv6, UDP, BTH, ICRC: of the packets in the middle of a message. The first one has a RETH too."""
_RETH_BYTES = 16
_AETH_BYTES = 4
_RECOVERS = {"go-back-n": "", "selective": ", selective", "lossless": ", any order"}
_PLANES = {"in-turn": "", "spread": ", spread over planes", "balanced": ", planes balanced by the sender"}
_CALLED = {"lossy": "RoCE, lossy", "deep": "RoCE, deep buffers", "pfc": "RoCE, PFC"}


def full_packet(payload_bytes: int, settings: RoceSettings) -> tuple[int, int]:
    """Unless it goes back N, each packet says where it belongs."""
    return payload_bytes, _HEADER_BYTES + (0 if settings.recovery == "go-back-n" else _RETH_BYTES)


def _without_planes(settings: RoceSettings, around: SettingsBeside) -> Iterator[tuple[str, str]]:
    if not settings.spreads:
        return
    if around.planes == 1:
        fix = "write `fabric.layout: as-written`" if around.folded else "write 2 `fabric.planes` or more"
        folded = "the folded fabric has" if around.folded else "there is"
        yield "planes", f"{folded} one plane, so there is nothing to choose; {fix}, or `planes: in-turn`"
    if around.hosts_hash:
        yield "planes", "`ecmp.hosts: hashed` would draw one port for each QP, and this uses all; remove one of the two"
    if settings.failover == "port":
        yield "planes", "a QP on all planes leaves a dead one by itself; write `failover: off`, or `planes: in-turn`"


def contradictions(settings: RoceSettings, around: SettingsBeside) -> Iterator[tuple[str, str]]:
    """Of planes used at once, failover, and retries of operations: what they lack, or what is there twice."""
    yield from _without_planes(settings, around)
    key = "failover" if settings.failover == "port" else "retry_hold" if settings.retry_hold_ns else ""
    if settings.port_recovery and settings.failover == "off":
        yield "port_recovery", "no port fails over, so none can come back; write `failover: port`, or remove this key"
    if settings.failover == "port" and around.planes == 1:
        fix = "write `fabric.layout: as-written`" if around.folded else "write 2 `fabric.planes` or more"
        folded = "the folded fabric has" if around.folded else "there is"
        yield "failover", f"{folded} one plane, so a host has no other port to move to; {fix}, or `failover: off`"
    if settings.failover == "port" and settings.retry_hold_ns:
        yield "retry_hold", "`failover: port` has the other ports do it again at once; remove one of the two"
    elif settings.retry_hold_ns and around.planes > 1:
        why = f"it holds a QP whose one port failed, and hosts have {around.planes}"
        yield "retry_hold", f"{why}; write `fabric.layout: folded`, or `failover: port` in its place"
    if key and around.hosts_hash:
        yield key, "a QP has one port each, and `ecmp.hosts: hashed` would draw them; write `ecmp.hosts: in-turn`"
    if key and around.verbs:
        yield key, "programs with verbs have their own library, which decides this; remove this key"


def called(settings: RoceSettings) -> str:
    """Never RoCE alone: its name says what its switches do, as most people run it with PFC."""
    library = ", failover" if settings.failover == "port" else ", retry of operations" if settings.retry_hold_ns else ""
    return _CALLED[settings.buffers] + (_PLANES[settings.planes] or _RECOVERS[settings.recovery]) + library


def request(settings: RoceSettings, endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """What is of all packets, and its own group."""
    keys = ("recovery", "planes", "timeout_ns", "retries", "congestion_control", "failover", "port_recovery")
    own = {**{key: getattr(settings, key) for key in keys}, "retry_hold_ns": settings.retry_hold_ns or 0}
    return {**{key: endpoint[key] for key in OF_ALL_PACKETS}, "roce": own}


def needs(settings: RoceSettings) -> PortNeeds:
    """What `buffers` says."""
    if settings.buffers == "deep":
        return PortNeeds(drop=DEEP_DROP_BDP, why="roce.buffers: deep (without it: `buffers: lossy`)")
    return PortNeeds(pause=settings.pause_thresholds() if settings.buffers == "pfc" else None)


def timers(settings: RoceSettings) -> Iterator[SoftwareTimer]:
    """The acknowledgement timeout, and what the library waits for."""
    name = f"RoCE's acknowledgement timeout ({settings.timeout}, {settings.retries} retries)"
    yield SoftwareTimer(name, settings.timeout_ns)
    if settings.port_recovery:
        yield SoftwareTimer(
            "the library's wait between two batches of messages to a dead port", FailoverTimes().answer_ns
        )
    if settings.retry_hold_ns:
        yield SoftwareTimer("the library's hold before it does an operation again", settings.retry_hold_ns)


def settings_words(settings: RoceSettings, time: TimeWords) -> str:
    """`go-back-n, timeout 18 (1.07 s), 7 retries, congestion control dcqcn`."""
    timeout = f"timeout {settings.timeout} ({time(settings.timeout_ns)}), {settings.retries} retries"
    planes = f", planes {settings.planes}" if settings.spreads else ""
    library = ""
    if settings.failover == "port":
        library = f", failover to the next port, port recovery {'on' if settings.port_recovery else 'off'}"
    if settings.retry_hold_ns:
        library = f", operations done again after {time(settings.retry_hold_ns)}"
    return f"{settings.recovery}{planes}, {timeout}, congestion control {settings.congestion_control}{library}"


ROCE = Transport(
    "roce",
    protocol="roce",
    group="roce",
    routings=(Routing.ECMP_STATIC, Routing.BGP),
    layout=FabricLayout.FOLDED,
    chooser=Chooser.SWITCH,
    cost=Cost("roce", 50e-6, 140e-6, 20_000.0),
    full_packet=full_packet,
    called=called,
    request=request,
    counted={
        "Retransmissions, by sender": "retransmitted",
        "Data packets out of order, by receiver": "reordered",
        "NAKs of a gap, by sender": "nacks_received",
        "Timeouts, by sender": "timeouts",
        "Congestion notifications, by sender": "cnps_received",
        "Packets that endpoints refused, by receiver": "refused_* unknown_*",
    },
    data=ROCE_DATA,
    answer_bytes=_HEADER_BYTES + _AETH_BYTES,
    settings=RoceSettings,
    needs=needs,
    contradictions=contradictions,
    timers=timers,
    settings_words=settings_words,
    buffers=lambda settings: settings.buffers,
    any_order=lambda settings: settings.recovery == "lossless",
    resends_all=lambda settings: settings.recovery == "go-back-n",
    cut_bytes=lambda settings: ALIGN_BYTES if settings.failover == "port" else 0,
    cut_by_marks=lambda settings: settings.congestion_control != "none",
    timeout_code_ns=IB_TIMER_NS,
)
