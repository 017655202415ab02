"""The packs of figures: which scenarios one has, how long it takes, and the files of its table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from mrc_testbed.testbed.app.batch import load_cases
from mrc_testbed.testbed.errors import RunError, ScenarioError, UsageError
from mrc_testbed.testbed.report.outcome import Case
from mrc_testbed.testbed.report.pack import pack_as_dict, pack_markdown
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.rundir.results import PAPER_FILE, new_folder
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.load.shipped import shipped
from mrc_testbed.testbed.scenario.model.matrix import VARIANT
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.model.wall_time import wall_time
from mrc_testbed.testbed.whole_files import write_whole


class Pack(StrEnum):
    """Shipped packs, by the folder of their scenarios: each repeats figures of one paper."""

    PAPER = "paper"
    """Of MRC's."""
    MULTIPLANE = "multiplane"
    """Of arXiv 2605.21187: adaptive routing, lossless, and planes balanced by the sender."""


GROUP = "paper"
"""In the name of the folder of a table."""
LONGEST_S = 20 * 60
"""On two cores; a pack that takes longer is not run as often as it should be."""
OVERHEAD_S = 5
"""Of a run, besides its workload: fabric, warm-up, settling and the verdict (measured: 3 to 5 s)."""


def pack_named(word: str) -> Pack:
    """Raises UsageError if there is none of that name."""
    try:
        return Pack(word)
    except ValueError:
        raise UsageError(f"--pack {word}: there is no such pack; there are {', '.join(Pack)}") from None


LeftOut = Callable[[Path, ScenarioError], object]
"""Told of a shipped scenario that is not run, and why."""


def _refuse(_: Path, why: ScenarioError) -> None:
    raise why


def load_pack(
    files: Sequence[Path],
    only: str,
    seed: int | None,
    overrides: Sequence[str] = (),
    left_out: LeftOut = _refuse,
    pack: Pack = Pack.PAPER,
) -> list[Case]:
    """The files, or where there are none the shipped scenarios of `pack` that repeat a figure; of them those of `only`,
    figures separated by commas. `overrides`: as of `--set`; shipped scenarios that they do not fit are `left_out`, such
    as one whose T would be too short at a scale.

    Raises ScenarioError, of shipped scenarios when none is left; UsageError for a file that repeats no figure, and for
    a figure that is not there.
    """
    if files:
        cases = load_cases(files, overrides, seed)
        missing = next((case for case in cases if case.scenario.paper is None), None)
        if missing:
            raise UsageError(f"{missing.file}: repeats no figure: it has no key `paper` (docs/scenario.md)")
    else:
        ours = [one.path for one in shipped() if one.group == pack]
        cases = [case for case in _fitting(ours, overrides, seed, left_out) if case.scenario.paper]
    crossed = next((case for case in cases if any(one.key != VARIANT for one in case.settings)), None)
    if crossed:
        raise UsageError(f"{crossed.file}: has a matrix, and a figure is repeated once; run it by `mrc-testbed run`")
    return _only(cases, [word.strip() for word in only.split(",") if word.strip()])


def _fitting(files: Sequence[Path], overrides: Sequence[str], seed: int | None, left_out: LeftOut) -> Iterator[Case]:
    unfit: list[tuple[Path, ScenarioError]] = []
    for file in files:
        try:
            yield from load_cases([file], overrides, seed)
        except ScenarioError as error:
            unfit.append((file, error))
    if unfit and len(unfit) == len(files):
        raise unfit[0][1]
    for file, why in unfit:
        left_out(file, why)


def expected_s(cases: Iterable[Case]) -> float:
    """How long they take, when nothing is run twice: on the kernel the time of the scenario, else at most that of a
    core."""
    return sum(_takes_s(case.scenario) for case in cases)


def _takes_s(scenario: Scenario) -> float:
    if scenario.world is WorldKind.VIRTUAL:
        return wall_time(scenario).most_s
    return scenario.expected_ns / 1e9 + OVERHEAD_S


def rough(seconds: float) -> str:
    """`40 s`, `7 min`."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class PackFolder:
    """`out/<UTC>-paper`, with the table as `paper.md` and `paper.json`, whole at any time; the runs lie beside it.

    Raises UsageError when it cannot be made; `on_error` gets later failures, and runs go on.
    """

    def __init__(self, out: Path, on_error: Callable[[Exception], object]) -> None:
        self.path = new_folder(out, GROUP)
        self._on_error = on_error
        self._when = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"

    def write(self, cases: Sequence[Case]) -> None:
        """Bring both files up to date."""
        texts = {
            "paper.md": pack_markdown(cases, self._when),
            PAPER_FILE: json.dumps(pack_as_dict(cases), indent=1) + "\n",
        }
        for name, text in texts.items():
            try:
                write_whole(self.path / name, text)
            except OSError as error:
                self._on_error(RunError(f"cannot write {self.path / name}: {error.strerror}"))
        give((self.path, *self.path.iterdir()))


def _only(cases: list[Case], wanted: Sequence[str]) -> list[Case]:
    known = list(dict.fromkeys(figure for case in cases for figure in figures_of(case.scenario)))
    unknown = next((figure for figure in wanted if figure not in known), None)
    if unknown is not None:
        raise UsageError(f"--only {unknown}: no scenario of the pack repeats that figure; there are {', '.join(known)}")
    return [case for case in cases if not wanted or set(wanted) & set(figures_of(case.scenario))]


def figures_of(scenario: Scenario) -> list[str]:
    """The figures that a scenario repeats, one by one: of `12, 13` and of `12/13` both."""
    named = scenario.paper.figure if scenario.paper else ""
    return [figure.strip() for figure in re.split("[,/]", named) if figure.strip()]
