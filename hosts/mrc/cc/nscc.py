"""NSCC, the window of UEC 1.0 that MRC names `uet-1.0-nscc` (API). The constants are htsim's.

Four cases by ECN mark and delay (round trip less the idle one), and only "marked and slow" cuts the window: a mark
on a fast path is for the EV alone (SKIP). Beside it, quick adapt: when packets were trimmed, or the delay is far out,
the window becomes what was achieved in the last period. Where this differs from the text of UEC 1.0, 3.6.13, the table
in docs/protocol.md says why and what the difference is worth.
"""

from __future__ import annotations

from mrc_testbed.hosts.mrc.timing import Timing

REFERENCE_BDP_BYTES = 150_000
"""100 Gb/s x 12 us, for which htsim's constants hold: a = BDP / this. The testbed keeps bytes per BDP near the real
ones by stretching T as it lowers the rate (design 7), so a is near its real value too."""
REFERENCE_RTT_PER_T = 1.2
"""12 us for a real round trip of 10 us; b = target / (this x T)."""
TARGET_PER_T = 0.75
"""Target delay in T, with trimming (htsim)."""
TARGET_PER_T_UNTRIMMED = 1.0
FAIR_INCREASE_PACKETS = 5
"""Times a, each round trip in which all is slow and unmarked: the same for a small window as for a large one."""
GAMMA = 0.8
MAX_MD_JUMP = 0.5
QA_GATE = 3
"""Quick adapt acts when less than max_cwnd >> 3 was achieved."""
QA_TARGETS = 4
"""Delay, in targets, above which quick adapt acts; trimmed or lost packets are its other reason."""
ADJUST_PACKETS = 8
DELAY_GAIN = 0.0125
IDLE_DELAY_PER_T = 0.05
IDLE_DELAY_NS = 200_000
"""A delay below max of both counts as none (ours: htsim has 1 us of 12, and namespaces have jitter)."""


