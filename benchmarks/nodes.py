"""Programs of the benchmarks on the nodes of a fabric."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import network_of

_ROOT = Path(__file__).resolve().parents[1]


def start_on(
    fabric: Fabric, node: str, module: str, arguments: Sequence[str], descriptor: int, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start `python -m module` on a node, with `descriptor` inherited. It ends with the sandbox at the latest."""
    with network_of(fabric.pids[node], node):
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(descriptor,),
            start_new_session=True,
        )
