"""How an entry of `faults` becomes one of the kinds, or chaos."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from testbed.expect import did_you_mean
from testbed.scenario.faults.base import Entry
from testbed.scenario.faults.chaos import Chaos
from testbed.scenario.faults.endpoints import Deny
from testbed.scenario.faults.flaps import LinkFlap, PortFlap, TransceiverFlap
from testbed.scenario.faults.kinds import KINDS
from testbed.scenario.faults.links import LinkDown, LinkRate
from testbed.scenario.faults.losses import Corrupt, EvLoss, LinkLoss, OneWay, PlaneLoss
from testbed.scenario.faults.switches import SwitchReboot, SwitchSilent
from testbed.scenario.fields import refuse

ENTRIES: dict[str, type[Entry]] = {**KINDS, Chaos.kind: Chaos}
"""What an entry of `faults` can be, by its key."""


def kind_of(raw: Any) -> str | None:
    """The key in `raw` that says what it is; the kind of an Entry."""
    if isinstance(raw, Entry):
        return raw.kind
    return next((key for key in raw if key in ENTRIES), None) if isinstance(raw, dict) else None


def _one_kind(raw: Any) -> Any:
    if not isinstance(raw, dict):
        raise refuse("must be a mapping such as {at: 6s, link-down: p0-t0-0:p0-t1-2, for: 4s}")
    kinds = [key for key in raw if key in ENTRIES]
    if len(kinds) > 1:
        raise refuse(f"has two kinds, {kinds[0]} and {kinds[1]}; write two entries", key=kinds[1])
    if not kinds:
        raise _without_kind(raw, ", ".join(ENTRIES))
    return raw


def _without_kind(raw: dict[str, Any], available: str) -> Exception:
    ordinary = {field.alias or name for model in ENTRIES.values() for name, field in model.model_fields.items()}
    for key in raw:
        hint = did_you_mean(key, ENTRIES)
        if key not in ordinary and hint:
            return refuse(f"unknown fault kind {key!r}{hint}", key=key)
    return refuse(f"has no fault kind; add one of {available}")


AnyFault = Annotated[
    Annotated[LinkDown, Tag("link-down")]
    | Annotated[LinkFlap, Tag("link-flap")]
    | Annotated[PortFlap, Tag("port-flap")]
    | Annotated[TransceiverFlap, Tag("transceiver-flap")]
    | Annotated[LinkLoss, Tag("link-loss")]
    | Annotated[LinkRate, Tag("link-rate")]
    | Annotated[OneWay, Tag("one-way")]
    | Annotated[PlaneLoss, Tag("plane-loss")]
    | Annotated[EvLoss, Tag("ev-loss")]
    | Annotated[Corrupt, Tag("corrupt")]
    | Annotated[SwitchReboot, Tag("switch-reboot")]
    | Annotated[SwitchSilent, Tag("switch-silent")]
    | Annotated[Deny, Tag("deny")]
    | Annotated[Chaos, Tag("chaos")],
    Discriminator(kind_of),
    BeforeValidator(_one_kind),
]
