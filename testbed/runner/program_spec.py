"""What each program of the user is started with: its command, files, environment and names of hosts. Pure but for the
look at which command is there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrc_testbed.hosts.scratch import HOME, TMP, WORK
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.isolated import PLACE, isolated_python
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.programs import Programs
from mrc_testbed.testbed.scenario.model.workloads import NamedPrograms
from mrc_testbed.topos.names import parse_host
from mrc_testbed.topos.overlay import DEVICE, ipv4, ipv6

DISK_BYTES = 256 << 20
"""Of /tmp, the scratch folder in it included, and of /dev/shm."""
MASTER_PORT = "29500"
"""As torchrun's."""
_OUR_OWN = ("PYTHONSAFEPATH", "PYTHONPATH", "PYTHONHOME")
"""Variables of this process that are not for programs of others."""


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """One process to be started. `files`: name in the scratch folder, and where it is copied from."""

    host: str
    job: str
    entry: Programs
    environment: Mapping[str, str]
    files: tuple[tuple[str, str], ...]

    @property
    def command(self) -> tuple[str, ...]:
        """The program and its arguments."""
        return self.entry.command_of(self.host)

    def as_json(self, hosts: str) -> dict[str, Any]:
        """What hosts/launch.py reads, but for descriptors. `hosts`: the text of /etc/hosts."""
        return {
            "name": self.host,
            "hosts": hosts,
            "files": self.files,
            "keep": _kept(self.command[0], self.environment["PATH"]),
            "disk_bytes": DISK_BYTES,
            "memory_bytes": self.entry.memory_bytes,
            "command": self.command,
            "environment": dict(self.environment),
        }


def program_specs(scenario: Scenario, files: Path) -> list[ProgramSpec]:
    """Every program of a scenario, by job and rank. `files`: the folder of their files."""
    shape = scenario.shape()
    return [
        _spec(job, host, rank, job.host_names(shape), files)
        for job in scenario.job.programs
        for rank, host in enumerate(job.host_names(shape))
    ]


def _spec(job: NamedPrograms, host: str, rank: int, hosts: tuple[str, ...], files: Path) -> ProgramSpec:
    number, entry = parse_host(host) or 0, job.entry
    kept = {name: value for name, value in os.environ.items() if name not in _OUR_OWN}
    ours = {
        "PATH": f"{Path(isolated_python()[0]).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(HOME),
        "TMPDIR": str(TMP),
        "PWD": str(WORK),
        "PYTHONUNBUFFERED": "1",
        "MRC_HOST": host,
        "MRC_ADDRESS": ipv4(number),
        "MRC_RANK": str(rank),
        "MRC_WORLD_SIZE": str(len(hosts)),
        "MRC_HOSTS": ",".join(hosts),
        "RANK": str(rank),
        "WORLD_SIZE": str(len(hosts)),
        "LOCAL_RANK": "0",
        "MASTER_ADDR": hosts[0],
        "MASTER_PORT": MASTER_PORT,
        "GLOO_SOCKET_IFNAME": DEVICE,
        "NCCL_SOCKET_IFNAME": DEVICE,
    }
    sources = tuple((name, str((files / name).absolute())) for name in entry.files)
    return ProgramSpec(host, job.name, entry, {**kept, **ours, **dict(entry.env)}, sources)


def hosts_file(scenario: Scenario) -> str:
    """The text of /etc/hosts: every host of the fabric by its addresses on the device."""
    rows = [
        f"{address}\th{number}\n"
        for number in range(scenario.shape().hosts)
        for address in (ipv4(number), ipv6(number))
    ]
    return "".join(["127.0.0.1\tlocalhost\n", "::1\tlocalhost\n", *rows])


def require_commands(specs: list[ProgramSpec]) -> None:
    """Raises UsageError for a command that is not there, before anything is built."""
    for spec in specs:
        name = spec.command[0]
        own = name.removeprefix("./") in spec.entry.files
        if not own and shutil.which(name, path=spec.environment["PATH"]) is None:
            fix = "install it, name it with its folder, or list it in `files`"
            raise UsageError(f"{spec.job}: {spec.host} cannot run {name}: there is no such command; {fix}")


def _kept(command: str, path: str) -> list[str]:
    """Folders in /tmp that the program still sees, as what it consists of is in them."""
    found = shutil.which(command, path=path) or ""
    needed = [PLACE, sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(found)) if found else ""]
    parts = [Path(each).parts for each in needed]
    return sorted({str(TMP / part[2]) for part in parts if part[:2] == TMP.parts and len(part) > 2})
