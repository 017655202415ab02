"""The campaign itself: what is killed, by which test, and what is told of those that no test kills."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOMS, judges_of
from tests.mutants.exchange import ROOT
from tests.mutants.operators import Mutant, mutated, places_in
from tests.mutants.reach import distance
from tests.mutants.reasons import FILE, read_reasons, without_code
from tests.mutants.results import Result, closing

SAMPLE = "tests/mutants/sample.py"
CAMPAIGN = f"""
import json, sys
from pathlib import Path
from tests.mutants.operators import places_in
from tests.mutants.run import Judges, Limits, try_all
judges = Judges(("tests/mutants",), ("tests/mutants/sample_tests.py",), Path(sys.argv[1]))
places = places_in(Path("{SAMPLE}").read_text(), "{SAMPLE}")
print(json.dumps(try_all(judges, places, Limits(2), lambda text: print(text, file=sys.stderr))))
"""


def campaign(kept: Path) -> tuple[list[Result], str]:
    """Over the sample, in a process that has loaded nothing of ours."""
    done = subprocess.run(
        [sys.executable, "-c", CAMPAIGN, str(kept)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout.splitlines()[-1])
    return [Result(Mutant(*mutant), *rest) for mutant, *rest in told], done.stderr


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Result], str, Path]:
    kept = tmp_path_factory.mktemp("kept")
    return *campaign(kept), kept


def fate(results: Sequence[Result], mutation: str) -> tuple[str, str]:
    found = next(result for result in results if result.mutant.mutation == mutation)
    return found.how, found.test.rpartition("::")[2]


@pytest.mark.parametrize(
    ("mutation", "how", "test"),
    [
        ("value <= LIMIT -> value < LIMIT", "red", "test_the_limit_itself_fits_and_no_more"),
        ("5 -> 6", "red", "test_the_limit_itself_fits_and_no_more"),
        ("rounds -= 1 -> rounds += 1", "timeout", "test_it_counts_down"),
        ("max(value, value) -> min(value, value)", "survives", ""),
        ("value + 1 -> value - 1", "unreached", ""),
    ],
)
def test_each_fate(first: tuple[list[Result], str, Path], mutation: str, how: str, test: str) -> None:
    assert fate(first[0], mutation) == (how, test)


def test_survivors_are_told_and_tests_that_are_red_by_themselves(first: tuple[list[Result], str, Path]) -> None:
    told = first[1].splitlines()
    assert f"survives: {SAMPLE}:same: max(value, value) -> min(value, value)" in told
    assert [line.rpartition("::")[2] for line in told if "red without any mutant" in line] == [
        "test_what_is_red_by_itself_kills_nothing"
    ]


AT_IMPORT = """
import pytest, sys
from tests.mutants.exchange import import_mutated, source_of
from tests.mutants.imports import OPTIONS
from tests.mutants.operators import places_in
file = "testbed/compare/tolerances.py"
import_mutated(next(one for one in places_in(source_of(file), file) if one.mutant.function == "OWN_SPREAD"))
sys.exit(pytest.main([*OPTIONS[:5], *OPTIONS[-1:], sys.argv[1]]))
"""


def test_a_module_of_ours_is_imported_mutated_whatever_pytest_makes_of_asserts(tmp_path: Path) -> None:
    test = tmp_path / "test_spread.py"
    test.write_text(
        "from mrc_testbed.testbed.compare.tolerances import OWN_SPREAD\ndef test_it():\n    assert OWN_SPREAD == 4\n"
    )
    done = subprocess.run([sys.executable, "-c", AT_IMPORT, str(test)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_what_is_known_is_not_tried_again(first: tuple[list[Result], str, Path]) -> None:
    results, _, kept = first
    before = (kept / "results.jsonl").read_text()
    assert sorted(campaign(kept)[0]) == sorted(results)
    assert (kept / "results.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("source", "mutations"),
    [
        ("def f(x: int | None) -> int | None:\n    return x", []),
        ("x = a | None", []),
        ("if a < b:\n    pass", ["a < b -> not a < b", "a < b -> a <= b"]),
        ("if a == b:\n    pass", ["a == b -> a != b"]),
        ("x = a and not b", ["a and (not b) -> a or not b", "a and (not b) -> a and b"]),
        ("x = 0.5 + 2", ["0.5 + 2 -> 0.5 - 2", "0.5 + 2 -> 1.0 + 2", "0.5 + 2 -> 0.5 + 3"]),
        ("x = min(a)", ["min(a) -> max(a)"]),
        ("a(1)", ["a(1) -> pass", "a(1) -> a(2)"]),
        ("x = [a for a in b if a]", ["[a for a in b if a] -> [a for a in b if not a]"]),
        ("x = f'{a:>{3}} {1}'", ["f'{a:>{3}} {1}' -> f'{a:>{3}} {2}'"]),
        ("x: int = field(default=3, repr=False)", ["field(default=3, repr=False) -> field(default=4, repr=False)"]),
        ("x = zip(a, b, strict=True)", []),
        ("x = 1, 1", ["(1, 1) -> (2, 1)", "(1, 1) -> (1, 2)"]),
    ],
)
def test_what_is_broken_and_what_decides_nothing(source: str, mutations: list[str]) -> None:
    assert sorted(place.mutant.mutation for place in places_in(source, "file")) == sorted(mutations)


def test_a_mutant_is_what_its_words_say() -> None:
    source = "def f(a):\n    return a + 1\n"
    namespace: dict[str, object] = {}
    exec(compile(mutated(source, 1), "file", "exec"), namespace)
    assert [place.mutant for place in places_in(source, "file")][1] == Mutant("file", "f", "a + 1 -> a + 2")
    assert namespace["f"](1) == 3  # type: ignore[operator]


def test_a_name_is_the_function_the_class_or_what_is_assigned() -> None:
    source = (
        "LIMIT = 1\nclass A:\n    part: int = 2\n    def f(self, a=3):\n        def inner():\n            return 4\n"
    )
    assert [place.mutant.function for place in places_in(source, "file")] == ["LIMIT", "A.part", "A.f", "A.f"]
    assert [place.within for place in places_in(source, "file")] == [False, False, False, True]


def test_each_reason_is_about_code_that_there_is() -> None:
    reasons = read_reasons(FILE.read_text(encoding="utf-8"))
    assert not without_code(reasons, (place.mutant for place in judges_of().places()))


def test_a_reason_that_says_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="says no reason"):
        read_reasons('["checks/a.py:f"]\n"a -> b" = " "\n')


def test_enough_are_killed_and_each_survivor_is_explained() -> None:
    mutants = [Mutant("testbed/checks/a.py", "f", str(number)) for number in range(20)]
    results = [Result(mutant, "red", "tests/unit/checks/test_a.py::test_a") for mutant in mutants[1:]]
    alive = Result(mutants[0], "survives")
    assert closing([alive, *results], {mutants[0]: "no test can tell"})[1]
    assert not closing([alive, *results], {})[1]
    assert not closing([alive, *results[1:]], {mutants[0]: "no test can tell"})[1]


def test_tests_that_are_about_a_module_come_first() -> None:
    tests = ["tests/unit/expect/test_a.py::x", "tests/unit/checks/test_b.py::x", "tests/unit/checks/test_flow_rates.py"]
    assert sorted(tests, key=lambda test: distance(test, "testbed/checks/flow.py")) == tests[::-1]


def test_the_rooms_are_those_of_the_law() -> None:
    assert {Path(place.mutant.file).parent.name for place in judges_of().places()} == set(ROOMS)
