"""A small fabric whose switch ports run the port program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.capabilities import PORT_PROGRAM, Capability
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.switching.options import FabricOptions
from tests.emu.conftest import with_fabric
from tests.port_cases import SMALL


@pytest.fixture
def options(machine: list[Capability]) -> FabricOptions:
    found = next(entry for entry in machine if entry.name == PORT_PROGRAM)
    assert found.present, f"{found.detail}: {found.fix}"
    return replace(capabilities.choose(machine, SMALL), delay="endpoint")


def run(body: Callable[[Fabric], None], options: FabricOptions) -> None:
    with_fabric(body, options, SMALL)
