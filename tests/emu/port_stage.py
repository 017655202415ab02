"""A small fabric whose switch ports run the port program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from testbed.fabric import capabilities
from testbed.fabric.capabilities import PORT_PROGRAM, Capability
from testbed.fabric.fabric import Fabric
from testbed.fabric.options import FabricOptions
from tests.emu.conftest import with_fabric
from topos.shape import Shape

SMALL = Shape(planes=1, t0_groups=2, t1=2, hosts_per_t0=2, port_rate_bps=25_000_000, rtt_ns=20_000_000)
"""h0 and h1 in one group, h2 and h3 in the other: two senders overload one uplink, or one NIC port."""


@pytest.fixture
def options(machine: list[Capability]) -> FabricOptions:
    found = next(entry for entry in machine if entry.name == PORT_PROGRAM)
    assert found.present, f"{found.detail}: {found.fix}"
    return replace(capabilities.choose(machine, SMALL), delay="endpoint")


def run(body: Callable[[Fabric], None], options: FabricOptions) -> None:
    with_fabric(body, options, SMALL)
