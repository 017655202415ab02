"""A case of a seed: a scenario whose faults nobody who observes it is told of.

The setting is drawn first, and how many incidents there are; then each incident. An incident that cannot be, or that no
packet would meet, is drawn again, and the setting stays: so settings do not tell how many there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from mrc_testbed.testbed.errors import RunError, ScenarioError, UsageError
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.incidents.dice import Dice
from mrc_testbed.testbed.incidents.kinds import INCIDENT_KINDS, LEAST_S, WHERE_QUEUES_ARE, Scene, Spell
from mrc_testbed.testbed.incidents.setting import LASTS_S, CaseSetting, draw_setting
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.load.effective import on_one_line, plain_text
from mrc_testbed.testbed.scenario.rules.denial_rules import Talk
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings

NONE = 0.25
"""The chance of no incident at all."""
TWO = 0.10
"""That of two at once."""
CALM, BUSY_CASE = "calm", "busy"
"""Words for `--kind` that ask for no incident: with a neighbour's incast, or without."""
KIND_WORDS = (*INCIDENT_KINDS, BUSY_CASE, CALM)
MOST_ATTEMPTS = 50
_ID_LETTERS = 12


@dataclass(frozen=True, slots=True)
class Draft:
    """A case as drawn. `attempt`: how many draws were rejected before this one, those of earlier drafts included.

    `kinds`: words of its incidents; `data`: the scenario; `public`: what of it an observer may see; `lasts_s`: of its
    run.
    """

    seed: int
    attempt: int
    kinds: tuple[str, ...]
    busy: bool
    lasts_s: float
    data: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The scenario, with a fault on each line."""
        faults = [on_one_line(entry) for entry in self.data.get("faults", [])]
        return plain_text({**self.data, **({"faults": faults} if faults else {})})

    @property
    def public(self) -> dict[str, Any]:
        """The fabric and the workload. Not the seed: with it, anyone could run the case without its incident."""
        return {key: self.data[key] for key in ("fabric", "mapper", "workload")}

    @property
    def id(self) -> str:
        """A hash of the seed and of all that is true of the case: who is shown both can check that it is this one."""
        return sha256(json.dumps([self.seed, self.text]).encode()).hexdigest()[:_ID_LETTERS]


def draw_case(seed: int, kind: str | None = None, lasts_s: float = LASTS_S, attempt: int = 0) -> Draft:
    """The case of a seed; `kind`: with one incident of this kind, or none. `attempt`: the first to try of its draws.

    Raises UsageError for an unknown kind, RunError where none of many draws fits.
    """
    if kind is not None and kind not in KIND_WORDS:
        known = ", ".join(KIND_WORDS)
        raise UsageError(f"--kind {kind}: no such kind{did_you_mean(kind, KIND_WORDS) or f'; there are {known}'}")
    dice = Dice("incident", seed)
    busy = {BUSY_CASE: True, CALM: False, **dict.fromkeys(WHERE_QUEUES_ARE, True)}.get(kind or "")
    setting = draw_setting(dice.of("setting"), lasts_s, busy)
    for number in range(attempt, attempt + MOST_ATTEMPTS):
        kinds, faults = _incidents(dice, kind, setting, lasts_s, number)
        draft = Draft(seed, number, kinds, setting.busy, lasts_s, {**setting.data, **faults})
        if not kinds or _fits(draft.text):
            return draft
    raise RunError(f"seed {seed}: none of {MOST_ATTEMPTS} draws of an incident fits its fabric; take another seed")


def _incidents(
    dice: Dice, kind: str | None, setting: CaseSetting, lasts_s: float, attempt: int
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Words of kinds, and the key `faults` where there are some."""
    count = _count(dice.of("count")) if kind is None else int(kind in INCIDENT_KINDS)
    if not count:
        return (), {}
    words = tuple(_words(dice.of("kinds", attempt), kind, count))
    scene = _scene(setting.scenario)
    faults, span = [], None
    for number, word in enumerate(words):
        own = dice.of("fault", attempt, number, word)
        span = _span(own.of("time"), lasts_s, span)
        faults.append({**INCIDENT_KINDS[word].draw(own, scene, span), "name": f"f{number}"})
    return words, {"faults": faults}


def _count(dice: Dice) -> int:
    place = dice.within(0, 1)
    return 0 if place < NONE else 2 if place < NONE + TWO else 1


def _words(dice: Dice, kind: str | None, count: int) -> Iterator[str]:
    if kind is not None:
        yield kind
    else:
        yield from (dice.one([*INCIDENT_KINDS]) for _ in range(count))


def _span(dice: Dice, lasts_s: float, beside: Spell | None) -> Spell:
    """When it is on; of a second one, so that it begins while the first is on. Some last beyond what is observed."""
    if beside is None:
        begin_s = lasts_s * dice.within(0.15, 0.6)
    else:
        begin_s = dice.within(beside.begin_s, min(beside.end_s, 0.7 * lasts_s))
    length_s = dice.magnitude(max(0.1 * lasts_s, LEAST_S), 0.8 * lasts_s)
    return Spell(begin_s, min(begin_s + length_s, 1.05 * lasts_s))


def _scene(scenario: Scenario) -> Scene:
    plan = scenario.plan()
    talk = Talk.of(scenario.job, plan)
    crowded = [item.incast.to for item in scenario.workload if item.incast]
    return Scene(plan, {host.name: sorted(talk.peers[host.name]) for host in talk.members}, crowded)


def _fits(text: str) -> bool:
    """False for what the language refuses, such as two entries of one table, and for what no packet would meet."""
    try:
        scenario = load_scenario_text(text)
    except ScenarioError:
        return False
    return not list(scenario_warnings(scenario))
