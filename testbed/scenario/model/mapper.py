"""The section `mapper`: who looks from above for what is broken, by which evidence, and what it may deny."""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

from mrc_testbed.testbed.mapper.evidence import Witness
from mrc_testbed.testbed.mapper.policy import DenyPolicy
from mrc_testbed.testbed.scenario.text.fields import WHOLE, Model, PositiveDuration, Share, Whole, one_of, refuse
from mrc_testbed.testbed.scenario.text.units import DURATION, UnitError

EXAMPLE = "{deny: lossy NIC links}"
LEAST_RTTS = 5
"""Of a period: a probe is answered after one, and given up after TIMEOUT_RTTS."""
TIMEOUT_RTTS = 4
_WITNESSES = (Witness.PROBES, Witness.ENDPOINTS)
_RTTS = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*rtt", re.ASCII)


def _some(words: tuple[Witness, ...]) -> tuple[Witness, ...]:
    if not words:
        raise refuse("needs at least one kind of evidence, such as [probes, endpoints]")
    twice = next((word for number, word in enumerate(words) if word in words[:number]), None)
    if twice:
        raise refuse(f"{twice} comes twice; leave one of them out")
    return words


_EvidenceWord = Annotated[
    Witness, BeforeValidator(one_of("a kind of evidence", [witness.value for witness in _WITNESSES]))
]
_PolicyWord = Annotated[DenyPolicy, BeforeValidator(one_of("a policy", [policy.value for policy in DenyPolicy]))]


class Rtts(NamedTuple):
    """A time that follows the round trip of the fabric."""

    number: float


ProbePeriod = Rtts | int
"""In round trips, or in ns."""


def _period(value: object) -> ProbePeriod:
    if isinstance(value, str) and (match := _RTTS.fullmatch(value.strip())):
        return Rtts(float(match[1]))
    try:
        return DURATION.parse(value)
    except UnitError:
        raise refuse(f"{value!r} is no period; write round trips or a time, such as 10 rtt or 200ms") from None


_PERIOD_SCHEMA = {"type": "string", "pattern": rf"^\d+(\.\d+)?\s*(rtt|{'|'.join(DURATION.units)})$"}


class MapperSettings(Model):
    """A mapper runs beside the workload. Without the section there is none, and nothing changes."""

    period: Annotated[ProbePeriod, PlainValidator(_period), WithJsonSchema(_PERIOD_SCHEMA), DURATION] = Field(
        default=Rtts(10),
        description="each probe of a host leaves once in that time, in round trips or as a time",
        examples=["10 rtt", "200ms"],
        json_schema_extra={"default": "10 rtt"},
    )
    owners: Annotated[Whole, Field(ge=1)] = Field(
        default=2, description="hosts that probe each link above the T0s, of those below it", examples=["3"]
    )
    evidence: Annotated[tuple[_EvidenceWord, ...], AfterValidator(_some)] = Field(
        default=_WITNESSES, description="who tells it what was lost", examples=["[probes]"]
    )
    deny: _PolicyWord = Field(
        default=DenyPolicy.NOTHING, description="what is denied, of all that is accused", examples=["lossy NIC links"]
    )
    above: Share = Field(
        default=10_000,
        description="what loses no more than this share of packets is not denied",
        examples=["2%"],
        json_schema_extra={"default": "1%"},
    )
    hold_ns: PositiveDuration = Field(
        default=10_000_000_000,
        alias="hold",
        description="a denial lasts as long: nothing crosses what is denied, so nobody knows how it is",
        examples=["30s"],
        json_schema_extra={"default": "10s"},
    )

    @property
    def probes(self) -> bool:
        """True if hosts are to probe."""
        return Witness.PROBES in self.evidence

    def period_ns(self, rtt_ns: int) -> int:
        """The period where a round trip takes that long."""
        return round(self.period.number * rtt_ns) if isinstance(self.period, Rtts) else self.period

    @property
    def above_share(self) -> float:
        """`above` as a part of 1."""
        return self.above / WHOLE

    @property
    def acts(self) -> bool:
        """True if it denies anything."""
        return self.deny is not DenyPolicy.NOTHING
