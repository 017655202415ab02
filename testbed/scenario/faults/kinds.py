"""Which kinds of faults there are, and how an entry of `faults` becomes one of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from testbed.checks.expect import did_you_mean
from testbed.scenario.faults.base import Fault
from testbed.scenario.faults.endpoints import Deny
from testbed.scenario.faults.links import LinkDown, LinkFlap, LinkRate
from testbed.scenario.faults.losses import Corrupt, EvLoss, LinkLoss, OneWay, PlaneLoss
from testbed.scenario.faults.switches import SwitchReboot, SwitchSilent
from testbed.scenario.fields import refuse

KINDS: dict[str, type[Fault]] = {
    model.kind: model
    for model in (
        *(LinkDown, LinkFlap, LinkLoss, LinkRate, OneWay, PlaneLoss, EvLoss, Corrupt),
        *(SwitchReboot, SwitchSilent, Deny),
    )
}
"""The kinds of this version by their key."""
LATER_KINDS = ("port-flap", "transceiver-flap", "chaos")
"""Kinds that the design names and this version does not have."""


def kind_of(raw: Any) -> str | None:
    """The key in `raw` that names a fault kind of this version; the kind of a Fault."""
    if isinstance(raw, Fault):
        return raw.kind
    return next((key for key in raw if key in KINDS), None) if isinstance(raw, dict) else None


def _one_kind(raw: Any) -> Any:
    available = ", ".join(KINDS)
    if not isinstance(raw, dict):
        raise refuse("must be a mapping such as {at: 6s, link-down: p0-t0-0:p0-t1-2, for: 4s}")
    kinds = [key for key in raw if key in KINDS]
    for key in raw:
        if key in LATER_KINDS:
            message = f"fault kind {key} is not available in this version; available: {available}"
            raise refuse(message, key=key)
    if len(kinds) > 1:
        raise refuse(f"has two kinds, {kinds[0]} and {kinds[1]}; write two entries", key=kinds[1])
    if not kinds:
        raise _without_kind(raw, available)
    return raw


def _without_kind(raw: dict[str, Any], available: str) -> Exception:
    ordinary = {field.alias or name for model in KINDS.values() for name, field in model.model_fields.items()}
    for key in raw:
        hint = did_you_mean(key, KINDS)
        if key not in ordinary and hint:
            return refuse(f"unknown fault kind {key!r}{hint}", key=key)
    return refuse(f"says nothing about what breaks; add one of {available}")


AnyFault = Annotated[
    Annotated[LinkDown, Tag("link-down")]
    | Annotated[LinkFlap, Tag("link-flap")]
    | Annotated[LinkLoss, Tag("link-loss")]
    | Annotated[LinkRate, Tag("link-rate")]
    | Annotated[OneWay, Tag("one-way")]
    | Annotated[PlaneLoss, Tag("plane-loss")]
    | Annotated[EvLoss, Tag("ev-loss")]
    | Annotated[Corrupt, Tag("corrupt")]
    | Annotated[SwitchReboot, Tag("switch-reboot")]
    | Annotated[SwitchSilent, Tag("switch-silent")]
    | Annotated[Deny, Tag("deny")],
    Discriminator(kind_of),
    BeforeValidator(_one_kind),
]
