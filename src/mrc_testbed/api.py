"""What plugins, tests, scripts and notebooks of users may import. These names and signatures stay; all other modules of
the package may move at any time.

A name is loaded when it is first used. So a plugin that runs in a host's daemon loads nothing but what it asks for.
docs/api.md has a line for each name, and tests/unit/api/api.txt their signatures.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrc_testbed.hosts.mrc.cc.base import CongestionControl
    from mrc_testbed.hosts.mrc.evselect.base import NO_PLANE, EvSelection
    from mrc_testbed.testbed.app.finished import FinishedRun, MeasuredFigure
    from mrc_testbed.testbed.checks.counting import counted
    from mrc_testbed.testbed.checks.record import RunRecord
    from mrc_testbed.testbed.checks.steps import rank_steps, steps_in
    from mrc_testbed.testbed.checks.windows import NoData
    from mrc_testbed.testbed.expect.vocabulary import By, Dimension, Job, Known, Metric, Windows
    from mrc_testbed.testbed.expect.window import Window
    from mrc_testbed.testbed.faults.plugin import MTU, FaultKind, Unplanned
    from mrc_testbed.testbed.pytest_plugin import Testbed
    from mrc_testbed.testbed.report.frames.run import Run, load_run
    from mrc_testbed.testbed.scenario.faults import (
        Drawing,
        Effect,
        Fault,
        FaultParameters,
        Lasting,
        State,
        Target,
        Targets,
    )
    from mrc_testbed.testbed.scenario.text.fields import Duration, Rate, Share, Size
    from mrc_testbed.testbed.switching.classes import DataPackets
    from mrc_testbed.testbed.transports.base import Chooser, FabricLayout, Sockets, Transport
    from mrc_testbed.testbed.transports.registry import TRANSPORTS
    from mrc_testbed.testbed.workloads.collective import Collective, Group, Hop, Part, Terms
    from mrc_testbed.testbed.workloads.estimate import answer_ns, transfer_ns
    from mrc_testbed.topos.graph import Cable, Family, ShapeError, SwitchPlace, family_key

_HOMES = {
    "hosts.mrc.cc.base": ("CongestionControl",),
    "hosts.mrc.evselect.base": ("NO_PLANE", "EvSelection"),
    "testbed.app.finished": ("FinishedRun", "MeasuredFigure"),
    "testbed.checks.counting": ("counted",),
    "testbed.checks.record": ("RunRecord",),
    "testbed.checks.steps": ("rank_steps", "steps_in"),
    "testbed.checks.windows": ("NoData",),
    "testbed.expect.window": ("Window",),
    "testbed.expect.vocabulary": ("By", "Dimension", "Job", "Known", "Metric", "Windows"),
    "testbed.faults.plugin": ("MTU", "FaultKind", "Unplanned"),
    "testbed.pytest_plugin": ("Testbed",),
    "testbed.report.frames.run": ("Run", "load_run"),
    "testbed.scenario.faults": (
        *("Drawing", "Effect", "Fault", "FaultParameters", "Lasting", "State", "Target", "Targets"),
    ),
    "testbed.scenario.text.fields": ("Duration", "Rate", "Share", "Size"),
    "testbed.switching.classes": ("DataPackets",),
    "testbed.transports.base": ("Chooser", "FabricLayout", "Sockets", "Transport"),
    "testbed.transports.registry": ("TRANSPORTS",),
    "testbed.workloads.collective": ("Collective", "Group", "Hop", "Part", "Terms"),
    "testbed.workloads.estimate": ("answer_ns", "transfer_ns"),
    "topos.graph": ("Cable", "Family", "ShapeError", "SwitchPlace", "family_key"),
}
"""By module, the names that are of it."""
_MODULES = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "MTU",
    "NO_PLANE",
    "TRANSPORTS",
    "By",
    "Cable",
    "Chooser",
    "Collective",
    "CongestionControl",
    "DataPackets",
    "Dimension",
    "Drawing",
    "Duration",
    "Effect",
    "EvSelection",
    "FabricLayout",
    "Family",
    "Fault",
    "FaultKind",
    "FaultParameters",
    "FinishedRun",
    "Group",
    "Hop",
    "Job",
    "Known",
    "Lasting",
    "MeasuredFigure",
    "Metric",
    "NoData",
    "Part",
    "Rate",
    "Run",
    "RunRecord",
    "ShapeError",
    "Share",
    "Size",
    "Sockets",
    "State",
    "SwitchPlace",
    "Target",
    "Targets",
    "Terms",
    "Testbed",
    "Transport",
    "Unplanned",
    "Window",
    "Windows",
    "answer_ns",
    "counted",
    "family_key",
    "load_run",
    "rank_steps",
    "steps_in",
    "transfer_ns",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"mrc_testbed.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
