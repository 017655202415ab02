"""EV probes: warm-up, and the way back of a path that lost a packet (spec 7.4.7, by its readers; P1 2.1).

How often and how many: ours (docs/protocol.md, "Paths").
"""

from __future__ import annotations

from heapq import heappop, heappush

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import WITH_DATA
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.events import PathAnswered
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.timing import Timing
from mrc_testbed.hosts.mrc.views import PeerView

JITTER_PERCENT = 25
MAX_BACKOFF_T = 16
"""Longest pause between probes of a dead path, in T (ours). 64 T would leave a healed path unused for up to 1.3 s at T
= 20 ms, and one small probe per path every 16 T costs next to nothing."""
MAX_NEEDED = 24
"""Most consecutive answers to ask for."""
RELAPSE_T = 500
"""A path that fails again within this many T of its return needs twice as many answers (ours), unless the peer cannot
be reached at all: then a path that mostly works is what there is. With one path left and 5 % loss both ways, 6 of 12
transfers of 700 kB ended in a dead QP while 24 answers in a row were waited for; none with 3, in 40-150 T."""
PENDING_PER_PATH = 4
"""Probes whose answer is still waited for, per path; the oldest ones are forgotten."""
_ID_MASK = 0xFFFF


class _Suspect:
    """A bad path under probing. Exactly one of the two times is set."""

    __slots__ = ("interval_ns", "path", "request_id", "send_at", "successes", "timeout_at")

    def __init__(self, path: Path, interval_ns: int, send_at: int) -> None:
        self.path = path
        self.interval_ns = interval_ns
        self.successes = 0
        self.request_id = -1
        self.send_at = send_at
        self.timeout_at = NEVER


