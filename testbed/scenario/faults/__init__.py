"""Fault declarations: what breaks, when, and for how long. All times count from the workload's start.

A declaration may leave names and times to patterns and the seed; `Entry.occurrences` resolves everything.
"""

import mrc_testbed.testbed.scenario.faults.kinds  # noqa: F401 - declares the kinds
from mrc_testbed.testbed.scenario.faults.base import Entry, Fault, Lasting, PlacedFault, UnsettledError
from mrc_testbed.testbed.scenario.faults.chaos import Chaos
from mrc_testbed.testbed.scenario.faults.entries import AnyFault, entry_models, kind_of
from mrc_testbed.testbed.scenario.faults.names import Target
from mrc_testbed.testbed.scenario.faults.occurrence import FaultParameters, LinkEnd, Occurrence
from mrc_testbed.testbed.scenario.faults.recorded import read_occurrences
from mrc_testbed.testbed.scenario.faults.registry import KINDS, with_kinds
from mrc_testbed.testbed.scenario.faults.requests import requestable, requested
from mrc_testbed.testbed.scenario.faults.selection import Targets
from mrc_testbed.testbed.scenario.faults.traits import Defaults, Drawing, Effect, InteractiveRequest, State, Traits

__all__ = [
    "KINDS",
    "AnyFault",
    "Chaos",
    "Defaults",
    "Drawing",
    "Effect",
    "Entry",
    "Fault",
    "FaultParameters",
    "InteractiveRequest",
    "Lasting",
    "LinkEnd",
    "Occurrence",
    "PlacedFault",
    "State",
    "Target",
    "Targets",
    "Traits",
    "UnsettledError",
    "entry_models",
    "kind_of",
    "read_occurrences",
    "requestable",
    "requested",
    "with_kinds",
]
