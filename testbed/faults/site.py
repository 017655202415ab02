"""What faults act on: the fabric, and the endpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from testbed.fabric.fabric import Fabric

if TYPE_CHECKING:
    from testbed.faults.schedule import FaultStep


class Site(NamedTuple):
    """`tell(command, step)`: the endpoints that `step` is about do `deny` or `allow` for its targets; returns when all
    have done so."""

    fabric: Fabric
    tell: Callable[[str, FaultStep], None]
