"""Counts over a capture: by type, by path, retransmissions, NACKs, and frames that are neither MRC nor RoCE-like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.rc import wire as rc_wire
from mrc_testbed.testbed.wireview.frame import Foreign
from mrc_testbed.testbed.wireview.names import RC_SYNDROMES
from mrc_testbed.testbed.wireview.packet import Packet

_REFUSALS = {
    bth.Refusal.TOO_SHORT: "to port 4791, shorter than a BTH",
    bth.Refusal.UNKNOWN_OPCODE: "to port 4791, an opcode of another transport",
    bth.Refusal.BAD_VERSION: "to port 4791, transport version not 0",
    bth.Refusal.BAD_LENGTH: "MRC, not as long as its opcode says",
    bth.Refusal.BAD_TIMESTAMP: "MRC data, no TSETH where TS says so",
}

_UNKNOWN = "-"


class Summary:
    """Counters; call `add` or `refuse` once per packet, then `lines` or `as_dict`."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.data: Counter[str] = Counter()
        self.retransmitted: Counter[str] = Counter()
        self.telling: Counter[str] = Counter()
        """Data packets that say whether they were sent before; those of RoCE do not."""
        self.control: Counter[str] = Counter()
        self.trimmed = 0
        self.nacks: Counter[str] = Counter()
        self.marks: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.of_any_interface = False
        self.times_ns: tuple[int, int] | None = None

    def add(self, packet: Packet) -> None:
        """Count an MRC packet."""
        values, time_ns = packet.values, packet.frame.time_ns
        self.types[packet.kind] += 1
        self.marks.update(packet.marks)
        if packet.is_data:
            self.data[packet.ev] += 1
            self.telling[packet.ev] += "rtx" in values
            self.retransmitted[packet.ev] += values.get("rtx", False)
            self.trimmed += values.get("trimmed", False)
        else:
            self.control[packet.ev] += 1
        if packet.opcode == wire.NACK:
            self.nacks[values["reason"]] += 1
        elif packet.opcode == rc_wire.ACKNOWLEDGE and values["syndrome"] != RC_SYNDROMES[rc_wire.SYNDROME_ACK]:
            self.nacks[values["syndrome"]] += 1
        first, last = self.times_ns or (time_ns, time_ns)
        self.times_ns = min(first, time_ns), max(last, time_ns)

    def refuse(self, reason: Foreign | bth.Refusal) -> str:
        """Count a frame that is not an MRC packet, by reason."""
        words: str = reason.value if isinstance(reason, Foreign) else _REFUSALS[reason]
        self.refused[words] += 1
        return words

    def as_dict(self) -> dict[str, Any]:
        """The counts in JSON types. `retransmitted` None: no data packet says so."""
        return {
            "packets": self.types.total(),
            "seconds": self._seconds(),
            "types": dict(self.types),
            "paths": {ev: {"data": n, "retransmitted": rtx, "control": m} for ev, n, rtx, m in self._rows()},
            "retransmitted": self._told(self.data.total(), self.telling.total(), self.retransmitted.total()),
            "trimmed": self.trimmed,
            "nacks": dict(self.nacks),
            "marks": dict(self.marks),
            "not_mrc": dict(self.refused),
        }

    def lines(self) -> Iterator[str]:
        """The counts as lines of text."""
        yield f"{self.types.total()} packets in {self._seconds():.3f} s"
        yield from _table(self.types)
        if self.types:
            yield ""
            yield f"{'plane/uplink':<14}{'data':>8}{'rtx':>8}{'control':>9}"
            for ev, *row in self._rows():
                shown = [_UNKNOWN if count is None else count for count in row]
                yield f"{ev:<14}{shown[0]:>8}{shown[1]:>8}{shown[2]:>9}"
            yield ""
            yield f"retransmissions  {self._retransmissions()}"
            yield f"trimmed          {self.trimmed}"
            yield f"NACKs            {', '.join(f'{n} {reason}' for reason, n in self.nacks.most_common()) or 'none'}"
        if self.of_any_interface:
            yield "captured on any interface: a packet counts at each interface that it passed"
        if self.marks:
            yield f"marked           {', '.join(f'{n} {mark}' for mark, n in self.marks.most_common())}"
        if self.refused:
            yield "not read:"
            yield from _table(self.refused)

    def _seconds(self) -> float:
        return (self.times_ns[1] - self.times_ns[0]) / 1e9 if self.times_ns else 0.0

    def _retransmissions(self) -> str:
        data, telling = self.data.total(), self.telling.total()
        if data and not telling:
            return "not told by RoCE"
        more = f"; {data - telling} of RoCE do not tell" if data > telling else ""
        return f"{self.retransmitted.total()} of {telling} data packets{more}"

    @staticmethod
    def _told(data: int, telling: int, retransmitted: int) -> int | None:
        return None if data and not telling else retransmitted

    def _rows(self) -> list[tuple[str, int, int | None, int]]:
        evs = sorted(self.data | self.control, key=_path_order)
        told = {ev: self._told(self.data[ev], self.telling[ev], self.retransmitted[ev]) for ev in evs}
        return [(ev, self.data[ev], told[ev], self.control[ev]) for ev in evs]


def _path_order(ev: str) -> tuple[int, ...]:
    """Planes in order, then uplinks; EVs that are not ours last."""
    return tuple(map(int, ev.split("/"))) if "/" in ev else (1 << 32,)


def _table(counts: Counter[str]) -> list[str]:
    return [f"  {n:>8}  {what}" for what, n in counts.most_common()]
