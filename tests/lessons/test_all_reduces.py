"""Lesson 10: what is no all-reduce fails at every rank that can know it, and each way to make one passes. Ranks are
threads, and what one sends is in a queue of the other: no fabric is needed to see whether a sum is right."""

from __future__ import annotations

import runpy
import sys
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from mrc_testbed.testbed.lessons.shelf import LESSONS

FOLDER = LESSONS / "10-your-own-all-reduce"
SIZE, COUNT = 8, 256
LONGEST_S = 5
AllReduce = Callable[[Any, int, int, Any], Any]


class Queues:
    """The links of one rank."""

    def __init__(self, rank: int, queues: dict[tuple[int, int], SimpleQueue[float]]) -> None:
        self._rank, self._queues = rank, queues

    def send(self, rank: int, numbers: Any) -> None:
        for number in numbers:
            self._queues[self._rank, rank].put(number)

    def receive(self, rank: int, count: int) -> Any:
        return array("d", [self._queues[rank, self._rank].get(timeout=LONGEST_S) for _ in range(count)])


def job_of(rank: int, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The job's own functions, as the process of this rank has them."""
    hosts = ",".join(f"h{host}" for host in range(SIZE))
    for name, value in {"RANK": rank, "WORLD_SIZE": SIZE, "MRC_HOSTS": hosts, "STEPS": 1, "COUNT": COUNT}.items():
        monkeypatch.setenv(name, str(value))
    return SimpleNamespace(**runpy.run_path(str(FOLDER / "job.py"), run_name="job"))


def believed(all_reduce: AllReduce, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """By rank, whether the job takes it for the sum."""
    jobs = [job_of(rank, monkeypatch) for rank in range(SIZE)]
    queues = {(some, other): SimpleQueue[float]() for some in range(SIZE) for other in range(SIZE)}

    def step(rank: int) -> bool:
        links, mine = Queues(rank, queues), jobs[rank].some_numbers()
        return bool(jobs[rank].is_sum(all_reduce(mine[:], rank, SIZE, links), mine, links))

    with ThreadPoolExecutor(SIZE) as ranks:
        return list(ranks.map(step, range(SIZE)))


def written_in(name: str, monkeypatch: pytest.MonkeyPatch) -> AllReduce:
    monkeypatch.setitem(sys.modules, "job", job_of(0, monkeypatch))
    found: AllReduce = runpy.run_path(str(FOLDER / name))["all_reduce"]
    return found


def from_all(numbers: Any, rank: int, size: int, links: Any) -> list[Any]:
    for other in range(size):
        if other != rank:
            links.send(other, numbers)
    return [numbers if other == rank else links.receive(other, len(numbers)) for other in range(size)]


def sums(parts: list[Any]) -> Any:
    return array("d", map(sum, zip(*parts, strict=True)))


def halving(numbers: Any, rank: int, size: int, links: Any) -> Any:
    """Recursive doubling: in turn k the partner's number differs in bit k."""
    turn = 1
    while turn < size:
        links.send(rank ^ turn, numbers)
        numbers = sums([numbers, links.receive(rank ^ turn, len(numbers))])
        turn *= 2
    return numbers


HONEST: dict[str, AllReduce] = {
    "everybody to everybody": lambda *call: sums(from_all(*call)),
    "recursive doubling": halving,
    "a list in place of an array": lambda *call: list(sums(from_all(*call))),
}


def one_changed(numbers: Any) -> Any:
    numbers[17] += 1
    return numbers


WRONG: dict[str, AllReduce] = {
    "nothing is sent": lambda numbers, *_: numbers,
    "as if numbers were a known pattern of the rank": lambda numbers, rank, size, links: array(
        "d", (number / (rank + 1) * size * (size + 1) / 2 for number in numbers)
    ),
    "my own, times the ranks": lambda numbers, rank, size, links: array("d", (size * number for number in numbers)),
    "the last rank is left out": lambda *call: sums(from_all(*call)[:-1]),
    "one number is off by one": lambda *call: one_changed(sums(from_all(*call))),
    "two numbers have changed places": lambda *call: sums(from_all(*call))[::-1],
    "the greatest in place of the sum": lambda *call: array("d", map(max, zip(*from_all(*call), strict=True))),
    "half of the numbers": lambda *call: sums(from_all(*call))[: COUNT // 2],
    "not a number": lambda numbers, *_: array("d", [float("nan")] * len(numbers)),
}


@pytest.mark.parametrize("name", ["star.py", "solution-ring.py"])
def test_the_ways_that_the_lesson_has_are_believed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert believed(written_in(name, monkeypatch), monkeypatch) == [True] * SIZE


@pytest.mark.parametrize("name", HONEST)
def test_another_way_is_believed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert believed(HONEST[name], monkeypatch) == [True] * SIZE


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_all_reduce_is_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert believed(WRONG[name], monkeypatch) == [False] * SIZE
