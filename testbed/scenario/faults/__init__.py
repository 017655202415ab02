"""Fault declarations: what is broken, when, and when it is whole again. All times count from the workload's start."""

from testbed.scenario.faults.base import Changes, Fault, How, Place, Target
from testbed.scenario.faults.endpoints import Deny
from testbed.scenario.faults.kinds import KINDS, LATER_KINDS, AnyFault, kind_of
from testbed.scenario.faults.links import LinkDown, LinkFlap, LinkRate
from testbed.scenario.faults.losses import Corrupt, EvLoss, LinkLoss, OneWay, PlaneLoss
from testbed.scenario.faults.switches import SwitchReboot, SwitchSilent

__all__ = [
    "KINDS",
    "LATER_KINDS",
    "AnyFault",
    "Changes",
    "Corrupt",
    "Deny",
    "EvLoss",
    "Fault",
    "How",
    "LinkDown",
    "LinkFlap",
    "LinkLoss",
    "LinkRate",
    "OneWay",
    "Place",
    "PlaneLoss",
    "SwitchReboot",
    "SwitchSilent",
    "Target",
    "kind_of",
]
