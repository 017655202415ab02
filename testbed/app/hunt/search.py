"""Seed after seed, until one fails."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mrc_testbed.testbed.app.hunt.trial import BROKEN_OFF, Candidate, Outcome
from mrc_testbed.testbed.app.hunt.workers import HuntWorkers

_TOLD_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Failure:
    """The first seed under which a check fails, and what was seen."""

    check: str
    seed: int
    observed: str


@dataclass(slots=True)
class Tally:
    """How far a search is. `first`: by check, the lowest seed so far under which it is the first that fails. `problem`:
    why the last of the `unjudged` tries could not be judged. `seconds`: of all tries together."""

    of: int
    done: int = 0
    failed: int = 0
    unjudged: int = 0
    problem: str = ""
    seconds: float = 0.0
    first: dict[str, Failure] = field(default_factory=dict)
    began_s: float = field(default_factory=time.monotonic)

    def add(self, seed: int, outcome: Outcome) -> None:
        """One more try."""
        self.done += 1
        self.seconds += outcome.seconds
        if outcome.problem:
            self.unjudged += 1
            self.problem = outcome.problem
        if outcome.failures:
            self.failed += 1
            check, observed = next(iter(outcome.failures.items()))
            if check not in self.first or seed < self.first[check].seed:
                self.first[check] = Failure(check, seed, observed)

    def doubts(self, outcome: Outcome) -> bool:
        """Whether a failure must be seen a second time: the first of its kind, and each death."""
        check = next(iter(outcome.failures), None)
        return check is not None and (check not in self.first or check == BROKEN_OFF)

    @property
    def findings(self) -> list[Failure]:
        """By seed."""
        return sorted(self.first.values(), key=lambda one: one.seed)

    @property
    def per_minute(self) -> float:
        """Tries."""
        return 60 * self.done / max(time.monotonic() - self.began_s, 1e-9)

    @property
    def left_s(self) -> float:
        """If all are tried, as fast as so far."""
        return 60 * (self.of - self.done) / self.per_minute if self.done else 0.0


def search(workers: HuntWorkers, first: int, keep_going: bool, tally: Tally, told: Callable[[Tally], None]) -> None:
    """Try the seeds from `first` on, and put down in `tally` what they come to; `told` hears of it now and then.
    Without `keep_going` none begins after a failure, and of several the lowest seed counts: so any number of processes
    find the same. A failure counts when it comes again with the same seed.
    """
    left = deque(range(first, first + tally.of))
    suspects: dict[int, Outcome] = {}
    again: deque[int] = deque()
    told_s = 0.0

    def jobs() -> Iterator[Candidate]:
        while again or (left and (keep_going or not (suspects or tally.failed))):
            yield Candidate((again or left).popleft())

    while again or (left and (keep_going or not tally.failed)):
        for job, outcome in workers.outcomes(jobs()):
            seed = job.seed or 0
            if seed not in suspects and tally.doubts(outcome):
                suspects[seed] = outcome
                again.append(seed)
            else:
                tally.add(seed, suspects.pop(seed).repeated(outcome) if seed in suspects else outcome)
            if (now_s := time.monotonic()) >= told_s:
                told_s = now_s + _TOLD_EVERY_S
                told(tally)


def certain(workers: HuntWorkers, job: Candidate) -> Outcome:
    """Of one try, and of a second one where the first failed."""
    outcome = workers.outcome(job)
    return outcome.repeated(workers.outcome(job)) if outcome.failures else outcome
