"""The central controller of a run: hears of carriers that go and come, and some time later tells hosts what to leave.

What a network does whose endpoints do not choose by themselves: switches report a link to one authority, which works
out who sends over it, and reaches each of these hosts. Endpoints of MRC need nobody (P1 2.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.mapper.policy import DenyPolicy, MapPolicy, TalkingPath
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.events import Note, RunEvent
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.units import plural

Told = Callable[[str, Mapping[str, list[dict[str, Any]]]], None]
"""Sends `deny` or `allow` to hosts, each with its rows, and waits until all have confirmed. Raises RunError."""


Decide = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Takes what a controller hears, and says which links and nodes hosts are to leave (`deny`) and may use (`allow`)."""


def as_heard(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a controller decides that knows of carriers alone."""
    return {"deny": line["down"], "allow": line["up"]}


class CentralController:
    """Of one run. `after_ns`: what it takes from a carrier to the hosts; None: it is dead, and does nothing.

    `decide`: asked when a carrier has gone or come; what it says is carried out `after_ns` later.
    """

    def __init__(
        self,
        after_ns: int | None,
        plan: Plan,
        pairs: Iterable[tuple[str, str]],
        loop: Loop,
        recorder: Recorder,
        publish: Callable[[RunEvent], None],
        told: Told,
        decide: Decide = as_heard,
    ) -> None:
        self._after_ns, self._plan, self._loop, self._recorder = after_ns, plan, loop, recorder
        self._publish, self._told, self._decide = publish, told, decide
        self._policy = MapPolicy(plan, pairs, DenyPolicy.ALL, 0)
        self._down: Counter[str] = Counter()
        """By link without carrier, how many faults hold it down."""
        self._start_ns: int | None = None
        self._busy = False

    def start(self) -> None:
        """The workload begins. It hears of what was down before."""
        self._start_ns = self._loop.now_ns()
        plan = self._plan
        hosts, switches, links = list(plan.host_by_name), list(plan.switch_by_name), list(plan.link_by_name)
        names = {"hosts": hosts, "switches": switches, "links": links}
        self._hear("start", sorted(+self._down), [], names)

    def stop(self) -> None:
        """The workload is over; what is denied stays so."""
        self._start_ns = None

    def heard(self, links: Iterable[str], up: bool) -> None:
        """A fault has taken the carrier of these links, or given it back."""
        before = +self._down
        for link in links:
            self._down[link] += -1 if up else 1
        went, came = sorted((+self._down).keys() - before), sorted(before.keys() - (+self._down))
        if went or came:
            self._hear("links", went, came, {})

    def _hear(self, event: str, down: list[str], up: list[str], more: Mapping[str, list[str]]) -> None:
        if self._after_ns is None or self._start_ns is None:
            return
        now_ns = self._loop.now_ns()
        line = {"event": event, "t_s": (now_ns - self._start_ns) / 1e9, "down": down, "up": up, **more}
        order = self._decide(line)
        deny, allow = self._names(order, "deny"), self._names(order, "allow")
        if deny or allow:
            self._loop.at(now_ns + self._after_ns, lambda: self._act(deny, allow))

    def _names(self, order: Mapping[str, Any], key: str) -> list[str]:
        names = order.get(key, [])
        plan = self._plan
        for name in names if isinstance(names, list) else [names]:
            known = isinstance(name, str) and (name in plan.link_by_name or name in plan.node_names)
            if not known or not isinstance(names, list):
                raise RunError(f"controller: {key}: {name!r} is no list of links, switches and hosts of this fabric")
        return list(names)

    def _act(self, deny: list[str], allow: list[str]) -> None:
        """The loop turns while hosts answer, so an order that is due meanwhile waits for its turn."""
        if self._start_ns is None:
            return
        if self._busy:
            self._loop.at(self._loop.now_ns() + 1, lambda: self._act(deny, allow))
            return
        self._busy = True
        for name in allow:
            if name in self._policy.denied:
                self._allow(name)
        for name in deny:
            if name not in self._policy.denied:
                self._deny(name)
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
