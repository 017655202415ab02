"""The tests and the plan of a benchmark as lines for people, 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from mrc_testbed.testbed.bench.catalogue import BenchTest, TestStatus
from mrc_testbed.testbed.bench.cells import BenchRequest, rough_time
from mrc_testbed.topos.units import plural

WIDTH = 80
_INDENT = 16


def shown_tests(tests: Sequence[BenchTest]) -> Iterator[str]:
    """A line a test, and below it why it is adapted or not run."""
    for test in tests:
        yield f"{test.ref:<5} {test.status.value:<9} {test.title}"
        if test.status is not TestStatus.RUN:
            yield from (" " * _INDENT + line for line in wrap(test.why, WIDTH - _INDENT))


def plan_lines(
    request: BenchRequest, runs: Mapping[str, int], taking_s: Mapping[str, float], left_out: Sequence[str]
) -> Iterator[str]:
    """A line a test with its runs and their time, the sum, and what is left out."""
    titles = {test.ref: test.title for test in request.tests}
    for ref, count in runs.items():
        yield f"{ref:<5} {plural(count, 'run'):>9}  {rough_time(taking_s[ref]):>8}  {titles[ref]}"
    total = rough_time(sum(taking_s.values()))
    yield f"{'all':<5} {plural(sum(runs.values()), 'run'):>9}  {total:>8}  {request.size.value}, {request.world.value}"
    if left_out:
        yield f"the budget leaves no time for {', '.join(left_out)}"
    without = [test.ref for test in request.tests if test.ref not in runs]
    if without:
        yield from wrap(f"not run: {', '.join(without)}; `mrc-testbed bench list` says why", WIDTH)
