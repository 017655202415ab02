"""Advice for a machine that was too slow: as many packets in a round trip, half as fast. Pure."""

from __future__ import annotations

from dataclasses import replace

from mrc_testbed.testbed.checks.programs import cpu_shares
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.result import Fidelity, FidelityFigure
from mrc_testbed.testbed.scenario.text.units import format_duration, format_rate
from mrc_testbed.topos.shape import MIN_RATE_BPS

_TOO_SLOW = (
    *("timers late", "waiting for a CPU", "CPU pressure", "packets handled late", "socket drops"),
    "kernel input drops",
)
"""Prefixes of figures that less traffic improves."""
GREEDY = 0.5
"""From this share of the machine on, programs are named as a likely reason for a late machine."""
MUCH_STOLEN = 0.05
"""From here on other virtual machines are named as a likely reason for a late machine."""


def advised(record: RunRecord, fidelity: Fidelity) -> Fidelity:
    """With the next step of each figure that less load would mend."""
    slow = {figure.name for figure in fidelity.figures if not figure.ok and figure.name.startswith(_TOO_SLOW)}
    advice = _half_the_load(record, fidelity) if slow and not fidelity.caveat else ""

    def told(figure: FidelityFigure) -> FidelityFigure:
        return replace(figure, next_step=advice) if figure.name in slow else figure

    return replace(fidelity, figures=tuple(map(told, fidelity.figures)))


def _half_the_load(record: RunRecord, fidelity: Fidelity) -> str:
    """Empty if that would not help."""
    fabric = record.scenario.fabric
    if fabric.port_rate_bps < 2 * MIN_RATE_BPS or not fabric.rtt_ns:
        return ""
    rate, rtt = format_rate(fabric.port_rate_bps // 2), format_duration(2 * fabric.rtt_ns)
    reasons = [greedy_program(record)]
    if fidelity.stolen and fidelity.stolen >= MUCH_STOLEN:
        reasons.append(stolen_words(fidelity))
    why = "".join(f"{reason}; " for reason in reasons if reason)
    return f"{why}try a calmer machine, or half the load: --set fabric.port_rate={rate} --set fabric.rtt={rtt}"


def stolen_words(fidelity: Fidelity) -> str:
    """What other virtual machines had; empty where they had nothing."""
    stolen = fidelity.stolen or 0
    return f"other virtual machines had {stolen:.0%} of the CPU time that this one wanted" if stolen >= 0.005 else ""


def greedy_program(record: RunRecord) -> str:
    """The program that took most of the machine, where all together took much of it; else nothing."""
    shares = cpu_shares(record)
    if sum(shares.values()) < GREEDY:
        return ""
    host = max(shares, key=lambda name: shares[name])
    of_job = next(end.job for end in record.programs if end.host == host)
    command = next(job.entry.command_of(host)[0] for job in record.scenario.job.programs if job.name == of_job)
    whole = f"programs took {sum(shares.values()):.0%} of the machine's CPU time"
    return f"{whole}, {command} of {host} the most ({shares[host]:.0%})"