class Nscc:
    """One QP's window. Floating point inside, whole bytes outside."""

    __slots__ = (
        "_achieved", "_acked_since", "_adjusted_ns", "_alpha", "_average", "_base_ns", "_cut_ns", "_cwnd", "_eta",
        "_fast", "_fi", "_fi_scale", "_idle_delay", "_ignore", "_inc", "_limited", "_marked_until_ns", "_quick_ns",
        "_saved", "_target", "_timing", "_trigger", "_undelayed", "_used", "window",
    )  # fmt: skip

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._cwnd = float(timing.first_window_bytes)
        self.window = timing.first_window_bytes
        self._inc = 0.0
        """Increase gathered since the last adjustment, in bytes x bytes."""
        self._acked_since = 0
        self._adjusted_ns = 0
        self._average = 0.0
        self._cut_ns = 0
        self._marked_until_ns = 0
        """Until then a packet without a mark tells of a queue that marks others."""
        self._undelayed = 0
        """Bytes acknowledged in a row without any delay."""
        self._fast = False
        """Fast increase: they were more than a window, and no delay has been seen since."""
        self._achieved = 0
        self._quick_ns = 0
        """End of the present quick adapt period."""
        self._used = False
        """Was the window in use when that period began?"""
        self._trigger = False
        self._ignore = 0
        """Bytes that were under way at the last quick adapt and have not been acknowledged since: their marks say
        nothing about the new window."""
        self._limited = False
        """The SACK being read asks for less."""
        self._saved: float | None = None
        """The window before the receiver's penalty."""
        self._derive()

    def begin(self) -> None:
        """T may have been measured since; the window stays within its bounds."""
        self._derive()
        self._set(self._cwnd)

    def _derive(self) -> None:
        """What depends on T."""
        timing = self._timing
        self._base_ns = timing.base_ns
        of_t = TARGET_PER_T if timing.trimming else TARGET_PER_T_UNTRIMMED
        self._target = of_t * max(timing.base_ns, timing.least_t_ns)
        a = timing.t_bytes / REFERENCE_BDP_BYTES
        self._fi = FAIR_INCREASE_PACKETS * timing.packet_bytes * a
        self._fi_scale = 0.25 * a
        self._eta = 0.15 * timing.packet_bytes * a
        b = self._target / (REFERENCE_RTT_PER_T * timing.base_ns)
        self._alpha = 4 * timing.packet_bytes * a * b / self._target
        # Without this allowance no full packet ever looks undelayed, and a window that incast has cut grows back by a
        # few packets a round trip only. (UEC 1.0 takes its base RTT from packets of full size.)
        self._idle_delay = max(IDLE_DELAY_PER_T * timing.base_ns, IDLE_DELAY_NS // timing.swift) + timing.forwarding_ns

    def _set(self, wanted: float) -> None:
        timing = self._timing
        self._cwnd = min(max(wanted, float(timing.packet_bytes)), float(timing.window_bytes))
        self.window = int(self._cwnd)

    def on_sack(self, acked: int, rtt_ns: int | None, ecn: bool, under_way: int, now_ns: int) -> None:
        """The decision table, then the gathered increase when it is time."""
        if self._base_ns != self._timing.base_ns:
            self._derive()
        limited, self._limited = self._limited, False
        self._achieved += acked
        self._acked_since += acked
        self._ignore -= acked
        if rtt_ns is None:
            return
        delay = max(rtt_ns - self._base_ns, 0)
        self._average += DELAY_GAIN * (delay - self._average)
        if (ecn or now_ns >= self._quick_ns) and self._quick_adapt(ecn, delay, under_way, now_ns):
            return
        self._decide(acked, delay, ecn, limited, now_ns)
        self._fulfil(now_ns)

    def _decide(self, acked: int, delay: int, ecn: bool, limited: bool, now_ns: int) -> None:
        target = self._target
        if ecn:
            self._marked_until_ns = now_ns + self._timing.base_ns
            if delay >= target:
                self._cut(target, now_ns)
        elif limited:
            return
        elif delay >= target:
            if now_ns <= self._marked_until_ns:
                self._inc += self._fi * acked
        elif not self._increase_fast(acked, delay):
            self._inc += self._alpha * acked * (target - delay)

    def _increase_fast(self, acked: int, delay: int) -> bool:
        """A whole window without delay begins fast increase; the first delay ends it."""
        if delay >= self._idle_delay:
            self._undelayed = 0
            self._fast = False
            return False
        self._undelayed += acked
        self._fast = self._fast or self._undelayed > self._cwnd
        if self._fast:
            self._set(self._cwnd + acked * self._fi_scale)
        return self._fast

    def _cut(self, target: float, now_ns: int) -> None:
        self._undelayed = 0
        self._fast = False
        if self._average > target and now_ns - self._cut_ns >= self._timing.base_ns:
            self._cut_ns = now_ns
            self._set(self._cwnd * max(1 - GAMMA * (self._average - target) / self._average, MAX_MD_JUMP))

    def _fulfil(self, now_ns: int) -> None:
        timing = self._timing
        periodic = now_ns - self._adjusted_ns >= timing.base_ns
        if periodic or self._acked_since >= ADJUST_PACKETS * timing.packet_bytes:
            grown = self._cwnd + self._inc / self._cwnd
            if periodic:
                grown += self._eta
                self._adjusted_ns = now_ns
            self._inc = 0.0
            self._acked_since = 0
            self._set(grown)

    def _quick_adapt(self, marked: bool, delay: int, under_way: int, now_ns: int) -> bool:
        """Has quick adapt acted, or is this a mark on what was under way when it did? Then nothing else is to be done.

        The text has trims come as marked, and without a delay.
        """
        if self._ignore > 0 and marked:
            acted = True
        elif now_ns >= self._quick_ns:
            acted = self._end_period(delay, under_way, now_ns)
        else:
            return False
        if acted:
            self._inc = 0.0
            self._acked_since = 0
        return acted

    def _end_period(self, delay: int, under_way: int, now_ns: int) -> bool:
        """Once per T + target: fall to what was achieved, if that was little and there is a reason.

        Not if little was under way when the period began: a sender that waits for its last packet, or for work,
        achieves nothing, and that tells nothing about the network. (The text knows senders with a backlog only.)
        """
        target = self._target
        gate = self._timing.window_bytes >> QA_GATE
        used, self._used = self._used, under_way + self._timing.packet_bytes >= min(gate, self._cwnd)
        achieved, self._achieved = self._achieved, 0
        self._quick_ns = now_ns + self._timing.base_ns + int(target)
        alarmed = self._trigger or delay > QA_TARGETS * target
        if not used or not alarmed or achieved >= gate:
            return False
        self._trigger = False
        self._set(achieved)
        self._ignore = under_way
        return True

    def on_trim(self, size: int, under_way: int, now_ns: int) -> None:
        """A sample of a full queue, and an alarm for quick adapt; if that does not act, one packet less.

        A trimmed packet is not under way any more. Were it not counted, marks on later packets would be ignored in its
        place.
        """
        self._average += DELAY_GAIN * (self._base_ns - self._average)
        self._ignore -= size
        self._trigger = True
        if not self._quick_adapt(True, 0, under_way, now_ns):
            self._set(self._cwnd - size)

    def on_loss(self, size: int) -> None:
        """One packet less, as in UEC 1.0, where it may have been congestion. Where trims tell of that, the loss is its
        path's, which has been left (P1 section 2.1)."""
        self._ignore -= size
        if not self._timing.trims_tell:
            self._set(self._cwnd - size)

    def on_penalty(self, penalty: int, restore: bool, acked: int) -> None:
        """cwnd -= penalty x acked >> 7, and the SACK that says so lets nothing grow; `restore` without a penalty puts
        back the window of before (UEC 1.0 `apply_cwnd_penalty`, but for its minimum, see docs/protocol.md)."""
        if penalty:
            self._limited = True
            if self._saved is None:
                self._saved = self._cwnd
            self._set(self._cwnd - (penalty * acked >> 7))
        elif restore and self._saved is not None:
            self._set(self._saved)
            self._saved = None
