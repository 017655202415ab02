"""Faults that a person asks for while a run lasts: kinds of the scenario, and the same code makes their cycles."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from testbed.scenario.faults.base import Changes
from testbed.scenario.faults.cycle import Cycle
from testbed.scenario.faults.kinds import KINDS
from testbed.scenario.faults.names import Target, wrong_name
from testbed.scenario.fields import WHOLE
from testbed.scenario.units import format_share
from topos.plan import Plan


class ByHand(NamedTuple):
    """What a hand can do: the kind of fault that it is, the keys of its length and (where it has one) its share."""

    kind: str
    length: str = "for"
    share: str = ""

    @property
    def target(self) -> Target:
        """What it is done to."""
        return KINDS[self.kind].target

    @property
    def needs_port_program(self) -> bool:
        """It is made by rules of the port program."""
        return KINDS[self.kind].changes is Changes.RULES


BY_HAND = {
    "cut": ByHand("link-down"),
    "lossy": ByHand("link-loss", share="loss"),
    "reboot": ByHand("switch-reboot", length="boot"),
    "silence": ByHand("switch-silent"),
}
"""By the word that a person uses."""


def cycle_by_hand(
    action: str, target: str, name: str, begin_ns: int, end_ns: int, plan: Plan, share: int = WHOLE
) -> Cycle:
    """The one cycle of fault `name`: `target` is a name of the fabric, `share` (millionths) of a lossy link.

    Raises ValueError, fit to be shown, for a target that does not go with the action and for a share that is none.
    """
    what = BY_HAND[action]
    wrong = wrong_name(target, what.kind, what.target, plan)
    if wrong:
        raise ValueError(wrong)
    written = {"at": f"{begin_ns}ns", "name": name, what.kind: target, what.length: f"{end_ns - begin_ns}ns"}
    if what.share:
        written[what.share] = format_share(share)
    try:
        (cycle,) = KINDS[what.kind].model_validate(written).cycles(plan, seed=0)
    except ValidationError as error:
        raise ValueError(error.errors(include_url=False)[0]["msg"]) from None
    return cycle
