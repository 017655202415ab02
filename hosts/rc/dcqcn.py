"""DCQCN's reaction point: the rate at which a QP may send, from the congestion notifications (CNPs) it gets.

Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 5; constants in units of T, of
a T of 13 us. Nothing here is armed: what the timers of the paper would have done by now is worked out when the rate is
asked for, so that a QP that sends at the rate of its port costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

REFERENCE_T_NS = 13_000
"""The round trip for which the constants were published (HPCC's simulator; 400 Gb/s, two tiers of switches)."""


@dataclass(frozen=True, slots=True)
class DcqcnProfile:
    """Constants. Times are nanoseconds at `REFERENCE_T_NS`, rates are shares of the line rate."""

    notify_ns: int
    """Least time between two CNPs of one QP, and between two cuts."""
    alpha_ns: int
    """Time without CNP after which alpha decays."""
    increase_ns: int
    byte_counter_ns: int
    """Bytes after which the rate is increased too, as time at line rate; 0: time alone counts."""
    recoveries: int
    """Increases halfway back to the rate before the cut, before the target is raised."""
    additive: float
    hyper: float
    gain: float = 1 / 256
    minimum: float = 0.001


PROFILES = {
    # The paper, with its byte counter of 10 MB at 40 Gb/s; R_AI is 40 Mb/s of 40 Gb/s.
    "dcqcn": DcqcnProfile(50_000, 55_000, 55_000, 2_000_000, 5, 0.001, 0.01),
    # What NICs are shipped with, as HPCC's simulator has it: 5 and 50 Mb/s of 25 Gb/s.
    "dcqcn-vendor": DcqcnProfile(4_000, 1_000, 300_000, 0, 1, 0.0002, 0.002),
}
_RELEASED = 0.999
"""Share of the line rate from which a QP is limited no longer."""


def scaled(reference_ns: int, t_ns: int) -> int:
    """A time of the reference network in one whose round trip is `t_ns`."""
    return max(reference_ns * t_ns // REFERENCE_T_NS, 1)


class ReactionPoint:
    """The rate of one QP, as a share of the line rate."""

    __slots__ = (
        "_alpha_from",
        "_alpha_ns",
        "_byte_limit",
        "_byte_stage",
        "_bytes",
        "_cut_at",
        "_increase_from",
        "_increase_ns",
        "_line_bps",
        "_notify_ns",
        "_profile",
        "_time_stage",
        "alpha",
        "limited",
        "rate",
        "target",
    )

    def __init__(self, profile: DcqcnProfile, line_bps: int, t_ns: int) -> None:
        self._profile = profile
        self._line_bps = line_bps
        self.alpha = 1.0
        self.rate = self.target = 1.0
        self.limited = False
        """Below line rate."""
        self._cut_at = -(1 << 62)
        self._alpha_from = self._increase_from = 0
        self._time_stage = self._byte_stage = self._bytes = 0
        self.scale(t_ns)

    def scale(self, t_ns: int) -> None:
        """T is `t_ns`."""
        profile = self._profile
        self._notify_ns = scaled(profile.notify_ns, t_ns)
        self._alpha_ns = scaled(profile.alpha_ns, t_ns)
        self._increase_ns = scaled(profile.increase_ns, t_ns)
        self._byte_limit = scaled(profile.byte_counter_ns, t_ns) * self._line_bps // 8_000_000_000

    def notified(self, now_ns: int) -> bool:
        """A CNP arrived: cut the rate, unless it has just been cut."""
        self.catch_up(now_ns)
        if now_ns - self._cut_at < self._notify_ns:
            return False
        profile = self._profile
        if self._cut_at >= 0:
            self.alpha *= (1 - profile.gain) ** ((now_ns - self._alpha_from) // self._alpha_ns)
        self.target = self.rate
        self.rate = max(self.rate * (1 - self.alpha / 2), profile.minimum)
        self.alpha = (1 - profile.gain) * self.alpha + profile.gain
        self._cut_at = self._alpha_from = self._increase_from = now_ns
        self._time_stage = self._byte_stage = self._bytes = 0
        self.limited = True
        return True

    def catch_up(self, now_ns: int) -> None:
        """Do what the increase timer would have done until `now_ns`."""
        while self.limited and now_ns - self._increase_from >= self._increase_ns:
            self._increase_from += self._increase_ns
            self._increase()
            self._time_stage += 1

    def sent(self, size: int) -> None:
        """Count `size` bytes sent while limited."""
        if self._profile.byte_counter_ns:
            self._bytes += size
            if self._bytes >= self._byte_limit:
                self._bytes -= self._byte_limit
                self._increase()
                self._byte_stage += 1

    def _increase(self) -> None:
        """One step back: fast recovery at first, then additive, then hyper increase."""
        profile = self._profile
        if profile.byte_counter_ns:
            most, least = max(self._time_stage, self._byte_stage), min(self._time_stage, self._byte_stage)
        else:
            most = least = self._time_stage
        if most >= profile.recoveries:
            step = profile.hyper if least > profile.recoveries else profile.additive
            self.target = min(self.target + step, 1.0)
        self.rate = (self.rate + self.target) / 2
        if self.rate >= _RELEASED:
            self.rate = self.target = 1.0
            self.limited = False
