"""Which kinds of faults there are."""

from __future__ import annotations

from testbed.scenario.faults.base import Changes, Fault
from testbed.scenario.faults.endpoints import Deny
from testbed.scenario.faults.flaps import LinkFlap, PortFlap, TransceiverFlap
from testbed.scenario.faults.links import LinkDown, LinkRate
from testbed.scenario.faults.losses import Corrupt, EvLoss, LinkLoss, OneWay, PlaneLoss
from testbed.scenario.faults.switches import SwitchReboot, SwitchSilent

KINDS: dict[str, type[Fault]] = {
    model.kind: model
    for model in (
        *(LinkDown, LinkFlap, PortFlap, TransceiverFlap, LinkLoss, LinkRate, OneWay, PlaneLoss, EvLoss, Corrupt),
        *(SwitchReboot, SwitchSilent, Deny),
    )
}
"""The kinds by their key."""


def changes_of(kind: str) -> Changes:
    """What a kind changes in the fabric. Raises KeyError for one that there is not."""
    return KINDS[kind].changes
