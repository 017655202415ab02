"""What a scenario is made of before it has a text: the few numbers that all other keys depend on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from random import Random
from typing import TypeVar

from mrc_testbed.testbed.scenario.model.families import FLAT
from mrc_testbed.testbed.scenario.text.fields import PAYLOADS
from mrc_testbed.testbed.transports.base import FabricLayout, Transport
from mrc_testbed.testbed.transports.registry import TRANSPORTS
from mrc_testbed.topos.names import host_name
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.shape import MIN_RATE_BPS, SWIFT_BELOW_NS, Shape
from tests.generated.wiring import drawn_family

T = TypeVar("T")
MS = 1_000_000
PACKETS = 500
"""About the number of data packets that a run sends: a tenth of a second of computing."""
LONGEST_NS = 2_000 * MS
"""A job without faults takes about as long at most: what is sampled grows with it."""
_RATES = (1_000_000, 5_000_000, 12_500_000, 25_000_000, 100_000_000)
_RTTS_NS = (0, 500_000, 2 * MS, 10 * MS, 10 * MS, 40 * MS)
_HEADERS = 142


class Sketch:
    """Of one seed. `dice` is the only chance. `taken`: hosts that have a job of steps, `pairs`: that have a flow.
    `flat`: the keys of the family are in `fabric` itself. `files`: what lies beside the scenario, by name; `stretch`:
    by which times of the next one are multiplied; `trace_pairs`: of its flows; `senders`: of the
    next random flows, and `mean_bytes` and `load`."""

    def __init__(self, seed: int, kernel: bool) -> None:
        self.seed = seed
        self.kernel = kernel
        self.dice = Random(seed)
        self.transport = self.one(["mrc", "mrc", "mrc-hashed", "roce", *(["tcp"] if kernel else [])])
        self.has_flows = self.often(0.4)
        self.payload = 4096 if kernel or self.often(0.6) else self.one(PAYLOADS)
        self.rtt_ns = self.one(_RTTS_NS)
        if kernel and 0 < self.rtt_ns < SWIFT_BELOW_NS:
            self.rtt_ns = SWIFT_BELOW_NS
        self.planes = self.one([1, 2, 2, 3, 4])
        self.family = drawn_family(self.dice)
        self.flat = isinstance(self.family, FLAT) and not self.often(0.1)
        self.rate_bps = self._rate_bps()
        self.estimate_ns = 0
        self.taken: set[str] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.names: list[str] = []
        self.axes: dict[str, int] = {}
        self.over: str | None = None
        self.ranks = 0
        self.rounds = 1
        self.faults: list[str] = []
        self.shown = 0
        self.adaptive = False
        self.files: dict[str, str] = {}
        self.stretch = 1.0
        self.trace_pairs: list[tuple[str, str]] = []
        self.senders: list[str] = []
        self.mean_bytes = 0.0
        self.load = 100

    def _rate_bps(self) -> int:
        """Flows send for a time, so ports must be slow enough."""
        rate = self.one(_RATES)
        if self.has_flows:
            bits = 8 * PACKETS * (self.payload + _HEADERS)
            rate = min(rate, bits * 10**9 // (self.planes * len(self.hosts) * self.least_for_ns))
        slowest = min((cable.share for cable in self.family.cables()), default=1)
        return max(rate // 1000 * 1000, round(MIN_RATE_BPS / slowest))

    @property
    def least_for_ns(self) -> int:
        """The shortest time that a flow may send: twice what its rate needs to settle."""
        return 2 * max(20 * self.rtt_ns, 200 * MS)

    @property
    def hosts(self) -> list[str]:
        """All names."""
        return [host_name(number) for number in range(self.family.hosts)]

    @property
    def free_hosts(self) -> list[str]:
        """Those without a job of steps."""
        return [name for name in self.hosts if name not in self.taken]

    @cached_property
    def plan(self) -> Plan:
        """As written."""
        return build_plan(Shape(self.planes, self.family, self.rate_bps, self.rtt_ns))

    @property
    def spoken(self) -> Transport:
        """What the hosts speak."""
        return TRANSPORTS[self.transport]

    @property
    def folds(self) -> bool:
        """Of a transport that usually has all planes on one."""
        return self.spoken.layout is FabricLayout.FOLDED

    def job_bytes(self) -> int:
        """Data of a rank in a collective of one step, so that the job keeps to its packets and its time."""
        wire_bytes = self.rate_bps * self.planes * len(self.hosts) * LONGEST_NS // (8 * 10**9)
        most = min(PACKETS * self.payload, wire_bytes) // (2 * max(self.ranks, 2) * self.rounds)
        return max(64, int(most * self.dice.uniform(0.05, 1)))

    def often(self, chance: float) -> bool:
        """True with this chance."""
        return self.dice.random() < chance

    def one(self, items: Sequence[T]) -> T:
        """One of them."""
        return self.dice.choice(items)

    def some(self, items: Sequence[T], least: int = 1) -> list[T]:
        """At least `least`, none twice."""
        return self.dice.sample(items, self.dice.randint(min(least, len(items)), len(items)))

    def time(self, least_ns: float, most_ns: float) -> str:
        """A duration as written."""
        return f"{max(1, int(self.dice.uniform(least_ns, most_ns)) // 1000)}us"

    def share(self) -> str:
        """A percentage: mostly small, at times all."""
        return self.one(["0.1%", "1%", "3%", "10%", "50%", "100%"])

    def file(self, ending: str, lines: Sequence[str]) -> str:
        """Put one beside the scenario; its name."""
        name = f"generated-{self.seed}-{len(self.files)}.{ending}"
        self.files[name] = "".join(f"{line}\n" for line in lines)
        return name

    def name(self, stem: str) -> str:
        """A name that nothing has."""
        self.names.append(f"{stem}-{len(self.names)}")
        return self.names[-1]
