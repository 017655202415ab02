"""Kernel TCP: connections whose path the switches hash. Its timers are Linux's (`tcp_rto_min` 200 ms)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from mrc_testbed.testbed.scenario.text.fields import MAX_QPS, Model, Whole, given, refuse, usual
from mrc_testbed.testbed.scenario.text.fields import PositiveDuration as Positive
from mrc_testbed.testbed.transports.base import Chooser, FabricLayout, PortNeeds, SoftwareTimer, TimeWords, Transport
from mrc_testbed.topos.cost import Cost
from mrc_testbed.topos.routes import Routing

LEAST_RTO_MIN_NS, MOST_RTO_MIN_NS = 1_000_000, 120_000_000_000
"""Of `tcp.rto_min`. The most is Linux's TCP_RTO_MAX."""
PAYLOAD_BYTES = 4096 - 12
"""Data of a full segment: a maximum segment size of 4096 bytes holds the time stamps too."""
HEADER_BYTES = 14 + 40 + 20 + 12
"""Ethernet, IPv6, TCP, time stamps."""
COUNTED: Mapping[str, str] = {"Retransmissions, by sender": "retransmitted"}


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
    connections: Annotated[Whole | None, Field(ge=1, le=MAX_QPS), given("4")] = usual(
        "connections", "connections of a flow or pair of ranks; left out: its `qps`", "4"
    )

    @field_validator("rto_min_ns")
    @classmethod
    def _settable(cls, value: int) -> int:
        """No timer of TCP waits longer than the most; the kernel's clocks do not tell less than the least apart."""
        if not LEAST_RTO_MIN_NS <= value <= MOST_RTO_MIN_NS:
            raise refuse("must be from 1ms to 2min, such as 5ms")
        return value


def request(settings: TcpSettings, endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Its own group; `payload` says how large the pieces are that a program writes."""
    own = {"congestion_control": settings.congestion_control, "rto_min_ns": settings.rto_min_ns}
    return {"tcp": {**own, "payload_bytes": endpoint["payload_bytes"]}}


def needs_of(word: str) -> PortNeeds:
    """Switches must hash what its kernel draws again, or see what the program of their ports leaves them to see."""
    how = "or switches hash what its kernel draws again at each timeout: `ecmp: {repath: true}`"
    return PortNeeds(why=f"{word} ({how})", unless_repath=True)


def timers(settings: TcpSettings) -> Iterator[SoftwareTimer]:
    """The least retransmission timeout."""
    yield SoftwareTimer("TCP's least retransmission timeout", settings.rto_min_ns)


def settings_words(settings: TcpSettings, time: TimeWords) -> str:
    """`least retransmission timeout 200 ms, a connection a QP`."""
    each = f"{settings.connections} connections a flow" if settings.connections else "a connection a QP"
    return f"least retransmission timeout {time(settings.rto_min_ns)}, {each}"


TCP = Transport(
    "tcp",
    protocol="tcp",
    group="tcp",
    routings=(Routing.ECMP_STATIC, Routing.BGP),
    layout=FabricLayout.FOLDED,
    chooser=Chooser.SWITCH,
    cost=Cost("tcp", 50e-6, 140e-6, 20_000.0),
    full_packet=lambda _payload_bytes, _settings: (PAYLOAD_BYTES, HEADER_BYTES),
    called=lambda settings: f"TCP, {settings.congestion_control}",
    request=request,
    counted=COUNTED,
    of_kernel=True,
    settings=TcpSettings,
    needs=lambda _settings: needs_of("tcp"),
    timers=timers,
    settings_words=settings_words,
)
