"""The EVs to one peer that may carry data, as the core knows it and a selection sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mrc_testbed.hosts.common.prng import Prng
from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.evselect.base import EvSelection
from mrc_testbed.hosts.mrc.evstate import EvInput
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.timing import Timing


class EvSet:
    """EVs in GOOD or SKIP. Those of a closed plane wait: a port is gone at either end.

    For selections: `paths` may carry data now (its order means nothing, and nobody else may change it), `planes`,
    `quota`, `prng`, `timing` (T as `timing.t_ns`), and `skip` with `rested`. The rest is the core's.
    """

    __slots__ = (
        "_closed",
        "_counts",
        "_members",
        "_selection",
        "_step",
        "ev_active",
        "paths",
        "planes",
        "prng",
        "timing",
    )

    _selection: EvSelection

    def __init__(
        self, config: EndpointConfig, timing: Timing, prng: Prng, step: Callable[[Path, EvInput, str], bool]
    ) -> None:
        """`step(path, input, trigger)` takes an EV's step in its table; False when nothing changes."""
        self.planes = config.planes
        self.ev_active = config.ev_active
        self.timing = timing
        self.prng = prng
        self.paths: list[Path] = []
        self._step = step
        self._members: list[Path] = []
        self._counts = [0] * config.planes
        self._closed: set[int] = set()

    def serve(self, selection: EvSelection) -> None:
        """Notify this selection of every change. Call it before the first `add`."""
        self._selection = selection

    # --- for selections ---

    def quota(self, plane: int) -> int:
        """Most EVs of a plane to be in use at once (`ev_active`)."""
        return max(self.ev_active // self.planes, 1)

    def skip(self, path: Path, trigger: str) -> None:
        """GOOD -> SKIP: the selection rests this EV. It may still carry data."""
        self._step(path, EvInput.CONGESTED, trigger)

    def rested(self, path: Path) -> None:
        """SKIP -> GOOD."""
        self._step(path, EvInput.ROTATED, EvInput.ROTATED.value)

    def usable(self, plane: int) -> bool:
        """Has the plane a port at both ends and an EV that may carry data?"""
        return self._counts[plane] > 0 and plane not in self._closed

    def count(self, plane: int) -> int:
        """EVs of the plane in GOOD or SKIP, whether it is open or not."""
        return self._counts[plane]

    # --- for the core ---

    def add(self, path: Path) -> None:
        """An EV came into GOOD or SKIP."""
        self._counts[path.plane] += 1
        self._members.append(path)
        if path.plane not in self._closed:
            self.paths.append(path)
        self._selection.enter(path)

    def remove(self, path: Path) -> None:
        """An EV went to ASSUMED_BAD or DENIED."""
        self._counts[path.plane] -= 1
        self._members.remove(path)
        self._list()
        self._selection.leave(path)

    def close(self, plane: int) -> None:
        """The plane lost a port at either end."""
        self._closed.add(plane)
        self._list()
        self._selection.close(plane)

    def open(self, plane: int) -> None:
        """Undo `close`."""
        self._closed.discard(plane)
        self._list()
        self._selection.open(plane)

    def _list(self) -> None:
        self.paths[:] = [path for path in self._members if path.plane not in self._closed]

    def any_path(self) -> Path:
        """Some EV in use, for a control packet. Only while a plane is usable."""
        usable = [plane for plane in range(self.planes) if self.usable(plane)]
        return self._draw(usable[self.prng.below(len(usable))])

    def any_of(self, plane: int) -> Path | None:
        """Some EV in use of one plane; None when it has none or is closed."""
        return self._draw(plane) if self.usable(plane) else None

    def _draw(self, plane: int) -> Path:
        active: Sequence[Path] = self._selection.active(plane)
        active = active or [path for path in self.paths if path.plane == plane]
        return active[self.prng.below(len(active))]
