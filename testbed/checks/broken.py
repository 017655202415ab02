"""The truth for answers to "what is broken": from the history of a run, what it broke, where and when. Pure.

| kind of fault | broken | asked for |
|---|---|---|
| ports down, rules that lose packets, entries of tables | its links; a switch or host whose links they are | yes |
| `corrupt` | its links, for data alone: probes carry nothing that could be checked | no, but may be named |
| `ev-loss` | the links where packets of that sender are dropped, for those alone | no, but may be named |
| slow links, levels of ports, hosts, plugins' kinds | what it is about: it may lose nothing | no, but may be named |
| `deny` | nothing | must not be named |

What was over too soon, or met too few packets, is not asked for either (spans_met.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.windows import Outage, outages
from mrc_testbed.testbed.mapper.suspects import Direction
from mrc_testbed.testbed.scenario.faults import Effect
from mrc_testbed.testbed.scenario.faults.kinds.losses import Corrupt, EvLoss
from mrc_testbed.testbed.scenario.faults.names import links_of_target
from mrc_testbed.testbed.scenario.faults.occurrence import OccurrenceKey
from mrc_testbed.testbed.scenario.text.fields import WHOLE
from mrc_testbed.topos.plan import Plan

_LOSES = (Effect.PORTS, Effect.RULES, Effect.TABLE)
_IN_PART = (Corrupt.kind, EvLoss.kind)
"""Kinds that lose packets of some sort only."""


@dataclass(frozen=True, slots=True)
class BrokenSpan:
    """Something was broken from `begin_ns` (its injection began; it was in place at `placed_ns`) to `end_ns`, infinite
    if it was never mended.

    `links`: those that lost packets; `direction`: one way only; `share`: of the packets. `asked`: an answer should name
    it; else it may. `shown`: links that an answer must name at least, because packets showed it (spans_met.py); none:
    all that any packet crossed.
    """

    fault: str
    number: int
    kind: str
    begin_ns: int
    placed_ns: int
    end_ns: float
    links: frozenset[str]
    direction: Direction | None = None
    share: float = 1.0
    asked: bool = True
    shown: frozenset[str] = frozenset()

    @property
    def key(self) -> OccurrenceKey:
        """Which occurrence it is."""
        return self.fault, self.number


def broken_spans(record: RunRecord) -> list[BrokenSpan]:
    """What the run broke, in order of time. What was denied was not broken."""
    return [_span(record.plan, outage) for outage in outages(record) if _effect(outage) is not Effect.NOTHING]


def _effect(outage: Outage) -> Effect:
    return outage.occurrence.model.effect


def _span(plan: Plan, outage: Outage) -> BrokenSpan:
    one = outage.occurrence
    loses = _effect(outage) in _LOSES and one.kind not in _IN_PART
    end_ns = inf if outage.healed_ns is None else outage.healed_ns
    about = (link for name in one.targets for link in links_of_target(name, one.model.target, plan))
    return BrokenSpan(
        *(one.fault, one.number, one.kind, outage.invoked_ns, outage.injected_ns, end_ns),
        links=frozenset(one.links or about),
        direction=_direction(plan, outage),
        share=one.parameters.share / WHOLE if _effect(outage) is Effect.RULES else 1.0,
        asked=loses,
    )


def _direction(plan: Plan, outage: Outage) -> Direction | None:
    """The way of the packets that are lost, where it is one: towards the far ends of links, or the near ones; or what
    the switch sends whose entry is wrong."""
    one = outage.occurrence
    if _effect(outage) is Effect.TABLE and len(one.links) == 1:
        near = plan.link_by_name[one.links[0]].near.node
        return "up" if one.parameters.values.get("switch") == near else "down"
    ends = {place.toward for place in one.places}
    if len(ends) != 1:
        return None
    return "up" if ends == {"far"} else "down"
