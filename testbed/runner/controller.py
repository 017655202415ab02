"""The central controller of a run: hears of carriers that go and come, and some time later tells hosts what to leave.

What a network does whose endpoints do not choose by themselves: switches report a link to one authority, which works
out who sends over it, and reaches each of these hosts. Endpoints of MRC need nobody (P1 2.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mrc_testbed.testbed.mapper.policy import DenyPolicy, MapPolicy, TalkingPath
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.events import Note, RunEvent
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.units import plural

Told = Callable[[str, Mapping[str, list[dict[str, Any]]]], None]
"""Sends `deny` or `allow` to hosts, each with its rows, and waits until all have confirmed. Raises RunError."""


class CentralController:
    """Of one run. `after_ns`: what it takes from a carrier to the hosts; None: it is dead, and does nothing."""

    def __init__(
        self,
        after_ns: int | None,
        plan: Plan,
        pairs: Iterable[tuple[str, str]],
        loop: Loop,
        recorder: Recorder,
        publish: Callable[[RunEvent], None],
        told: Told,
    ) -> None:
        self._after_ns, self._loop, self._recorder = after_ns, loop, recorder
        self._publish, self._told = publish, told
        self._policy = MapPolicy(plan, pairs, DenyPolicy.ALL, 0)
        self._down: Counter[str] = Counter()
        """By link without carrier, how many faults hold it down."""
        self._on = self._busy = False

    def start(self) -> None:
        """The workload begins. It hears of what was down before."""
        self._on = True
        self._later()

    def stop(self) -> None:
        """The workload is over; what is denied stays so."""
        self._on = False

    def heard(self, links: Iterable[str], up: bool) -> None:
        """A fault has taken the carrier of these links, or given it back."""
        for link in links:
            self._down[link] += -1 if up else 1
        if self._on:
            self._later()

    def _later(self) -> None:
        down = frozenset(link for link, faults in self._down.items() if faults)
        if self._after_ns is not None and (down or self._policy.denied):
            self._loop.at(self._loop.now_ns() + self._after_ns, lambda: self._act(down))

    def _act(self, down: frozenset[str]) -> None:
        """Tell hosts of what was down when it was heard. The loop turns while hosts answer, so one that comes meanwhile
        waits for its turn."""
        if not self._on:
            return
        if self._busy:
            self._loop.at(self._loop.now_ns() + 1, lambda: self._act(down))
            return
        self._busy = True
        for link in [link for link in self._policy.denied if link not in down]:
            self._allow(link)
        for link in sorted(down - self._policy.denied.keys()):
            self._deny(link)
        self._busy = False

    def _deny(self, link: str) -> None:
        paths = frozenset(self._policy.over(link))
        if not paths:
            return
        if left := self._policy.left_without(paths, ()):
            self._note(f"the controller leaves {link}: it would leave {left}")
            return
        before = self._denied
        self._policy.denied[link] = paths
        self._tell("deny", link, paths - before)

    def _allow(self, link: str) -> None:
        paths = self._policy.denied.pop(link)
        self._tell("allow", link, paths - self._denied)

    @property
    def _denied(self) -> frozenset[TalkingPath]:
        return frozenset[TalkingPath]().union(*self._policy.denied.values())

    def _tell(self, command: str, link: str, paths: frozenset[TalkingPath]) -> None:
        rows = self._policy.rows(paths)
        if not rows:
            return
        op, hosts = f"controller-{command}", list(rows)
        verb = {"deny": "denies", "allow": "allows"}[command]
        self._note(f"the controller {verb} what crosses {link}, on {plural(len(hosts), 'host')}")
        self._recorder.history("invoke", op=op, target=link, hosts=hosts)
        self._told(command, rows)
        self._recorder.history("ok", op=op, target=link, hosts=hosts)

    def _note(self, text: str) -> None:
        self._publish(Note(self._loop.now_ns(), "note", text))
