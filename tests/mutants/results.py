"""What became of each mutant: kept in a file, a line each, so that a campaign goes on where the last one ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutants.operators import Mutant

ORACLES = ("tests/oracles/", "tests/windows/")
"""Tests that compute by themselves, from the raw files of runs, what the judges should have said."""


UNPLACED = "unplaced"
"""No function could take the mutated code: it has other variables from around it."""


class Result(NamedTuple):
    """One mutant's fate."""

    mutant: Mutant
    how: str
    """`red`, `timeout`, `died` for one that a test killed; `survives`, `unreached` for one that none did; UNPLACED."""
    test: str = ""
    """The test that killed it."""
    made_of: str = ""
    """Hash of its module, and of its tests if it survives: the result holds for as long as that is the same."""

    @property
    def killed(self) -> bool:
        """Whether a test has noticed it."""
        return self.how in ("red", "timeout", "died")

    @property
    def by_oracle(self) -> bool:
        """Whether an independent computation has noticed it, and not only a test of the room itself."""
        return self.killed and self.test.startswith(ORACLES)

    def __str__(self) -> str:
        return f"{self.how}: {self.mutant}"


class Results:
    """All that are known, by mutant."""

    @classmethod
    def below(cls, kept: Path) -> Results:
        """Those that a folder keeps."""
        return cls(kept / "results.jsonl")

    def __init__(self, file: Path) -> None:
        """Read them; later lines replace earlier ones."""
        self._file = file
        lines = file.read_text().splitlines() if file.exists() else []
        told = (json.loads(line) for line in lines)
        self.of = {Mutant(*mutant): Result(Mutant(*mutant), *rest) for mutant, *rest in told}

    def hold(self, mutant: Mutant, module: str, tests_too: str, tests: Container[str]) -> bool:
        """Whether what is known of a mutant still is so. `module`: hash of its file; `tests_too`: of its tests as well;
        `tests`: those that there are."""
        known = self.of.get(mutant)
        if known is None or known.how == UNPLACED:
            return False
        return known.made_of == module and known.test in tests if known.killed else known.made_of == tests_too

    def add(self, result: Result) -> None:
        """Keep it at once."""
        self.of[result.mutant] = result
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps(result) + "\n")


ENOUGH = 0.95
"""Part of all mutants that must be killed, explained survivors or not."""


def closing(results: Sequence[Result], reasons: Mapping[Mutant, str]) -> tuple[list[str], bool]:
    """A line for each room: how many there were, who killed them, who survives with a reason and without. True if
    enough were killed, and each survivor has a reason."""
    counts: dict[str, Counter[str]] = {}
    for result in results:
        count = counts.setdefault(Path(result.mutant.file).parent.name, Counter())
        count["mutants"] += 1
        count[_column(result, result.mutant in reasons)] += 1
    total = sum(counts.values(), Counter[str]())
    lines = [f"{'':10}{''.join(f'{column:>13}' for column in (*_COLUMNS, 'killed %'))}"]
    lines += [_row(room, count) for room, count in {**counts, "all": total}.items()]
    return lines, _share_killed(total) >= ENOUGH and not total["unexplained"]


_COLUMNS = ("mutants", "by oracles", "by tests", "explained", "unexplained")


def _column(result: Result, explained: bool) -> str:
    if not result.killed:
        return "explained" if explained else "unexplained"
    return "by oracles" if result.by_oracle else "by tests"


def _row(room: str, count: Counter[str]) -> str:
    return f"{room:10}{''.join(f'{count[column]:13}' for column in _COLUMNS)}{100 * _share_killed(count):13.1f}"


def _share_killed(count: Counter[str]) -> float:
    alive = count["explained"] + count["unexplained"]
    return 1 - alive / count["mutants"] if count["mutants"] else 1.0
