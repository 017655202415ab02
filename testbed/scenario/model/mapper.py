"""The section `mapper`: who looks from above for what is broken, by which evidence, and what it may deny."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from mrc_testbed.testbed.mapper.evidence import Witness
from mrc_testbed.testbed.mapper.policy import DenyPolicy
from mrc_testbed.testbed.scenario.text.fields import WHOLE, Model, PositiveDuration, Share, one_of, refuse

EXAMPLE = "{deny: lossy NIC links}"
_WITNESSES = (Witness.ENDPOINTS,)


def _some(words: tuple[Witness, ...]) -> tuple[Witness, ...]:
    if not words:
        raise refuse("needs at least one kind of evidence, such as [endpoints]")
    twice = next((word for number, word in enumerate(words) if word in words[:number]), None)
    if twice:
        raise refuse(f"{twice} comes twice; leave one of them out")
    return words


_EvidenceWord = Annotated[
    Witness, BeforeValidator(one_of("a kind of evidence", [witness.value for witness in _WITNESSES]))
]
_PolicyWord = Annotated[DenyPolicy, BeforeValidator(one_of("a policy", [policy.value for policy in DenyPolicy]))]


class MapperSettings(Model):
    """A mapper runs beside the workload. Without the section there is none, and nothing changes."""

    evidence: Annotated[tuple[_EvidenceWord, ...], AfterValidator(_some)] = Field(
        default=_WITNESSES, description="who tells it what was lost", examples=["[endpoints]"]
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
    def above_share(self) -> float:
        """`above` as a part of 1."""
        return self.above / WHOLE

    @property
    def acts(self) -> bool:
        """True if it denies anything."""
        return self.deny is not DenyPolicy.NOTHING
