"""Faults requested during a run: the same kinds and the same code as in scenarios."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from mrc_testbed.testbed.scenario.faults.base import Fault
from mrc_testbed.testbed.scenario.faults.names import wrong_name
from mrc_testbed.testbed.scenario.faults.occurrence import Occurrence
from mrc_testbed.testbed.scenario.text.fields import WHOLE
from mrc_testbed.testbed.scenario.text.units import format_share
from mrc_testbed.topos.plan import Plan


def requestable(kinds: Mapping[str, type[Fault]]) -> dict[str, type[Fault]]:
    """Those of these requestable kinds by the word for each."""
    return {model.request.word: model for model in kinds.values() if model.request}


def requested(
    model: type[Fault], target: str, name: str, begin_ns: int, end_ns: int, plan: Plan, share: int = WHOLE
) -> Occurrence:
    """The single occurrence of fault `name`, of a kind that is requestable: `target` is a name of the fabric, `share`
    (millionths) of a lossy link.

    Raises ValueError, with a text for the user, for an unsuitable target or an invalid share.
    """
    request = model.request
    if request is None:
        raise KeyError(model.kind)
    wrong = wrong_name(target, model.kind, model.target, plan)
    if wrong:
        raise ValueError(wrong)
    written = {"at": f"{begin_ns}ns", "name": name, model.kind: target, request.length: f"{end_ns - begin_ns}ns"}
    if request.share:
        written[request.share] = format_share(share)
    try:
        (occurrence,) = model.model_validate(written).occurrences(plan, seed=0)
    except ValidationError as error:
        raise ValueError(error.errors(include_url=False)[0]["msg"]) from None
    return occurrence
