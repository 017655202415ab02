"""Writes ports.csv: the port program's counts over time."""

from __future__ import annotations

from collections.abc import Mapping

from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.tables import PORTS, PortSample
from mrc_testbed.testbed.switching.interface import FabricLike
from mrc_testbed.testbed.switching.port_counts import PortHits

_NOTHING = PortHits(0, 0, 0, 0, 0)


class PortLog:
    """Writes a row per port when a count has changed, which is rare. Does nothing without the port program."""

    def __init__(self, fabric: FabricLike, recorder: Recorder) -> None:
        self._fabric = fabric
        self._recorder = recorder
        self._last: dict[tuple[str, str], PortHits] = {}

    def sample(self, t_ns: int) -> Mapping[tuple[str, str], PortHits]:
        """Compare every port with its last row; the ports that have changed. Raises RunError if the file cannot be
        written."""
        if not self._fabric.options.port_program:
            return {}
        changed = {port: hits for port, hits in self._fabric.port_hits() if hits != self._last.get(port, _NOTHING)}
        self._last.update(changed)
        self._recorder.rows(PORTS, (PortSample(t_ns, *port, *hits) for port, hits in changed.items()))
        return changed
