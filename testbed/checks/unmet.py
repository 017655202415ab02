"""Faults that met no packet: they were there, and nothing of the workload came by. Pure.

There are two witnesses: the books, which know each packet that a broken link took, and the counters of the ports, five
times a second. Both must say so, as far as they know anything; what is not certain is not said.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from mrc_testbed.testbed.checks.derived import derived
from mrc_testbed.testbed.checks.fault_drops import Ignorance, ledger_of
from mrc_testbed.testbed.checks.link_loads import Port, SentBytes, sent_bytes
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.recovery import recoveries
from mrc_testbed.testbed.checks.windows import Outage, nothing, occurrences, outages
from mrc_testbed.testbed.scenario import Effect
from mrc_testbed.topos.nodes import Link

MOST_IDLE_BYTES = 1000
"""More than kernels say to their neighbours on a link without traffic, and less than a packet of data."""


@derived
def unmet_faults(record: RunRecord) -> tuple[str, ...]:
    """Names of injected faults that met no packet of the workload, as far as is known, in order of time."""
    met = met_outages(record)
    names = dict.fromkeys(one.fault for one in outages(record))
    return tuple(name for name in names if all(one.fault != name for one in met))


@derived
def met_outages(record: RunRecord) -> list[Outage]:
    """All but those that met no packet of the workload, as far as is known: such a one decides nothing."""
    noticed = {(one.fault, one.number) for one in recoveries(record)}
    return [one for one in outages(record) if one.occurrence.key in noticed or not _met_nothing(record, one)]


def require_met(record: RunRecord, fault: str) -> list[Outage]:
    """The occurrences of a fault, or of all without a name, that met a packet. Raises NoData where there is none."""
    met, done = met_outages(record), occurrences(record, fault)
    return [one for one in done if one in met] or nothing(f"no packet met {fault or 'a fault'}")


def unmet_words(record: RunRecord) -> str:
    """`no packet met cut and reboot`; empty where each was met, or that is not known."""
    names = unmet_faults(record)
    return f"no packet met {', '.join(names[:-1])}{' and ' if names[1:] else ''}{names[-1]}" if names else ""


def _met_nothing(record: RunRecord, outage: Outage) -> bool:
    """False also where nobody could know."""
    links = list(_links(record, outage))
    ports = [(end.node, end.name) for link in links for end in (link.near, link.far)]
    read = sent_bytes(record)
    if not links or any(port not in read.sent for port in ports):
        return False
    inside, around = _readings(read.times_ns, outage)
    idle = MOST_IDLE_BYTES * len(links)
    if (dropped := _dropped(record, links)) or (inside and _between(read, ports, inside) > idle):
        return False
    broken = outage.occurrence.model.effect is Effect.PORTS
    return bool(inside) or (broken and dropped is False) or (bool(around) and _between(read, ports, around) <= idle)


def _links(record: RunRecord, outage: Outage) -> Iterator[Link]:
    """Those that it broke, slowed or took packets on."""
    plan = record.plan
    names = dict.fromkeys((*outage.occurrence.links, *outage.occurrence.targets))
    yield from (plan.link_by_name[name] for name in names if name in plan.link_by_name)


def _dropped(record: RunRecord, links: list[Link]) -> bool | None:
    """Whether the books know a packet that was lost on one of them; None without books."""
    ledger = ledger_of(record)
    if isinstance(ledger, Ignorance):
        return None
    names = {link.name for link in links}
    return any(drop.data + drop.high and drop.links & names for drop in ledger.drops)


def _readings(times_ns: Sequence[int], outage: Outage) -> tuple[range, range]:
    """Numbers of the readings inside its time, and from the last one before it to the first one after it. Empty where
    there are fewer than two."""
    end_ns = times_ns[-1] if outage.healed_ns is None and times_ns else outage.healed_ns or 0
    begin, end = bisect_left(times_ns, outage.injected_ns), bisect_right(times_ns, end_ns)
    before = max(0, bisect_right(times_ns, outage.injected_ns) - 1)
    after = min(len(times_ns), bisect_left(times_ns, end_ns) + 1)
    return _of_two(range(begin, end)), _of_two(range(before, after))


def _of_two(readings: range) -> range:
    return readings if len(readings) > 1 else range(0)


def _between(read: SentBytes, ports: Sequence[Port], readings: range) -> int:
    """Bytes that the ports sent from the first of these readings to the last."""
    return sum(read.sent[port][readings[-1]] - read.sent[port][readings[0]] for port in ports)
