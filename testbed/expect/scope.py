"""`of WHOM`: all, one host, one pair of hosts, what has a name (flows, a job of steps), or each host, flow or job by
itself. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mrc_testbed.testbed.expect.scanner import Scanner
from mrc_testbed.testbed.expect.spelling import did_you_mean
from mrc_testbed.testbed.expect.vocabulary import By, Metric, Windows
from mrc_testbed.topos.names import parse_host

EACH = "each"
_EXAMPLES = {
    By.HOST: "h3 or each host",
    By.PAIR: "h0->h4",
    By.FLOW: "h0->h4, the name of some flows, or each flow",
    By.JOB: "the name of a job, or each job",
}


class ScopeKind(Enum):
    """What the name of a scope means."""

    ALL = "all"
    HOST = "host"
    PAIR = "pair"
    GROUP = "flows or a job of a name"
    EACH_HOST = "each host"
    EACH_FLOW = "each flow"
    EACH_JOB = "each job"


EACH_NOUNS = {"host": ScopeKind.EACH_HOST, "flow": ScopeKind.EACH_FLOW, "job": ScopeKind.EACH_JOB}
"""What follows `each`."""
_KNOWN_BY = {
    ScopeKind.HOST: (By.HOST, "by host"),
    ScopeKind.EACH_HOST: (By.HOST, "by host"),
    ScopeKind.PAIR: (By.PAIR | By.FLOW, "by pair of hosts"),
    ScopeKind.GROUP: (By.PAIR | By.FLOW | By.JOB, "by flow or job"),
    ScopeKind.EACH_FLOW: (By.PAIR | By.FLOW, "by flow"),
    ScopeKind.EACH_JOB: (By.JOB, "by job"),
}
"""How a metric must be known for a scope, and that in words."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The members of a figure. `name`: the host, the pair (`h0->h4`), the flows or the job; `column`: its place in the
    text."""

    kind: ScopeKind = ScopeKind.ALL
    name: str = ""
    column: int = 0

    def __str__(self) -> str:
        if self.kind is ScopeKind.ALL:
            return ""
        return f"of {self.kind.value if self.each else self.name}"

    @property
    def each(self) -> bool:
        """Every member is evaluated by itself."""
        return self.kind in EACH_NOUNS.values()

    @property
    def ends(self) -> tuple[str, str]:
        """The two hosts of a pair: sender and receiver."""
        source, _, sink = self.name.partition("->")
        return source, sink


EVERYBODY = Scope()


def read_scope(scan: Scanner, metric: Metric) -> Scope:
    """The scope after `of`, if present. Raises ExpectError for a scope that the metric does not have."""
    of = scan.take(r"of\b")
    if of is None:
        return EVERYBODY
    if not metric.by:
        whole = "run" if metric.windows is Windows.RUN else "fabric"
        scan.fail(f"{metric.name} is only defined for the whole {whole}; leave `of` out", of.start())
    scope = _each(scan) or _named(scan, metric)
    known, words = _KNOWN_BY[scope.kind]
    if not metric.by & known:
        wanted = " or ".join(_EXAMPLES[by] for by in metric.by)
        scan.fail(f"{metric.name} is not known {words}; write of {wanted}", scope.column)
    return scope


def _each(scan: Scanner) -> Scope | None:
    if scan.take(rf"{EACH}(?![\w-])") is None:
        return None
    column = scan.column
    noun = scan.take(r"[A-Za-z]+")
    kind = EACH_NOUNS.get(noun[0]) if noun else None
    if kind is None:
        hint = did_you_mean(noun[0] if noun else "", EACH_NOUNS)
        scan.fail(f"expected `host`, `flow` or `job` after `each`{hint}", column)
    return Scope(kind, "", column)


def _named(scan: Scanner, metric: Metric) -> Scope:
    name = scan.take(r"([A-Za-z0-9_][A-Za-z0-9_-]*?)(\s*->\s*([A-Za-z0-9_]+)|(?![\w-]))")
    if name is None:
        wanted = ", ".join(_EXAMPLES[by] for by in metric.by)
        scan.fail(f"expected {wanted} after `of`")
    if name[3]:
        return Scope(ScopeKind.PAIR, f"{name[1]}->{name[3]}", name.start())
    kind = ScopeKind.GROUP if parse_host(name[1]) is None else ScopeKind.HOST
    return Scope(kind, name[1], name.start())
