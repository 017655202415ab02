"""The family of a scenario with its numbers, and its keys as YAML has them."""

from __future__ import annotations

from dataclasses import fields
from random import Random
from typing import Any, cast

from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import FULL_SPEED, Family

_SPEEDS = (*[FULL_SPEED] * 6, (0.5,), (1.0, 0.25), (0.5, 1.0, 1.0))


def drawn_family(dice: Random) -> Family:
    """Two tiers in half of the scenarios, for most users have them."""
    return dice.choice([_clos2, _clos2, _clos3, _rail])(dice)


def written_keys(family: Family) -> dict[str, Any]:
    """Its keys as written, without speeds that are usual."""
    given = {one.name: getattr(family, one.name) for one in fields(cast(Any, family))}
    return {
        key: [f"{share:.0%}" for share in value] if isinstance(value, tuple) else value
        for key, value in given.items()
        if value != FULL_SPEED
    }


def _clos2(dice: Random) -> Family:
    groups = dice.choice([1, 2, 2, 2, 3])
    hosts_per_t0 = dice.randint(2 if groups == 1 else 1, 3)
    return Clos2(groups, dice.randint(0 if groups == 1 else 1, 4), hosts_per_t0, dice.choice(_SPEEDS))


def _clos3(dice: Random) -> Family:
    pods, t0, t1 = dice.choice([(1, 2, 2), (2, 1, 1), (2, 1, 2), (2, 2, 2), (3, 1, 2)])
    t2 = t1 * (dice.randint(1, 2) if pods > 1 else 0)
    return Clos3(pods, t0, t1, t2, dice.randint(1, 2), *(dice.choice(_SPEEDS) for _ in range(2)))


def _rail(dice: Random) -> Family:
    segments = dice.choice([1, 1, 2])
    nodes, rails = segments * dice.randint(1, 2), dice.randint(1, 3)
    alone = rails * segments == 1
    nodes = max(nodes, 2) if alone else nodes
    return Rail(rails, nodes, dice.randint(0 if alone else 1, 3), segments, dice.choice(_SPEEDS))
