"""The paths of a denylist: `p1` is all of plane 1, `p0-t1-2` the paths of plane 0 over the uplink to T1 2."""

from __future__ import annotations

import re
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field

from mrc_testbed.testbed.scenario.text.fields import Model, SomeHosts, Word, refuse
from mrc_testbed.topos.names import parse_switch

EXAMPLES = "a whole plane such as p1, or an uplink by its T1 such as p0-t1-2"
_PLANE = re.compile(r"p(0|[1-9]\d*)", re.ASCII)


class PathGroup(NamedTuple):
    """Paths of one plane: all of them, or those over one T1 (whose number is also that of the uplink)."""

    plane: int
    uplink: int | None

    def holds(self, other: PathGroup) -> bool:
        """True if every path of `other` is included."""
        return self.plane == other.plane and self.uplink in (None, other.uplink)


def parse_paths(name: str) -> PathGroup | None:
    """`p1` or `p0-t1-2`; None for everything else."""
    plane = _PLANE.fullmatch(name)
    if plane:
        return PathGroup(int(plane[1]), None)
    switch = parse_switch(name)
    return PathGroup(switch[0], switch[2]) if switch and switch[1] == 1 else None


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
