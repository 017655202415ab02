"""The NICs of hosts whose programs use verbs: what `open_verbs` tells each daemon."""

from __future__ import annotations

from mrc_testbed.testbed.runner.nics import SOCKET
from mrc_testbed.testbed.runner.team import Team
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.topos.names import parse_host
from mrc_testbed.topos.overlay import ipv4


def open_verbs(team: Team, scenario: Scenario) -> None:
    """On every host that programs with `verbs` reach. Raises RunError where it cannot be."""
    shape, endpoint = scenario.shape(), scenario.endpoint
    rows = [{"host": number, "ipv4": ipv4(number)} for number in range(shape.hosts)]
    common = {"planes": shape.planes, "payload_bytes": shape.payload_bytes, "socket": SOCKET, "hosts": rows}
    limits = {"mpr": endpoint.mpr, "max_wimm": endpoint.max_wimm}
    requests = {
        name: {"host": parse_host(name), "name": name, **common, **limits}
        for job in scenario.job.programs
        if job.entry.verbs
        for name in job.all_host_names(shape)
    }
    if requests:
        team.ask("open_verbs", requests.__getitem__, hosts=requests)
