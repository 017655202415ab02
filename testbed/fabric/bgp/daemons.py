"""The daemons of each switch, as children of the process that holds the fabric: they end with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.bgp.config import RUN_FOLDER, start_script
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.plan import Plan


class BgpDaemons:
    """`pids`: who holds the namespaces of each switch: network, and mounts, so that each has folders of its own."""

    def __init__(self, plan: Plan, options: FabricOptions, pids: Mapping[str, int]) -> None:
        self._plan = plan
        self._options = options
        self._pids = pids
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, switches: Iterable[str]) -> None:
        """Start these; they find each other within seconds."""
        for name in switches:
            held = f"/proc/{self._pids[name]}/ns"
            script = start_script(self._plan, self._plan.switch_by_name[name], self._options)
            self._running[name] = subprocess.Popen(
                ["nsenter", f"--net={held}/net", f"--mount={held}/mnt", "bash", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def stop(self, switch: str) -> None:
        """End those of a switch at once, as a power cut does: no neighbour is told."""
        running = self._running.pop(switch)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()

    def freeze(self) -> None:
        """Stop all for good, without an exit: none sends anything more, and none changes a route."""
        for running in self._running.values():
            os.killpg(running.pid, signal.SIGSTOP)

    def require(self) -> None:
        """Raises FabricError if one has ended by itself, with its last words."""
        for switch, running in self._running.items():
            if running.poll() is not None:
                raise FabricError(switch, "run BGP", f"a daemon has ended{self._last_words(switch)}")

    def _last_words(self, switch: str) -> str:
        # /var/run is a link as a rule, which would lead out of the switch's mounts.
        folder = Path(f"/proc/{self._pids[switch]}/root{os.path.realpath(RUN_FOLDER)}")
        lines = [line for log in sorted(folder.glob("*.log")) for line in log.read_text(errors="replace").splitlines()]
        return f": {lines[-1]}" if lines else " before it wrote a log"
