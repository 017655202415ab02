"""How far virtual time may be from the kernel, figure by figure, and why so far. Pure.

The kernel alone has a spread: the same scenario with the same seed does not give the same figures twice. Virtual time
has none. A tolerance is a little more than that spread, and what a machine adds to the network by taking time itself;
so what lies beyond it needs an explanation, and is as a rule a defect of one of the worlds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from types import MappingProxyType

OWN_SPREAD = 3.0
"""Standard deviations of the kernel's own runs that agree where there are ENOUGH of them."""
ENOUGH = 3


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The greatest difference that still agrees: the greatest of its parts.

    `share` of the greater value, `least` in base units (of figures in RTT: RTTs), and `deviations` standard deviations
    of the difference of two counts of independent events. `own_spread`: the kernel's own runs may widen it; what must
    be equal is a defect in each run that has it. `said`: the same for people; `why`: the reason.
    """

    said: str
    why: str
    share: float = 0.0
    least: float = 0.0
    deviations: float = 0.0
    own_spread: bool = True

    def allowed(self, kernel: Sequence[float], virtual: float) -> float:
        """The greatest difference from the mean of these runs on the kernel."""
        mean = fmean(kernel)
        return max(
            self.share * max(mean, virtual),
            self.least,
            self.deviations * sqrt(mean + virtual) if self.deviations else 0.0,
            OWN_SPREAD * stdev(kernel) if self.own_spread and len(kernel) >= ENOUGH else 0.0,
        )


_MS = 1e6
_BUSY = "on the kernel hosts, switches and test share two cores: steps take 1 to 5 % longer, up to 3 ms in short ones"
_MEDIAN = Tolerance("5 %, 4 ms", _BUSY, share=0.05, least=4 * _MS)
_WORST = Tolerance(
    *("15 %, 20 ms", "one step: a late timer, or one loss more at the end of a message"), share=0.15, least=20 * _MS
)
_RATE = Tolerance("5 %", "of steps as their times; flows are within 1 %", share=0.05)
_FLOW = Tolerance("3 %", "the kernel's runs are within 1 % of each other", share=0.03)
_LATENCY = Tolerance(
    "0.3 ms", "what a machine takes for a packet and its answer: 0.2 ms, at T of 2 ms", share=0.05, least=0.3 * _MS
)
_RECOVERY = Tolerance("1 RTT", "a loss is found by what is sent later, which comes in turns of T/10", least=1.0)
_LOST = Tolerance(
    *("15 %, 3 sqrt(n)", "what is under way when a link falls is chance; the kernel's runs differ by up to 30 %"),
    share=0.15,
    deviations=3.0,
)
_EVS = Tolerance(
    "10 %; equal below 10", "a hard fault retires the EVs over it, each once; a loss rate those that it hits", share=0.1
)
_QUEUES = Tolerance(
    *("2 times, 3 sqrt(n)", "packets that meet; the kernel's own runs differ by up to 2 times"),
    share=0.5,
    deviations=3.0,
)
_TIMERS = Tolerance("3 sqrt(n)", "the end of a message is lost, or its acknowledgement: chance", deviations=3.0)
_EQUAL = Tolerance("equal", "neither chance nor a machine decides it", own_spread=False)
_DEATH = Tolerance("10 %", "retries end a fixed time after the fault", share=0.1)

TOLERANCES: Mapping[str, Tolerance] = MappingProxyType(
    {
        "step_time.median clean": _MEDIAN,
        "step_time.median": _MEDIAN,
        "step_time.p100": _WORST,
        "goodput clean": _RATE,
        "goodput during faults": _RATE,
        "flow_goodput.min": _FLOW,
        "fair_share.min": _FLOW,
        "latency.median": _LATENCY,
        "recovery.p50 in rtt": _RECOVERY,
        "recovery.p100 in rtt": _RECOVERY,
        "packets_lost": _LOST,
        "retransmissions": _LOST,
        "evs_retired": _EVS,
        "marks": _QUEUES,
        "ecn_skips": _QUEUES,
        "trims": _QUEUES,
        "queue_drops": _QUEUES,
        "timeouts": _TIMERS,
        "job_died": _EQUAL,
        "died_at": _DEATH,
        "qp_errors": _EQUAL,
        "bytes_wrong": _EQUAL,
        "data_on_bad_ev": _EQUAL,
        "unrestored_evs": _EQUAL,
    }
)
"""By the key of a figure (figures.py)."""
