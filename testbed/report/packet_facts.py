"""What the summary tells of packets. Pure.

The fabric drops packets, which is counted where it happens. Senders take data packets for lost, which is a guess: one
that arrives after all, or was trimmed, is among them, and none of their own control packets is.
"""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.checks.conservation import Class
from mrc_testbed.testbed.checks.counting import LOST_PREFIX
from mrc_testbed.testbed.checks.fault_drops import Ignorance, drops_of, sums_of
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.shown import UNKNOWN

_DROPPED = {
    "rule": "by injected loss",
    "queue": "by full queues",
    "shaper": "by full shapers",
    "fault": "at dead links",
    "no route": "by nodes without a route",
    "refused": "by the sender's kernel",
}


_STRANGE = {
    "unknown_source": "from an unknown address",
    "unknown_port": "from an unknown port",
    "refused_unknown_peer": "of an unknown host",
    "refused_unknown_qp": "for no QP",
    "refused_wrong_peer": "for a QP to another host",
    "refused_wrong_qp": "of another QP",
}
"""What endpoints refuse because it does not belong to what was set up, by the counter's name."""


def packet_lines(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Where the packets of the run went, data and control apart, and what that is called. Counts of a line add up."""
    ledger = sums_of(record)
    if isinstance(ledger, Ignorance):
        yield "packets", f"not known: {ledger.why}"
        return
    data, control = ledger.data, ledger.high
    marked = [f"{ledger.marked} ECN marks"] if ledger.marked else []
    spoiled = [f"{ledger.corrupted} corrupted on the way"] if ledger.corrupted else []
    notes = f" ({', '.join([*marked, *spoiled])})" if marked or spoiled else ""
    whole = f"{data.arrived} arrived whole{notes}"
    trims = ledger.trimmed or record.scenario.transport.has_paths
    arrived = f"{whole}, {ledger.trimmed} trimmed" if trims else whole
    lost = lost_packets(record) if record.scenario.transport.has_paths else None
    taken = "" if lost is None else f"; senders took {lost} for lost"
    yield "packets", f"{data.sent} data sent{_copied(data)}: {arrived}, {_dropped(data)}{taken}"
    trimmed = f" and {ledger.trimmed} trimmed" if ledger.trimmed else ""
    yield "control", f"{control.sent} sent{_copied(control)}{trimmed}: {control.arrived} arrived, {_dropped(control)}"


def _copied(packets: Class) -> str:
    return f" and {packets.copied} copied by a fault" if packets.copied else ""


def refused_lines(record: RunRecord) -> Iterator[tuple[str, str]]:
    """What endpoints took for no packet of a QP that was set up, by reason; nothing without any."""
    counts = {words: sum(own.get(name, 0) for own in record.counters.values()) for name, words in _STRANGE.items()}
    told = ", ".join(f"{count} {words}" for words, count in counts.items() if count)
    if told:
        yield "refused", f"{sum(counts.values())} packets that fit no QP that was set up: {told}"


def _dropped(packets: Class) -> str:
    reasons = ", ".join(f"{count} {_DROPPED[reason]}" for reason, count in packets.dropped.items() if count)
    return f"{packets.all_dropped} dropped" + (f" ({reasons})" if reasons else "")


def lost_packets(record: RunRecord) -> int | None:
    """Data packets that senders took for lost, by their last word. None where nobody counted."""
    last = {host: shot.counters for host, shot in record.snapshots.last().items()} | dict(record.counters)
    found = [count for counters in last.values() for name, count in counters.items() if name.startswith(LOST_PREFIX)]
    return sum(found) if found else None


def drops_words(record: RunRecord, fault: str) -> str:
    """Data packets dropped because of this fault alone, and those that it shares with others: `34 + 12 shared`."""
    drops = drops_of(record, fault)
    if isinstance(drops, Ignorance):
        return UNKNOWN
    shared = sum(count for _, count in drops.shared)
    return f"{drops.alone} + {shared} shared" if shared else str(drops.alone)
