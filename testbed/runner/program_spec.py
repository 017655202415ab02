"""What each program of the user is started with: its command, files, environment and limits. Pure but for the look at
where a command is."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrc_testbed.hosts.scratch import HOME, PRIVATE, SOCKET, TMP, WORK
from mrc_testbed.testbed.isolated import PLACE, isolated_python
from mrc_testbed.testbed.launcher.start import environment
from mrc_testbed.testbed.runner.nics import nic_of, verbs_environment
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.programs import MEMORY_BYTES, Programs
from mrc_testbed.testbed.scenario.model.workloads import NamedPrograms
from mrc_testbed.topos.names import host_name, parse_host
from mrc_testbed.topos.overlay import DEVICE, ipv4
from mrc_testbed.topos.shape import Shape

DISK_BYTES = 256 << 20
"""Of /tmp, the scratch folder in it included, and of /dev/shm."""
MASTER_PORT = "29500"
"""As torchrun's."""
SOCKET_VARIABLE = "MRC_EXEC"
"""Names the socket by which a program starts another one on any host (exec_server.py)."""


@dataclass(frozen=True, slots=True)
class HostPlace:
    """What a process finds on a host. `files`: name in the scratch folder, and where it is copied from."""

    host: str
    environment: Mapping[str, str]
    files: tuple[tuple[str, str], ...] = ()
    memory_bytes: int = MEMORY_BYTES
    nic: Mapping[str, Any] | None = None
    """What it finds in /sys/class/infiniband."""

    def request(self, command: Sequence[str]) -> dict[str, Any]:
        """What hosts/launch.py reads to become a command, but for descriptors."""
        return {
            "name": self.host,
            "files": self.files,
            "keep": _kept(command[0], self.environment["PATH"]),
            "disk_bytes": DISK_BYTES,
            "memory_bytes": self.memory_bytes,
            "nic": self.nic,
            "command": command,
            "environment": dict(self.environment),
        }


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A program to be started."""

    place: HostPlace
    job: str
    entry: Programs

    @property
    def host(self) -> str:
        """Where it runs."""
        return self.place.host

    @property
    def command(self) -> tuple[str, ...]:
        """The program and its arguments."""
        return self.entry.command_of(self.host)


def program_specs(scenario: Scenario, files: Path) -> list[ProgramSpec]:
    """Every program of a scenario, by job and rank. `files`: the folder of their files."""
    shape, places = scenario.shape(), places_of(scenario, files)
    return [
        ProgramSpec(places[host], job.name, job.entry)
        for job in scenario.job.programs
        for host in job.host_names(shape)
    ]


def places_of(scenario: Scenario, files: Path) -> dict[str, HostPlace]:
    """Every host of the fabric. Those that programs reach have their files, variables and limits."""
    shape = scenario.shape()
    found = {name: HostPlace(name, _environment(name, {})) for name in map(host_name, range(shape.hosts))}
    for job in scenario.job.programs:
        sources = tuple((name, str((files / name).absolute())) for name in job.entry.files)
        for host in job.all_host_names(shape):
            more = {**_of_job(host, job, shape), **dict(job.entry.env)}
            found[host] = HostPlace(
                host, _environment(host, more), sources, job.entry.memory_bytes, nic_of(job.entry, host)
            )
    return found


def _environment(host: str, more: Mapping[str, str]) -> dict[str, str]:
    ours = {
        "PATH": f"{Path(isolated_python()[0]).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(HOME),
        "TMPDIR": str(TMP),
        "PWD": str(WORK),
        "PYTHONUNBUFFERED": "1",
        SOCKET_VARIABLE: str(SOCKET),
        "MRC_HOST": host,
    }
    return {**environment(), **ours, **more}


def _of_job(host: str, job: NamedPrograms, shape: Shape) -> dict[str, str]:
    """What launchers of training jobs set, and our own. A host without a program of the job has no rank."""
    ranks, hosts = job.host_names(shape), job.all_host_names(shape)
    rank = {name: str(ranks.index(host)) for name in ("MRC_RANK", "RANK")} if host in ranks else {}
    return {
        "MRC_ADDRESS": ipv4(parse_host(host) or 0),
        "MRC_WORLD_SIZE": str(len(ranks)),
        "MRC_HOSTS": ",".join(hosts),
        **rank,
        "WORLD_SIZE": str(len(ranks)),
        "LOCAL_RANK": "0",
        "MASTER_ADDR": ranks[0],
        "MASTER_PORT": MASTER_PORT,
        "GLOO_SOCKET_IFNAME": DEVICE,
        "NCCL_SOCKET_IFNAME": DEVICE,
        **verbs_environment(job.entry, ranks),
    }


def _kept(command: str, path: str) -> list[str]:
    """Folders that the program still sees: that of the run's socket, and those in /tmp of what it consists of."""
    found = shutil.which(command, path=path) or ""
    needed = [PLACE, sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(found)) if found else ""]
    parts = [Path(each).parts for each in needed]
    return sorted({str(PRIVATE), *(str(TMP / part[2]) for part in parts if part[:2] == TMP.parts and len(part) > 2)})
