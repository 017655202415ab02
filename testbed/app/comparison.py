"""The folder of a comparison: `<UTC>-compare`, beside those of its runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.compare.comparison import Comparison, compare
from mrc_testbed.testbed.compare.document import comparison_document
from mrc_testbed.testbed.compare.runs import ComparedRun, load_runs
from mrc_testbed.testbed.compare.sequence import SequenceDiff, repeats, sequence_diff
from mrc_testbed.testbed.errors import NotRepeatedError, RunError, UsageError
from mrc_testbed.testbed.pages.comparison.page import comparison_page
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.rundir.results import COMPARE_FILE, new_folder
from mrc_testbed.testbed.scenario import Setting
from mrc_testbed.testbed.whole_files import write_whole

NAME = "compare"
PAGE_FILE = "compare.html"
GIVEN, AGAINST = "given", "against"
"""The two sides of `--against`."""


@dataclass(frozen=True)
class Compared:
    """What came of it. `sequences`: of two runs of one scenario and one seed."""

    comparison: Comparison
    sequences: SequenceDiff | None
    folder: Path

    @property
    def error(self) -> NotRepeatedError | None:
        """Of runs that had to be copies of each other and are not."""
        return NotRepeatedError("\n".join(self.comparison.unlike)) if self.comparison.unlike else None


def compare_folders(
    folders: Sequence[Path],
    out: Path,
    with_inconclusive: bool = False,
    against: Sequence[Path] = (),
    cells: Sequence[Sequence[Setting]] = (),
) -> Compared:
    """Compare the runs in these folders, and write compare.json and compare.html into a new folder in `out`.

    `against`: runs that are groups of their own and the base, although they may have been asked for the same, as those
    of another version. `cells`: of a matrix, one a folder, by which groups are named. Raises UsageError for fewer than
    two runs and for folders of none; RunError when the files cannot be written.
    """
    if len(folders) + len(against) < 2:
        raise UsageError("a comparison needs at least two runs")
    runs = load_runs([*against, *folders])
    if against:
        runs = [run.on_side(AGAINST if number < len(against) else GIVEN) for number, run in enumerate(runs)]
    if cells:
        runs = [run.in_cell(cell) for run, cell in zip(runs, cells, strict=True)]
    sequences = sequence_diff(runs[0], runs[1]) if repeats(runs) else None
    again = " ".join(["mrc-testbed compare", *map(str, folders), *(f"--against {path}" for path in against)])
    return write_comparison(runs, sequences, out, again, with_inconclusive)


def write_comparison(
    runs: Sequence[ComparedRun],
    sequences: SequenceDiff | None,
    out: Path,
    again: str,
    with_inconclusive: bool = False,
) -> Compared:
    """Compare these runs, and write the folder. `again`: the command that makes it once more. Raises RunError."""
    comparison = compare(runs, with_inconclusive)
    folder = new_folder(out, NAME)
    texts = {
        PAGE_FILE: comparison_page(comparison, sequences, folder, again),
        COMPARE_FILE: json.dumps(comparison_document(comparison, sequences), indent=1) + "\n",
    }
    for name, text in texts.items():
        try:
            write_whole(folder / name, text)
        except OSError as error:
            raise RunError(f"cannot write {folder / name}: {error.strerror}") from error
    give((folder, *folder.iterdir()))
    return Compared(comparison, sequences, folder)
