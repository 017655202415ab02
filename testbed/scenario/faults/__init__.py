"""Fault declarations: what is broken, when, and when it is whole again. All times count from the workload's start.

As written they may leave names and times to patterns and to the seed; `Entry.cycles` settles everything.
"""

from testbed.scenario.faults.base import Changes, Entry, Fault, Part, UnsettledError
from testbed.scenario.faults.by_hand import BY_HAND, cycle_by_hand
from testbed.scenario.faults.chaos import Chaos
from testbed.scenario.faults.cycle import Cycle, How, Place
from testbed.scenario.faults.endpoints import Deny
from testbed.scenario.faults.entries import ENTRIES, AnyFault, kind_of
from testbed.scenario.faults.flaps import Flap, LinkFlap, PortFlap, TransceiverFlap
from testbed.scenario.faults.kinds import KINDS, changes_of
from testbed.scenario.faults.links import LinkDown, LinkRate
from testbed.scenario.faults.losses import Corrupt, EvLoss, LinkLoss, OneWay, PlaneLoss
from testbed.scenario.faults.names import Target
from testbed.scenario.faults.recorded import read_cycles
from testbed.scenario.faults.switches import SwitchReboot, SwitchSilent

__all__ = [
    "BY_HAND",
    "ENTRIES",
    "KINDS",
    "AnyFault",
    "Changes",
    "Chaos",
    "Corrupt",
    "Cycle",
    "Deny",
    "Entry",
    "EvLoss",
    "Fault",
    "Flap",
    "How",
    "LinkDown",
    "LinkFlap",
    "LinkLoss",
    "LinkRate",
    "OneWay",
    "Part",
    "Place",
    "PlaneLoss",
    "PortFlap",
    "SwitchReboot",
    "SwitchSilent",
    "Target",
    "TransceiverFlap",
    "UnsettledError",
    "changes_of",
    "cycle_by_hand",
    "kind_of",
    "read_cycles",
]
