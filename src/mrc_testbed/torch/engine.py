"""The thread that moves the bytes of a process group. Operations go on side by side and wait for none but their own."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Final

from mrc_testbed import verbs
from mrc_testbed.torch.links import Link, Transfer

Steps = Generator[Sequence[Transfer], None, None]
"""What an operation does: after each step it gives what it waits for."""
_FLUSH_S: Final = 30.0
"""Seconds that the last bytes may take at the end."""


@dataclass
class Operation:
    """One call of a program. `finish` gets None, or why it failed."""

    name: str
    steps: Steps
    until: float
    timeout: float
    finish: Callable[[str | None], None]
    waits_for: list[Transfer] = field(default_factory=list)

    def go_on(self) -> bool:
        """As far as it gets. Returns True when it is over."""
        try:
            while all(each.done for each in self.waits_for):
                self.waits_for = list(next(self.steps))
        except StopIteration:
            self.finish(None)
            return True
        except Exception as error:
            self.fail(f"{type(error).__name__}: {error}")
            return True
        if why := self._has_failed():
            self.fail(why)
        return bool(why)

    def fail(self, why: str) -> None:
        """Its links fail with it: what the other ranks still send of it would be taken for something else."""
        for each in self.waits_for:
            if not each.done:
                each.link.fail(why)
        self.steps.close()
        self.finish(f"{self.name}: {why}")

    def _has_failed(self) -> str:
        """Only what it waits for can fail it."""
        left = [each.link for each in self.waits_for if not each.done]
        if broken := next((link for link in left if link.error), None):
            return f"{broken.peer}: {broken.error}"
        if time.monotonic() > self.until:
            return f"waited {self.timeout:.0f} s for {', '.join(dict.fromkeys(link.peer for link in left))}"
        return ""


class Engine:
    """Owns a device and the links of a group, which no other thread touches once it has started."""

    def __init__(self, device: verbs.Device | None, links: dict[int, Link], timeout: float) -> None:
        self.links = links
        self._device, self._timeout = device, timeout
        self._new: deque[Operation] = deque()
        self._operations: list[Operation] = []
        self._closing = False
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._pid = os.getpid()
        self._thread = Thread(target=self._run, name="mrc", daemon=True)
        self._thread.start()

    def submit(self, name: str, steps: Steps, finish: Callable[[str | None], None]) -> None:
        """Have an operation done."""
        if self._closing or os.getpid() != self._pid:
            finish(f"{name}: the process group is closed, or of another process")
            return
        self._new.append(Operation(name, steps, time.monotonic() + self._timeout, self._timeout, finish))
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Wait until all that was sent has arrived, then give the device back."""
        if self._closing or os.getpid() != self._pid:
            return
        self._closing = True
        os.eventfd_write(self._wake, 1)
        self._thread.join(2 * _FLUSH_S)

    def _run(self) -> None:
        while not self._closing:
            self._turn()
            self._sleep(bool(self._operations), self._next_deadline())
        self._turn()
        for each in self._operations:
            each.fail("the process group was closed")
        until = time.monotonic() + _FLUSH_S
        while not all(link.at_rest for link in self.links.values()) and time.monotonic() < until:
            self._sleep(True, until)
            self._hear()
        if self._device:
            self._device.close()

    def _turn(self) -> None:
        self._hear()
        while self._new:
            self._operations.append(self._new.popleft())
        going_on = True
        while going_on:
            before = len(self._operations)
            self._operations = [each for each in self._operations if not each.go_on()]
            going_on = len(self._operations) < before

    def _hear(self) -> None:
        """Take what the device has, and send what there is room for."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        if not self._device:
            return
        try:
            by_qp: dict[Any, Link] = {link.qp: link for link in self.links.values()}
            for completion in self._device.poll():
                by_qp[completion.qp].on(completion)
        except verbs.DeviceLost as error:
            for link in self.links.values():
                link.fail(str(error))
        for link in self.links.values():
            link.go_on()

    def _sleep(self, busy: bool, until: float | None) -> None:
        """Until there is something to do. What comes while nobody waits for it stays where it is."""
        waiting = select.poll()
        waiting.register(self._wake, select.POLLIN)
        if busy and self._device and not all(link.error for link in self.links.values()):
            waiting.register(self._device.fileno(), select.POLLIN)
        waiting.poll(None if until is None else max(0, round(1000 * (until - time.monotonic())) + 1))

    def _next_deadline(self) -> float | None:
        return min((each.until for each in self._operations), default=None)
