"""The paths of a denylist: `p1` is all of plane 1, `p0-t1-2` those over that switch, `p0/u2` those with number 2."""

from __future__ import annotations

import re
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field

from mrc_testbed.testbed.scenario.text.fields import Model, SomeHosts, Word, refuse
from mrc_testbed.topos.graph import SwitchPlace, Way
from mrc_testbed.topos.names import parse_switch

EXAMPLES = "a whole plane such as p1, the paths over a switch such as p0-t1-2, or those of one number such as p0/u2"
_PLANE = re.compile(r"p(0|[1-9]\d*)(?:/u(0|[1-9]\d*))?", re.ASCII)


class PathGroup(NamedTuple):
    """Paths of one plane: all of them, those over one `switch` above the T0s, or those whose number in the plane is
    `number`, between hosts that are not below one T0."""

    plane: int
    switch: SwitchPlace | None = None
    number: int | None = None

    @property
    def whole(self) -> bool:
        """True if it is all of its plane."""
        return self.switch is None and self.number is None

    def takes(self, number: int, way: Way) -> bool:
        """True if it holds the way of this number, in its plane."""
        if self.switch is not None:
            return self.switch in way
        return self.number is None or (number == self.number and len(way) > 1)


def parse_paths(name: str) -> PathGroup | None:
    """`p1`, `p0/u2` or `p0-t1-2`; None for everything else, also for a T0, over which lead all paths of its hosts."""
    plane = _PLANE.fullmatch(name)
    if plane:
        return PathGroup(int(plane[1]), number=None if plane[2] is None else int(plane[2]))
    switch = parse_switch(name)
    return PathGroup(switch[0], SwitchPlace(*switch[1:])) if switch and switch[1] else None


class Denial(Model):
    """One entry of `endpoint.denylist`: `hosts` (empty: all) send no data over `path`."""

    path: Word = Field(description=EXAMPLES, examples=["p0-t1-2"])
    hosts: SomeHosts = Field(default=(), description="`all`, or the hosts that do not use it", examples=["[h0, h4]"])


def _entry(raw: Any) -> Any:
    if isinstance(raw, str):
        return {"path": raw}
    if not isinstance(raw, dict):
        raise refuse(f"must be {EXAMPLES}, or a mapping such as {{path: p0-t1-2, hosts: [h0, h4]}}")
    return raw


DenialEntry = Annotated[Denial, BeforeValidator(_entry, json_schema_input_type=str | Denial)]
"""A name, or a mapping."""
