"""How many UPDATE messages the switches have sent each other, as their daemons count them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

BgpUpdates = dict[str, dict[str, dict[str, int]]]
"""By switch and neighbour: `updates_sent` and `updates_received`."""
_ASK = ("vtysh", "-c", "show bgp neighbors json")
_NAMES = {"updates_sent": "updatesSent", "updates_received": "updatesRecv"}


class BgpMessages:
    """Counts from `mark` on. A daemon counts from its start, over all its sessions.

    A switch that does not answer ends no run for that: nothing is known then.
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids
        self._marked: BgpUpdates = {}

    def mark(self) -> None:
        """Count from now on."""
        self._marked = self.counts()

    def restarted(self, switch: str) -> None:
        """Its daemons count from 0 again."""
        if self._marked:
            self._marked[switch] = {}

    def since_mark(self) -> BgpUpdates:
        """What has come since then; empty if a switch did not answer, now or then."""
        now = self.counts() if self._marked else {}
        return {
            switch: {
                neighbour: {name: count - self._before(switch, neighbour, name) for name, count in one.items()}
                for neighbour, one in counted.items()
            }
            for switch, counted in now.items()
        }

    def _before(self, switch: str, neighbour: str, name: str) -> int:
        return self._marked[switch].get(neighbour, {}).get(name, 0)

    def counts(self) -> BgpUpdates:
        """Since each daemon started; all are asked at once, and answer in some 50 ms. Empty if one gives no answer."""
        asked = {switch: _asked(pid) for switch, pid in self._pids.items()}
        told = {switch: _read(one.communicate()[0]) for switch, one in asked.items()}
        found = {switch: counts for switch, counts in told.items() if counts is not None}
        return found if len(found) == len(told) else {}


def _asked(pid: int) -> subprocess.Popen[str]:
    """The daemons are found by files in the switch's own mounts."""
    held = f"/proc/{pid}/ns"
    command = ["nsenter", f"--net={held}/net", f"--mount={held}/mnt", *_ASK]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def _read(out: str) -> dict[str, dict[str, int]] | None:
    """By neighbour; None for an answer that is none."""
    try:
        told: dict[str, dict[str, Any]] = json.loads(out)
        return {
            one["nbrDesc"]: {name: int(one["messageStats"][theirs]) for name, theirs in _NAMES.items()}
            for one in told.values()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
