"""All planes laid on one: the like-for-like fabric of a transport that knows no planes.

The same hosts, switches of a plane and total rate; a port has the rate of all planes together (P1, 5.2.7: MRC over
4 x 100G beside RoCE over 1 x 400G). Names keep everything but their plane.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from mrc_testbed.topos.names import parse_switch, switch_name
from mrc_testbed.topos.shape import Shape

_PLANE = re.compile(r"p(?:0|[1-9]\d*)(/u(?:0|[1-9]\d*))?", re.ASCII)
"""A plane, or the paths with one number in it."""


def folded(shape: Shape) -> Shape:
    """One plane with the rate of all. Raises ShapeError if no port can have that rate."""
    return replace(shape, planes=1, port_rate_bps=shape.planes * shape.port_rate_bps)


def fold(name: str) -> str:
    """The name in the folded fabric of a switch, link, plane, or anything else of the fabric as written.

    `p2-t1-0` -> `p0-t1-0`, `h3:p1-t0-0` -> `h3:p0-t0-0`, `p1/u2` -> `p0/u2`; a name without a plane stays as it is.
    """
    return ":".join(map(_end, name.split(":")))


def fold_all(names: Iterable[str]) -> tuple[str, ...]:
    """Names as `fold` gives them, each once, in order."""
    return tuple(dict.fromkeys(map(fold, names)))


def _end(name: str) -> str:
    switch = parse_switch(name)
    if switch:
        return switch_name(0, switch[1], switch[2])
    plane = _PLANE.fullmatch(name)
    return f"p0{plane[1] or ''}" if plane else name
