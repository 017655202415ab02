"""Packets that no endpoint sent: where more came than was sent. Pure.

Root's processes in a node of the fabric can send packets there with the addresses of a host. If they fit a QP in every
field, no endpoint can tell them from those of its peer: only the books can. Those of the fabric, of the port program,
tell to the packet at which node such packets began. Without them the endpoints' own counts are compared: less may
arrive than was sent, but never more. They see a forged packet only if it comes in place of none that was lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mrc_testbed.testbed.checks.fault_drops import Ignorance, ledger_of
from mrc_testbed.testbed.checks.record import RunRecord

Counters = Mapping[str, int]

ARRIVED_DATA = ("data_received", "duplicates", "trimmed_received")
"""Every data packet that reached a QP is in at most one of them."""
SENT_AND_ARRIVED = {
    "data packets": ("data_sent", ARRIVED_DATA),
    "SACKs": ("sacks_sent", ("sacks_received",)),
    "NACKs": ("nacks_sent", ("nacks_received",)),
    "CNPs": ("cnps_sent", ("cnps_received",)),
    "packets": ("packets_out", ("packets_in",)),
}
"""By what they are: the count of senders, and those of receivers whose sum is never greater over all hosts."""


@dataclass(frozen=True, slots=True)
class Surplus:
    """`packets` that came from no endpoint, in words `where`."""

    packets: int
    where: str

    def __str__(self) -> str:
        return self.where


def surpluses_of(record: RunRecord) -> tuple[Surplus, ...] | None:
    """By the books of the fabric, then by those of the endpoints. None where neither can be compared."""
    ledger, comparable = ledger_of(record), _comparable(record)
    if isinstance(ledger, Ignorance) and not comparable:
        return None
    gaps = () if isinstance(ledger, Ignorance) else ledger.from_nowhere
    counted = (*_by_node(record), *_in_all(record)) if comparable else ()
    return tuple(Surplus(-gap.missing, str(gap)) for gap in gaps) + counted


def _comparable(record: RunRecord) -> bool:
    """Whether all hosts count their own packets, as the kernel's TCP does not, and no fault may have copied any."""
    counting = {host for host, counters in record.counters.items() if "packets_out" in counters}
    return set(record.scenario.host_names) <= counting and not record.copied_links


def _by_node(record: RunRecord) -> Iterator[Surplus]:
    """Data packets that reached a host, where senders count by peer."""
    for host, counters in record.counters.items():
        if record.data_to is not None and all(name in counters for name in ARRIVED_DATA):
            yield from _surplus(f"data packets to {host}", record.data_to.get(host, 0), _sum(counters, ARRIVED_DATA))


def _in_all(record: RunRecord) -> Iterator[Surplus]:
    """What all hosts sent and what all of them were given."""
    everyone = list(record.counters.values())
    for what, (sent, arrived) in SENT_AND_ARRIVED.items():
        if all(sent in counters for counters in everyone):
            total = sum(_sum(counters, arrived) for counters in everyone)
            yield from _surplus(f"{what} of all hosts", sum(counters[sent] for counters in everyone), total)


def _sum(counters: Counters, names: tuple[str, ...]) -> int:
    return sum(counters.get(name, 0) for name in names)


def _surplus(what: str, sent: int, arrived: int) -> Iterator[Surplus]:
    if arrived > sent:
        yield Surplus(arrived - sent, f"{what}: {arrived} arrived, {sent} were sent")
