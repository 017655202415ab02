"""Which EV the next packet takes. One file a selection; `EndpointConfig.ev_selection` names it.

A new selection is one file with a class like those here and one line in `SELECTIONS`, or a plugin.
"""

from __future__ import annotations

from collections.abc import Callable

from mrc_testbed.hosts.mrc.evselect.adaptive import Adaptive
from mrc_testbed.hosts.mrc.evselect.base import EvSelection
from mrc_testbed.hosts.mrc.evselect.bitmap import Bitmap
from mrc_testbed.hosts.mrc.evselect.evset import EvSet
from mrc_testbed.hosts.mrc.evselect.guard import Guard
from mrc_testbed.hosts.mrc.evselect.oblivious import Oblivious
from mrc_testbed.hosts.mrc.evselect.reps import Reps
from mrc_testbed.hosts.mrc.evselect.spec import Spec
from mrc_testbed.hosts.mrc.evselect.weighted import WeightedPlanes

SELECTIONS: dict[str, Callable[[EvSet], EvSelection]] = {
    "adaptive": Adaptive,
    "spec": Spec,
    "bitmap": Bitmap,
    "oblivious": Oblivious,
    "reps": Reps,
    "weighted-planes": WeightedPlanes,
}
"""By the name the configuration uses."""

__all__ = ["SELECTIONS", "EvSelection", "EvSet", "Guard"]
