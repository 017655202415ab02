"""Answers that name a packet by its PSN, known from the captures of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.lessons.cells import split_cell
from mrc_testbed.testbed.lessons.evidence import Evidence, NotKnown
from mrc_testbed.testbed.lessons.expression import ExpressionTerm
from mrc_testbed.testbed.lessons.kinds.kind import Judgement, Unusable, plain_text
from mrc_testbed.testbed.lessons.reading import Keys
from mrc_testbed.testbed.pcap.index import FOLDER, read_index
from mrc_testbed.testbed.wireview.capture import CaptureReader
from mrc_testbed.testbed.wireview.frame import Frame, unwrap
from mrc_testbed.testbed.wireview.names import address_name
from mrc_testbed.testbed.wireview.packet import Packet, parse
from mrc_testbed.testbed.wireview.select import PSN_DIGITS
from mrc_testbed.topos.names import parse_host


@dataclass(frozen=True, slots=True)
class FirstLost:
    """The PSN of the first packet that a host lost towards another: the oldest gap is filled first, so it is the first
    that left again. Captures of all ports of the sender must hold that moment."""

    word: ClassVar[str] = "psn_of"
    sender: str
    peer: str
    words: tuple[str, ...]
    needs_run: ClassVar[bool] = True
    choices: ClassVar[tuple[str, ...]] = ()
    terms: ClassVar[tuple[ExpressionTerm, ...]] = ()

    @classmethod
    def read(cls, keys: Keys) -> FirstLost:
        """Key `psn_of` (`h0->h4`)."""
        pair, words = split_cell(keys.text("psn_of", '"h0->h4"'))
        sender, _, peer = (part.strip() for part in pair.partition("->"))
        if parse_host(sender) is None or parse_host(peer) is None:
            keys.complain("must be a sender and its peer, such as h0->h4", "psn_of")
        return cls(sender, peer, words)

    def judge(self, given: Any, evidence: Evidence) -> Judgement:
        """Exactly this packet."""
        text = plain_text(given)
        if not text.isascii() or not text.isdecimal() or len(text) > PSN_DIGITS:
            raise Unusable(f"{text!r} is no PSN; write the number behind `psn`")
        truth = self.own(evidence)
        return Judgement(int(text) == truth, str(truth))

    def own(self, evidence: Evidence) -> int:
        """The first with the RTX bit. Raises NotKnown where no capture has one."""
        folder = evidence.one(self.words).record.folder / FOLDER
        files = [folder / Path(each.file).name for each in read_index(folder.parent)]
        again = [found for file in files for found in self._resent(file)]
        if not again:
            raise NotKnown(f"no capture of this run has a packet that {self.sender} sent to {self.peer} again")
        return min(again)[1]

    def _resent(self, file: Path) -> Iterator[tuple[int, int]]:
        """Time and PSN of every data packet that the sender sent again."""
        try:
            for record in CaptureReader(file):
                frame = unwrap(record)
                packet = parse(frame) if isinstance(frame, Frame) else None
                if isinstance(packet, Packet) and self._is_of(packet) and _is_sent_again(packet):
                    yield record.time_ns, int(packet.values["psn"])
        except UsageError as error:
            raise NotKnown(str(error)) from None

    def _is_of(self, packet: Packet) -> bool:
        ends = (address_name(packet.frame.source), address_name(packet.frame.destination))
        return ends == (self.sender, self.peer)

    @property
    def form(self) -> str:
        """A number."""
        return "a PSN, such as 15593463"


def _is_sent_again(packet: Packet) -> bool:
    """Data, and whole: a PSN beside a wrong ICRC may be another."""
    return packet.is_data and not packet.marks and bool(packet.values.get("rtx"))
