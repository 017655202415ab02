"""The eight steps, each with the runs that show whether a program can do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mrc_testbed.testbed.interop import always, judges
from mrc_testbed.testbed.interop.evidence import Complaints, Role, StepEvidence

Judge = Callable[[StepEvidence], Complaints]
_ALWAYS: tuple[Judge, ...] = (always.psns_in_order, always.honest)
_WHOLE: tuple[Judge, ...] = (*_ALWAYS, always.whole_run)
_REST = """capture:
  - {links: "h0:*", around: run}
time_limit: 20s
expect:
  - qp_errors <= 9
"""
"""People look at captures; judges have the tape. Each step has its own limit of QP errors."""
_ONE_PATH = "fabric: {planes: 1, t0_groups: 2, t1: 1, hosts_per_t0: 1}"
_FOUR_PATHS = "fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}"
_QUICK = "fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, rtt: 20ms}"
"""Half the round trip: less time for what needs some dozens of them."""


@dataclass(frozen=True, slots=True)
class StepRun:
    """One run of a step. `workload`: by the role of the program; `more`: other keys of the scenario. `judges`: all have
    to find nothing. `twice_every`: of the packets that come, each of such a number is given to the program twice.
    `asks_stats`: its own counts are asked for at the end."""

    word: str
    fabric: str
    workload: Callable[[Role], str]
    judges: tuple[Judge, ...]
    more: str = ""
    twice_every: int = 0
    asks_stats: bool = False
    until: str = ""
    """The phase that counts: what comes after it may end as it likes; empty: all do."""

    def scenario(self, role: Role) -> str:
        """As text."""
        parts = (f"name: {self.word}", self.fabric, self.workload(role), self.more, _REST)
        return "\n".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class ContractStep:
    """What a program is asked to be able to do. Without `runs` it is asked line by line
    (mrc_testbed.testbed.interop.lines)."""

    number: int
    word: str
    title: str
    runs: tuple[StepRun, ...]


def _flow(peer: str, amount: str) -> Callable[[Role], str]:
    """Between h0 and a peer, which way the role allows."""

    def workload(role: Role) -> str:
        there, back = f"h0->{peer}", f"{peer}->h0"
        pairs = [there] * role.sends + [back] * role.receives
        return f"workload:\n  - write: {{pairs: [{', '.join(pairs)}], {amount}}}"

    return workload


def _incast(into: str, out_of: Sequence[str], amount: str) -> Callable[[Role], str]:
    return lambda _: f"workload:\n  - incast: {{to: {into}, from: [{', '.join(out_of)}], {amount}}}"


def _only(wanted: Callable[[Role], bool], workload: Callable[[Role], str]) -> Callable[[Role], str]:
    """Nothing where the role does not allow it."""
    return lambda role: workload(role) if wanted(role) else ""


_SHORT_MESSAGES = "message: 16KiB"
_LOSSES = """faults:
  - {at: 0s, link-loss: T0-T1 links, loss: 3%, for: 15s, name: lossy}"""
_SILENCE = """endpoint: {linear_tries: 1, exponential_tries: 1}
faults:
  - {at: 200ms, link-loss: "PEER:*", loss: 100%, for: 15s, name: silence}"""
_DENIAL = """faults:
  - {at: 200ms, deny: [p0-t1-0], hosts: [h0], for: 300ms, name: denied}"""
_DEAD_PATH = """faults:
  - {at: 200ms, link-down: "p0-t0-0:p0-t1-0", for: 500ms, name: dead}"""
_OWN_PORT = """faults:
  - {at: 200ms, link-down: "h0:p1-t0-0", for: 300ms, name: port}"""
_PEERS_PORT = """faults:
  - {at: 200ms, link-down: "h2:p1-t0-1", for: 300ms, name: port}"""


_SLOW_LINK = """faults:
  - {at: 0s, link-rate: "p0-t0-0:p0-t1-0", rate: 3mbit, for: 15s, name: slow}"""
_LONG = _flow("h2", "for: 1600ms, " + _SHORT_MESSAGES)
_LONG_OUT = _only(lambda role: role.sends, lambda _: _LONG(Role.SENDER))


def _both(role: Role) -> bool:
    return role is Role.BOTH


STEPS = (
    ContractStep(1, "lines", "starts, answers each line, is quiet, stops, and ends with its input", ()),
    ContractStep(
        2,
        "connect",
        "opens and connects QPs, probes each EV and answers probes",
        (
            StepRun(
                "connect",
                _FOUR_PATHS,
                _flow("h2", f"bytes: 16KiB, {_SHORT_MESSAGES}"),
                (judges.paths_probed, judges.probes_answered),
                until="warm up",
            ),
        ),
    ),
    ContractStep(
        3,
        "stream",
        "carries a stream of messages on one path",
        (
            StepRun(
                "stream",
                _ONE_PATH,
                _flow("h1", f"bytes: 256KiB, {_SHORT_MESSAGES}"),
                (*_WHOLE, judges.sent_once, judges.whole_packets),
            ),
        ),
    ),
    ContractStep(
        4,
        "spray",
        "sprays packets over all paths, and tells by SACK what came",
        (
            StepRun(
                "spray",
                _FOUR_PATHS,
                _flow("h2", f"bytes: 1MiB, {_SHORT_MESSAGES}"),
                (*_WHOLE, judges.sprayed, judges.acknowledged_often, judges.sent_once),
            ),
        ),
    ),
    ContractStep(
        5,
        "loss",
        "sends again what is lost, takes what comes twice once, and gives up a peer that is silent",
        (
            StepRun(
                "loss",
                _FOUR_PATHS,
                _flow("h2", f"bytes: 512KiB, {_SHORT_MESSAGES}"),
                (*_WHOLE, judges.tries_bounded),
                more=_LOSSES,
                twice_every=5,
            ),
            StepRun(
                "silence",
                _FOUR_PATHS,
                _only(lambda role: role.sends, _flow("h2", f"bytes: 8MiB, {_SHORT_MESSAGES}")),
                (*_ALWAYS, judges.gave_up),
                more=_SILENCE.replace("PEER", "h2"),
            ),
        ),
    ),
    ContractStep(
        6,
        "trims",
        "asks for trimmed packets and sends them again, and yields to others where a queue grows",
        (
            StepRun(
                "incast-sender",
                _FOUR_PATHS,
                _only(lambda role: role.sends, _incast("h2", ("h0", "h1", "h3"), f"bytes: 1MiB, {_SHORT_MESSAGES}")),
                (*_WHOLE, judges.trims_resent, judges.takes_its_share),
            ),
            StepRun(
                "incast-receiver",
                _FOUR_PATHS,
                _only(lambda role: role.receives, _incast("h0", ("h1", "h2", "h3"), f"bytes: 1MiB, {_SHORT_MESSAGES}")),
                (*_WHOLE, judges.trims_told),
            ),
            StepRun(
                "marks",
                _FOUR_PATHS,
                _only(lambda role: role.receives, _flow("h2", f"bytes: 2MiB, {_SHORT_MESSAGES}")),
                (*_WHOLE, judges.marks_told),
                more=_SLOW_LINK,
            ),
        ),
    ),
    ContractStep(
        7,
        "paths",
        "leaves denied and dead EVs and ports, tells of its own ports, and comes back",
        (
            StepRun("denied", _QUICK, _LONG_OUT, (*_WHOLE, judges.denied_left), more=_DENIAL),
            StepRun("dead-path", _QUICK, _LONG_OUT, (*_WHOLE, judges.dead_path_left), more=_DEAD_PATH),
            StepRun("own-port", _QUICK, _LONG, (*_WHOLE, judges.port_told), more=_OWN_PORT),
            StepRun("peers-port", _QUICK, _LONG, (*_WHOLE, judges.peers_port_heeded), more=_PEERS_PORT),
        ),
    ),
    ContractStep(
        8,
        "collectives",
        "takes part in an allreduce of four hosts, and counts its packets as they are",
        (
            StepRun(
                "collectives",
                _FOUR_PATHS,
                _only(
                    _both,
                    lambda _: "workload:\n  - train: {hosts: all, steps: 2, compute: 20ms, allreduce: 128KiB}",
                ),
                (*_WHOLE, judges.counted_right),
                asks_stats=True,
            ),
        ),
    ),
)
