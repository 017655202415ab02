"""The rounds of probes of a warm-up: how many, and when each begins."""

from __future__ import annotations

ROUNDS = 3
"""The first round meets cold caches and every other host's burst; its RTTs alone would say too much."""
_MIN_PERIOD_NS = 10_000_000
_PERIOD_RTTS = 4
_ANSWER_RTTS = 2


def round_period_ns(rtt_ns: int, swift: int, round_ns: int) -> int:
    """From one round to the next. `round_ns`: what the ports need for a probe on every path, and its answer; `swift`:
    how many times faster than daemons hosts are."""
    return max(_MIN_PERIOD_NS // swift, _PERIOD_RTTS * rtt_ns, round_ns)


def answers_ns(rtt_ns: int, swift: int, round_ns: int) -> int:
    """From a round until its answers are there."""
    return max(_MIN_PERIOD_NS // swift, _ANSWER_RTTS * rtt_ns, round_ns)


def last_round_ns(rtt_ns: int, swift: int, round_ns: int) -> int:
    """From the first round to the last."""
    return (ROUNDS - 1) * round_period_ns(rtt_ns, swift, round_ns)
