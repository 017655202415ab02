"""The section `trimming`: what switches leave of packets that they trim.

Sources: SONiC's design (sonic-net/SONiC, doc/packet_trimming: one size, one DSCP or one by egress port, one queue) and
Cumulus Linux 5.14 (256 to 1024 bytes, a multiple of 4). Neither says where the size begins: from Ethernet on is ours.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.scenario.text.fields import Model, Switchable, Whole, refuse
from mrc_testbed.testbed.scenario.text.units import SIZE, UnitError, format_size
from mrc_testbed.testbed.switching.classes import USUAL_TRIMMING, TrimRules

HEADERS = "headers"
MOST_DSCP = 63
MOST_BYTES = 1024
"""Cumulus: the largest of its sizes."""


def _size(value: object) -> int:
    if value == HEADERS:
        return 0
    try:
        size = SIZE.parse(value)
    except UnitError:
        hint = did_you_mean(value, [HEADERS]) if isinstance(value, str) else ""
        raise refuse(f"must be `headers` or a size such as 128B{hint}") from None
    if not size or size > MOST_BYTES or size % 4:
        raise refuse(f"must be a multiple of 4 bytes up to {MOST_BYTES}B, such as 128B, or `headers`")
    return size


_SCHEMA = {"anyOf": [{"const": HEADERS}, {"type": "string", "pattern": r"^\d+(\.\d+)?\s*(B|KiB)$", "title": "a size"}]}
TrimSize = Annotated[int, PlainValidator(_size), WithJsonSchema(_SCHEMA)]
"""Bytes of the frame that is left; 0: `headers`."""


class TrimSettings(Model):
    """How switches trim: the same at all ports."""

    size_bytes: TrimSize = Field(
        default=USUAL_TRIMMING.size_bytes,
        alias="size",
        description="what is left of a packet: all its headers, or this number of bytes from Ethernet on",
        examples=["128B"],
        json_schema_extra={"default": HEADERS},
    )
    dscp: Whole = Field(
        default=USUAL_TRIMMING.dscp, ge=0, le=MOST_DSCP, description="DSCP of trimmed packets", examples=[48]
    )
    dscp_last_hop: Whole = Field(
        default=USUAL_TRIMMING.dscp_last_hop,
        ge=0,
        le=MOST_DSCP,
        description="the same at ports towards hosts; as `dscp`: hosts cannot tell where the packet was trimmed",
        examples=[48],
    )
    queue: Literal["first", "data"] = Field(
        default="first", description="trimmed packets go before data, or wait with them", examples=["data"]
    )
    rewrite_length: Switchable = Field(
        default=True,
        description="lengths and the inner DSCP say what is left; else what was sent, in virtual time only",
        examples=["false"],
    )

    def rules(self) -> TrimRules:
        """As switch ports have them."""
        return TrimRules(self.size_bytes, self.dscp, self.dscp_last_hop, self.queue == "first", self.rewrite_length)

    def written(self) -> dict[str, str | int | bool]:
        """Every key with its value as a scenario has it."""
        size = format_size(self.size_bytes) if self.size_bytes else HEADERS
        return {**self.model_dump(by_alias=True), "size": size}

    def changed(self) -> dict[str, str | int | bool]:
        """Of `written`, what differs from the usual."""
        usual = TrimSettings().written()
        return {key: value for key, value in self.written().items() if value != usual[key]}
