"""What brings traffic onto another path when nothing was measured: transports, routing and timers of the parts list."""

from __future__ import annotations

from collections.abc import Mapping

from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, derived
from mrc_testbed.testbed.planner.arithmetic.quantities import duration_words
from mrc_testbed.testbed.planner.arithmetic.recovery import PathRecovery


def listed_recoveries(numbers: Mapping[str, MarkedNumber], rtt: MarkedNumber) -> tuple[PathRecovery, ...]:
    """From the fastest to the slowest. `numbers`: of [recovery] in the parts list; `rtt`: in us. Where routing finds
    another path, NICs wait for it as long as their retries last."""
    turns, retries = numbers["mrc"], numbers["nic_retries"]
    by_packets = derived("s", "round trips x RTT", lambda mrc, rtt: mrc * rtt / 1e6, mrc=turns, rtt=rtt)
    return (
        PathRecovery(f"MRC, {turns.value:g} RTT of {rtt.value:g} us", by_packets),
        PathRecovery(f"MRC, a timeout of {_words(numbers['mrc_timeout'])}", numbers["mrc_timeout"]),
        PathRecovery(f"BFD, {_words(numbers['bfd'])}", numbers["bfd"], retries),
        PathRecovery(f"BGP, carrier seen, {_words(numbers['bgp_carrier'])}", numbers["bgp_carrier"], retries),
        PathRecovery(f"BGP, hold timer {_words(numbers['bgp_hold'])}", numbers["bgp_hold"], retries),
    )


def _words(stall: MarkedNumber) -> str:
    return duration_words(stall.value)
