"""One remote host: its paths, their states, and the QPs that lead to it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from hosts.core.context import Context
from hosts.core.events import EvChanged, PlaneChanged
from hosts.core.evstate import EvInput, EvState, next_state
from hosts.core.paths import Path
from hosts.core.probes import Prober
from hosts.core.reasons import LossReason
from hosts.core.rotation import Rotation
from hosts.core.timing import Timing

if TYPE_CHECKING:
    from hosts.core.sender import Sender


class Peer:
    """Paths are shared by all QPs to the same host, so that one lost packet spares the others theirs."""

    __slots__ = ("_by_label", "_context", "number", "paths", "prober", "rotation", "senders", "timing")

    def __init__(self, number: int, paths: Sequence[tuple[int, int, Hashable]], context: Context) -> None:
        config = context.config
        self.number = number
        self.paths = [
            Path(index, plane, uplink, token, config.udp_port) for index, (plane, uplink, token) in enumerate(paths)
        ]
        self._by_label = {path.label: path for path in self.paths}
        self._context = context
        self.timing = Timing(config)
        self.senders: list[Sender] = []
        self.prober = Prober(self, context, self.timing)
        self.rotation = Rotation(config.planes, config.ev_active, context.prng)
        drawn = list(self.paths)
        context.prng.shuffle(drawn)
        for path in drawn:
            self.rotation.add(path)

    def reply_path(self, flow_label: int) -> Path:
        """The path of a control packet that answers one received with `flow_label`: the same plane and uplink.

        It has just been seen to work, at least in the other direction. An EV we have no path for (another table at
        the peer) is answered on any path of that plane, else on any path.
        """
        path = self._by_label.get(flow_label)
        if path is None:
            plane = flow_label >> 8 & 0xF
            path = next((path for path in self.paths if path.plane == plane), self.paths[0])
        return path

    def path_of(self, entropy: int) -> Path | None:
        """The path whose EV a SACK or NACK echoes; None when it is none of ours."""
        path = self._by_label.get(entropy >> 16)
        return path if path is not None and path.ev == entropy else None

    def lose(self, path: Path, reason: LossReason, sent_ns: int, now_ns: int) -> None:
        """A packet sent on `path` at `sent_ns` vanished without explanation."""
        old = path.state
        if not self._change(path, EvInput.LOSS, reason.value, sent_ns):
            return
        self._context.counters.evs_retired += 1
        if old is EvState.GOOD:
            self.rotation.remove(path)
            # A sender that waits for this plane's turn must not wait any longer.
            self._context.blocked_until = 0
            if not self.rotation.usable(path.plane):
                self._context.events.append(PlaneChanged(self.number, path.plane, False))
        self.prober.watch(path, now_ns)

    def restore(self, path: Path) -> None:
        """Enough probes on `path` were answered."""
        if not self._change(path, EvInput.PROBES_PASSED, EvInput.PROBES_PASSED.value, 0):
            return
        self._context.counters.evs_restored += 1
        was_usable = self.rotation.usable(path.plane)
        self.rotation.add(path)
        self._context.blocked_until = 0
        if not was_usable:
            self._context.events.append(PlaneChanged(self.number, path.plane, True))
            for sender in self.senders:
                sender.wake()

    def _change(self, path: Path, event: EvInput, trigger: str, first_lost_ns: int) -> bool:
        old = path.state
        new = next_state(old, event)
        if new is old:
            return False
        path.state = new
        self._context.events.append(
            EvChanged(self.number, path.plane, path.uplink, old, new, trigger, first_lost_ns, path.last_tx_ns)
        )
        return True
