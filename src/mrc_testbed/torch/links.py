"""Bytes between two ranks, in streams: cut into slots of registered memory, each a write with immediate.

A rank has as many slots at each other rank as that has at it. A slot is used again when its write is complete and the
other rank has said that it is empty. The immediate of a write names its stream; an empty write gives slots back.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Final

from mrc_testbed import verbs

SLOTS: Final = 8
SLOT_BYTES: Final = 1 << 16
_HALF: Final = SLOTS * SLOT_BYTES
_BACK: Final = SLOTS // 2
"""Slots that are given back together."""
_RECEIVES: Final = 2 * SLOTS


class Transfer:
    """Bytes that go or come."""

    def __init__(self, link: Link, view: memoryview) -> None:
        self.link, self.view = link, view
        self.at = 0

    @property
    def done(self) -> bool:
        """All bytes are where they shall be."""
        return self.at == len(self.view)


class Sending(Transfer):
    """Done when all bytes are on their way, or, if `arrives`, in the other rank's memory."""

    def __init__(self, link: Link, stream: int, view: memoryview, arrives: bool) -> None:
        super().__init__(link, view)
        self.stream, self.arrives = stream, arrives
        self.last = 0
        """Of the slots with its bytes."""

    @property
    def done(self) -> bool:
        return super().done and (not self.arrives or self.link.arrived >= self.last)


class Link:
    """To one other rank. It never waits: `on` is told what the device has, `go_on` sends what there is room for."""

    def __init__(self, device: verbs.Device) -> None:
        self.peer = ""
        """Its name."""
        self.error = ""
        """Why nothing comes or goes any more."""
        self.arrived = 0
        """Slots that are in the other rank's memory."""
        self._region = device.register(bytearray(2 * _HALF))
        self.qp = device.queue_pair(4 * SLOTS, _RECEIVES)
        self._sent = self._emptied = self._came = self._owed = 0
        self._data: set[int] = set()
        """Writes with data that are outstanding."""
        self._outgoing: deque[Sending] = deque()
        self._wanted: dict[int, deque[Transfer]] = defaultdict(deque)
        self._early: dict[int, bytearray] = {}
        self.qp.post_receive(_RECEIVES)

    @property
    def address(self) -> bytes:
        """For the other rank."""
        return self.qp.address(self._region).to_bytes()

    def connect(self, address: bytes) -> None:
        """What the other rank's `address` is."""
        self._remote = verbs.Address.from_bytes(address)
        self.qp.connect(self._remote)

    @property
    def at_rest(self) -> bool:
        """All that was sent has arrived, or never will."""
        return bool(self.error) or not self._data

    def send(self, stream: int, view: memoryview, arrives: bool = False) -> Sending:
        """The bytes must not change before it is done."""
        made = Sending(self, stream, view, arrives)
        if view and not self.error:
            self._outgoing.append(made)
        self.go_on()
        return made

    def receive(self, stream: int, view: memoryview) -> Transfer:
        """The next bytes of a stream."""
        made = Transfer(self, view)
        if early := self._early.pop(stream, None):
            rest = self._fill(made, memoryview(early))
            if rest:
                self._early[stream] = bytearray(rest)
        if not made.done and not self.error:
            self._wanted[stream].append(made)
        return made

    def fail(self, why: str) -> None:
        """Nothing goes or comes any more: memory of what is not done is not touched again."""
        self.error = self.error or why
        self._outgoing.clear()
        self._wanted.clear()

    def on(self, completion: verbs.Completion) -> None:
        """What the device has of the QP."""
        if completion.kind == "error":
            self.fail(completion.text)
        elif self.error:
            return
        elif completion.kind == "write":
            if completion.id in self._data:
                self._data.remove(completion.id)
                self.arrived += 1
        elif completion.byte_len:
            self._take(completion.immediate, completion.byte_len)
        else:
            self._emptied += completion.immediate
            self.qp.post_receive()

    def go_on(self) -> None:
        """Send what there is room for."""
        try:
            while self._outgoing and not self.error and self._sent - min(self.arrived, self._emptied) < SLOTS:
                self._send_slot(self._outgoing[0])
        except verbs.VerbsError as error:
            self.fail(str(error))

    def _send_slot(self, sending: Sending) -> None:
        place = self._sent % SLOTS * SLOT_BYTES
        part = sending.view[sending.at : sending.at + SLOT_BYTES]
        self._region.view[place : place + len(part)] = part
        number = self.qp.write(self._region, place, len(part), self._remote, _HALF + place, sending.stream)
        self._data.add(number)
        self._sent += 1
        sending.at += len(part)
        sending.last = self._sent
        if sending.at == len(sending.view):
            self._outgoing.popleft()

    def _take(self, stream: int, length: int) -> None:
        place = _HALF + self._came % SLOTS * SLOT_BYTES
        self._came += 1
        self._hand_out(stream, self._region.view[place : place + length])
        self._owed += 1
        try:
            self.qp.post_receive()
            if self._owed == _BACK:
                self.qp.write(self._region, 0, 0, self._remote, 0, self._owed)
                self._owed = 0
        except verbs.VerbsError as error:
            self.fail(str(error))

    def _hand_out(self, stream: int, data: memoryview) -> None:
        wanted = self._wanted[stream]
        while data and wanted:
            data = self._fill(wanted[0], data)
            if wanted[0].done:
                wanted.popleft()
        if not wanted:
            del self._wanted[stream]
        if data:
            self._early.setdefault(stream, bytearray()).extend(data)

    @staticmethod
    def _fill(transfer: Transfer, data: memoryview) -> memoryview:
        """Returns what is left."""
        part = data[: len(transfer.view) - transfer.at]
        transfer.view[transfer.at : transfer.at + len(part)] = part
        transfer.at += len(part)
        return data[len(part) :]