class Prober:
    """Sends EV probes to one peer and judges the answers."""

    __slots__ = (
        "_asked",
        "_class",
        "_context",
        "_heap",
        "_next_id",
        "_peer",
        "_pending",
        "_successes",
        "_suspects",
        "_timing",
        "wake_ns",
    )

    def __init__(self, peer: PeerView, context: Context, timing: Timing) -> None:
        self._peer = peer
        self._context = context
        self._timing = timing
        self._successes = context.config.probe_successes
        self._class = context.no_trim_class if context.config.probe_class == WITH_DATA else None
        """Of probes on bad paths; None: that of control."""
        self._suspects: dict[Path, _Suspect] = {}
        self._heap: list[tuple[int, int]] = []
        """(time, path index); an entry whose time is not the suspect's any more is void."""
        self._pending: dict[int, tuple[Path, int]] = {}
        """Request id -> path, when sent."""
        self._next_id = 0
        self._asked: set[int] = set()
        """Requests of a controller, which hears of their answers."""
        self.wake_ns = NEVER

    def probe(self, path: Path, now_ns: int, traffic_class: int | None = None) -> int:
        """Send one probe on `path`, in the control class unless another is given; returns its request id."""
        request_id = self._next_id
        self._next_id = request_id + 1 & _ID_MASK
        self._pending[request_id] = path, now_ns
        if len(self._pending) > PENDING_PER_PATH * len(self._peer.paths):
            del self._pending[next(iter(self._pending))]
        emit = self._emit if traffic_class is None else self._emit_with_data
        self._context.send_control(path, emit, (request_id,), traffic_class)
        self._context.counters.probes_sent += 1
        return request_id

    def ask(self, path: Path, now_ns: int) -> int:
        """Send one for a controller: its answer is a `PathAnswered`. Returns the request id."""
        request_id = self.probe(path, now_ns)
        self._asked &= self._pending.keys()
        self._asked.add(request_id)
        return request_id

    def _emit(self, buffer: memoryview, now_ns: int, request_id: int) -> int:
        context = self._context
        mask, ts_field = context.ports.table.carrier_mask, context.config.ts_field
        return wire.emit_request(buffer, wire.OP_EV_PROBE, request_id, mask, context.stamp(now_ns), ts_field)

    def _emit_with_data(self, buffer: memoryview, now_ns: int, request_id: int) -> int:
        """One that waits with the data counts as data when it leaves."""
        self._context.counters.suspect_probes_sent += 1
        return self._emit(buffer, now_ns, request_id)

    def watch(self, path: Path, now_ns: int, failed: bool) -> None:
        """Begin to probe `path`, which has just `failed`, or was kept out of use until now."""
        relapsed = failed and path.probes_needed and now_ns - path.restored_ns < RELAPSE_T * self._timing.t_ns
        path.probes_needed = min(2 * path.probes_needed, MAX_NEEDED) if relapsed else self._successes
        interval = self._timing.probe_interval_ns()
        suspect = _Suspect(path, interval, now_ns + self._context.prng.jitter(interval, JITTER_PERCENT))
        self._suspects[path] = suspect
        self._schedule(suspect, suspect.send_at)

    def _schedule(self, suspect: _Suspect, when_ns: int) -> None:
        heappush(self._heap, (when_ns, suspect.path.index))
        self._context.timers.arm(self, when_ns)

    def on_timer(self, now_ns: int) -> int:
        """Send the probes that are due, give up those not answered in time."""
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            when, index = heappop(heap)
            suspect = self._suspects.get(self._peer.paths[index])
            if suspect is None:
                continue
            if when == suspect.send_at:
                if self._peer.ports.can_probe(suspect.path.plane):
                    self._send(suspect, now_ns)
                else:
                    self._postpone(suspect, now_ns)
            elif when == suspect.timeout_at:
                self._fail(suspect, now_ns)
        return heap[0][0] if heap else NEVER

    def _send(self, suspect: _Suspect, now_ns: int) -> None:
        suspect.request_id = self.probe(suspect.path, now_ns, self._class)
        suspect.send_at = NEVER
        suspect.timeout_at = now_ns + self._timing.probe_timeout_ns()
        self._schedule(suspect, suspect.timeout_at)

    def _postpone(self, suspect: _Suspect, now_ns: int) -> None:
        """The plane has no port: a probe would say nothing about the EV."""
        suspect.interval_ns = self._timing.probe_interval_ns()
        suspect.send_at = now_ns + self._context.prng.jitter(suspect.interval_ns, JITTER_PERCENT)
        self._schedule(suspect, suspect.send_at)

    def _fail(self, suspect: _Suspect, now_ns: int) -> None:
        self._pending.pop(suspect.request_id, None)
        suspect.successes = 0
        suspect.timeout_at = NEVER
        suspect.interval_ns = min(2 * suspect.interval_ns, self._longest_ns())
        suspect.send_at = now_ns + self._context.prng.jitter(suspect.interval_ns, JITTER_PERCENT)
        self._schedule(suspect, suspect.send_at)

    def _longest_ns(self) -> int:
        """Longest pause between probes; never below the first one. While the peer cannot be reached at all, no longer
        than one probe a T on any of its paths."""
        most_t = MAX_BACKOFF_T if self._peer.evs.paths else min(len(self._suspects), MAX_BACKOFF_T)
        return max(most_t * self._timing.unit_ns, self._timing.probe_interval_ns())

    def forget(self, path: Path) -> None:
        """Stop probing `path`: it was denied."""
        self._suspects.pop(path, None)

    def on_answer(self, request_id: int, entropy: int, marked: bool, arrival_ns: int, now_ns: int) -> bool:
        """An answer came; False when nobody waits for it. `entropy` is the EV the request had at the far end, `marked`
        whether it arrived with CE."""
        path, sent_ns = self._pending.get(request_id, (None, 0))
        if path is None or path.ev != entropy:
            return False
        del self._pending[request_id]
        path.answered = True
        path.probed_ns = sent_ns
        self._timing.sample(arrival_ns - sent_ns, arrival_ns)
        self._peer.reverse.learn(path)
        self._peer.ports.on_probe_answer(path.plane, sent_ns, now_ns)
        if request_id in self._asked:
            self._asked.discard(request_id)
            answered = PathAnswered(self._peer.number, path.plane, request_id, arrival_ns - sent_ns)
            self._context.events.append(answered)
        suspect = self._suspects.get(path)
        if suspect is not None and suspect.request_id == request_id:
            self._succeed(suspect, sent_ns, marked, now_ns)
        return True

    def _succeed(self, suspect: _Suspect, sent_ns: int, marked: bool, now_ns: int) -> None:
        """One more answer in a row. A marked one proves as well as another that the path carries packets; whether the
        path returns as GOOD or as SKIP is up to the last of them (spec, figure 5, by its readers: one; P1 2.1:
        several)."""
        suspect.successes += 1
        suspect.request_id = -1
        suspect.timeout_at = NEVER
        needed = self._successes if not self._peer.evs.paths else suspect.path.probes_needed
        if suspect.successes >= needed:
            del self._suspects[suspect.path]
            suspect.path.restored_ns = now_ns
            self._peer.restore(suspect.path, marked, now_ns)
            return
        # The path answers: find out within a few round trips whether it does so reliably.
        suspect.send_at = max(sent_ns + self._timing.t_ns, now_ns)
        self._schedule(suspect, suspect.send_at)
