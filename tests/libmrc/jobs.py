"""Jobs of several ranks, each a process at a socket of its own."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "scenarios/programs/verbs_allreduce.py"
LONGEST_S = 80.0
"""Longer than any job here takes; reached only by what hangs."""


class Hosts(Protocol):
    """Sockets of daemons, one a host."""

    paths: list[str]


def a_free_port() -> int:
    with socket.create_server(("", 0)) as found:
        return int(found.getsockname()[1])


def ranks(hosts: Hosts, command: list[str], **more: str) -> list[subprocess.Popen[str]]:
    """A process for each host."""
    port = str(a_free_port())
    names = ",".join(f"h{rank}" for rank in range(len(hosts.paths)))
    job = {"MRC_WORLD_SIZE": str(len(hosts.paths)), "MRC_HOSTS": names, "MASTER_ADDR": "127.0.0.1", **more}
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    shared = {**os.environ, "MASTER_PORT": port, "PYTHONPATH": path, **job}
    return [
        subprocess.Popen(
            command,
            env={**shared, "MRC_RANK": str(rank), "RANK": str(rank), "MRC_TESTBED_SOCKET": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank, path in enumerate(hosts.paths)
    ]


def outcomes(started: list[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Status and output of each."""
    found = []
    for process in started:
        out = process.communicate(timeout=LONGEST_S)[0]
        found.append((process.returncode, out))
    return found
