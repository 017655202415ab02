"""One pytest session in which mutants take their turns, each in a child with the tests that reach it."""

from __future__ import annotations

import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mutants.child import Child, Ended, Timed, Unplaced, side_by_side, start, tests_of
from tests.mutants.exchange import ROOT, Functions
from tests.mutants.operators import Place
from tests.mutants.reach import Reaches, distance, hash_of, hash_of_lines, record
from tests.mutants.results import ORACLES, UNPLACED, Result, Results

MOST_S = 8.0
"""CPU time of the tests that a mutant meets, at most, oracles and others each: the slowest are left out."""
SLOW_S = 0.2
"""Tests from here on wait for all others, and those of a file stay together: they share what took so long."""
FIRST_S = 10.0
"""Time that a test is waited for while nothing is known of it."""
BATCH = 40
"""Tests whose lines one child records."""


class Order(NamedTuple):
    """What a campaign is to do."""

    places: Sequence[Place]
    """In this order, while time is left."""
    rooms: tuple[str, ...]
    folder: Path
    """What is kept between campaigns."""
    children: int
    until: float
    """On the monotonic clock."""
    tell: Callable[[str], None]


class Campaign:
    """A plugin of pytest: in place of running the tests it runs mutants through them."""

    def __init__(self, order: Order) -> None:
        """Reads what is kept."""
        self._order = order
        self._reaches = Reaches.below(order.folder)
        self.results = Results.below(order.folder)
        self._scratch = order.folder / "scratch"
        self._started = 0
        self._kills: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Record what is not known of the tests, then try the mutants."""
        self._functions = Functions()
        self._record(self._reaches.lacking(session.items))
        self._by_line: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            if reach := self._reaches.of.get(item.nodeid):
                for file, lines in reach.lines.items():
                    for line in lines:
                        self._by_line[file, line].append(item)
        for (place, tests, scratch), ended in side_by_side(self._order.children, self._starts()):
            shutil.rmtree(scratch, ignore_errors=True)
            self._take(place, tests, ended)
        return True

    def _record(self, items: list[pytest.Item]) -> None:
        """Batches of tests in a child each. Of a test that ends its child nothing is known, and the others go on."""
        if not items:
            return
        self._order.tell(f"{len(items)} tests are run once, for the lines that they reach")
        waiting = [items[place : place + BATCH] for place in range(0, len(items), BATCH)]

        def starts() -> Iterator[tuple[tuple[list[pytest.Item], Path], Callable[[], Child]]]:
            while waiting:
                batch, folder = waiting.pop(), self._new_scratch()
                work = record(batch, self._order.rooms, folder, self._functions.forget)
                yield (batch, folder), partial(start, work, folder, BATCH * FIRST_S)

        for (batch, folder), ended in side_by_side(self._order.children, starts()):
            if ended.number is not None:
                waiting.append(batch[ended.number + 1 :])
            for number, item in enumerate(batch[: ended.number]):
                self._note(item, folder / f"{number}.json")
            shutil.rmtree(folder)
            self._reaches.write()

    def _note(self, item: pytest.Item, told: Path) -> None:
        if told.exists():
            self._reaches.take(item, told)
        else:
            self._order.tell(f"red without any mutant, and left out: {item.nodeid}")

    def _new_scratch(self) -> Path:
        self._started += 1
        return self._scratch / f"{time.time_ns()}-{self._started}"

    def _starts(self) -> Iterator[tuple[tuple[Place, list[Timed], Path], Callable[[], Child]]]:
        for place in self._order.places:
            if time.monotonic() > self._order.until:
                return
            tests = self._tests_for(place)
            if self._is_known(place, tests):
                continue
            if not tests:
                self._keep(Result(place.mutant, "unreached", "", self._made_of(place, tests)))
                continue
            scratch = self._new_scratch()
            work = tests_of(tests, scratch, partial(self._exchange, place))
            yield (place, tests, scratch), partial(start, work, scratch, sum(test.limit_s for test in tests))

    def _exchange(self, place: Place) -> None:
        if not self._functions.exchange(place):
            raise Unplaced
        self._functions.forget()

    def _tests_for(self, place: Place) -> list[Timed]:
        """Oracles first; of each those first that have killed others of the same function, then those that are about
        the module by their name, then the fastest."""
        file = place.mutant.file
        found = dict.fromkeys(item for line in place.lines for item in self._by_line.get((file, line), ()))
        kills = self._kills[place.mutant[:2]]
        timed = [Timed(item, self._reaches.of[item.nodeid].cpu_s) for item in found]

        def turn(test: Timed) -> tuple[float, ...]:
            name = test.item.nodeid
            return -kills[name], distance(name, file), test.cpu_s if test.cpu_s < SLOW_S else SLOW_S

        oracles = [test for test in timed if test.item.nodeid.startswith(ORACLES)]
        others = [test for test in timed if not test.item.nodeid.startswith(ORACLES)]
        return [test for part in (oracles, others) for test in _affordable(sorted(part, key=turn))]

    def _is_known(self, place: Place, tests: list[Timed]) -> bool:
        return self.results.hold(place.mutant, _hash(place.mutant.file), self._made_of(place, tests), self._reaches.of)

    def _made_of(self, place: Place, tests: list[Timed]) -> str:
        names = sorted(f"{test.item.nodeid} {self._reaches.of[test.item.nodeid].made_of}" for test in tests)
        return hash_of_lines([_hash(place.mutant.file), *names])

    def _take(self, place: Place, tests: list[Timed], ended: Ended) -> None:
        mutant = place.mutant
        if ended.number is not None:
            name = tests[ended.number].item.nodeid
            self._kills[mutant[:2]][name] += 1
            self._keep(Result(mutant, ended.how, name, _hash(mutant.file)))
        else:
            how = UNPLACED if ended.how == UNPLACED else "survives"
            self._keep(Result(mutant, how, "", self._made_of(place, tests)))

    def _keep(self, result: Result) -> None:
        self.results.add(result)
        if result.how in ("survives", "unreached"):
            self._order.tell(str(result))


def _affordable(tests: list[Timed]) -> list[Timed]:
    """As many as fit into the time."""
    kept, spent = [], 0.0
    for test in tests:
        if spent + test.cpu_s <= MOST_S:
            kept.append(test)
            spent += test.cpu_s
    return kept


def _hash(file: str) -> str:
    return hash_of(ROOT / file)
