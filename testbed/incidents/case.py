"""The folders of a case: what an observer may see, and beside it the truth, which only the runner may read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Any

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.folders import make_own
from mrc_testbed.testbed.incidents.draw import Draft
from mrc_testbed.testbed.rundir.files import RecordError, read_json, write_json
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.rundir.sizes import refuse_damaged
from mrc_testbed.testbed.whole_files import write_whole

CASE_FILE, TRUTH_FILE = "case.json", "truth.json"
TRUTH_SUFFIX = ".truth"
RUNS = "runs"
_RUNNER_ALONE = 0o700
_AGAIN = "the case is damaged; draw and observe it again"
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("lasts_s",), (int, float)),
    **dict.fromkeys(("fabric", "workload"), (dict, list)),
    **dict.fromkeys(("start_ns", "end_ns", "rtt_ns"), int),
    "base_rtt_ns": (int, NoneType),
}
"""Of the values in case.json."""
_ALWAYS, _OBSERVED = ("lasts_s", "fabric", "workload"), ("start_ns", "end_ns", "rtt_ns", "base_rtt_ns")


@dataclass(frozen=True, slots=True)
class CaseFolder:
    """A case on disk. `folder`: the blind one, with the case's name."""

    folder: Path

    @property
    def id(self) -> str:
        """Its name."""
        return self.folder.name

    @property
    def truth(self) -> Path:
        """The folder with the truth."""
        return self.folder.with_name(self.folder.name + TRUTH_SUFFIX)

    @property
    def runs(self) -> Path:
        """Where its run is."""
        return self.truth / RUNS

    def about(self) -> dict[str, Any]:
        """What an observer is told first. Raises UsageError for a folder that is no case, RecordError."""
        path = self.folder / CASE_FILE
        found = _document(path, f"{self.folder}: is no case; `incident draw SEED` makes one")
        for key in (*_ALWAYS, *(_OBSERVED if "start_ns" in found else ())):
            if not isinstance(found.get(key), _KINDS[key]) or not isfinite(_number(found[key])):
                raise RecordError(path, f"{key} is {found.get(key)!r}, as no case has it: {_AGAIN}")
        return found

    def known(self) -> dict[str, Any]:
        """The truth as it was drawn. Raises UsageError where it is not there, RecordError where it may not be read."""
        return _document(self.truth / TRUTH_FILE, f"{self.folder}: its truth is not beside it ({self.truth})")

    def update(self, more: Mapping[str, Any]) -> None:
        """Add to what an observer is told."""
        write_json(self.folder / CASE_FILE, {**self.about(), **more})

    def note(self, more: Mapping[str, Any]) -> None:
        """Add to the truth."""
        write_json(self.truth / TRUTH_FILE, {**self.known(), **more})

    def run_folder(self) -> Path:
        """That of its run. Raises UsageError before it was run."""
        name = self.known().get("run")
        if not isinstance(name, str):
            raise UsageError(f"{self.folder}: was not run yet; `incident observe {self.folder}` does")
        return self.runs / name


def _number(value: Any) -> float:
    return value if isinstance(value, float) else 0.0


def _document(path: Path, otherwise: str) -> dict[str, Any]:
    found = read_json(path)
    if found is None and path.exists():
        raise RecordError(path, f"is no JSON object: {_AGAIN}")
    if found is None:
        raise UsageError(otherwise)
    return found


def case_at(path: Path) -> CaseFolder:
    """The case in this folder. Raises UsageError where there is none."""
    case = CaseFolder(path.resolve())
    if path.name.endswith(TRUTH_SUFFIX):
        raise UsageError(f"{path}: is the truth of a case; name the case, {path.name.removesuffix(TRUTH_SUFFIX)}")
    case.about()
    refuse_damaged(case.folder)
    return case


def make_case(draft: Draft, out: Path) -> CaseFolder:
    """Write a drawn case below `out`. Raises UsageError if it is there already, or cannot be made."""
    case = CaseFolder(out.resolve() / draft.id)
    try:
        make_own(out)
        case.folder.mkdir()
        case.truth.mkdir(mode=_RUNNER_ALONE)
        os.chmod(case.truth, _RUNNER_ALONE)
        write_json(case.folder / CASE_FILE, {"case": draft.id, "lasts_s": draft.lasts_s, **draft.public})
        write_json(case.truth / TRUTH_FILE, _truth(draft))
        write_whole(case.truth / "scenario.yaml", draft.text)
        give([case.folder, case.folder / CASE_FILE])
    except FileExistsError:
        raise UsageError(
            f"{case.folder}: is there already; choose another folder with --out, or another seed"
        ) from None
    except OSError as error:
        raise UsageError(f"--out {out}: cannot make a case there: {error.strerror}") from error
    return case


def _truth(draft: Draft) -> dict[str, Any]:
    return {
        "case": draft.id,
        "seed": draft.seed,
        "attempt": draft.attempt,
        "kinds": list(draft.kinds),
        "busy": draft.busy,
        "lasts_s": draft.lasts_s,
    }


def drawn_text(case: CaseFolder) -> str:
    """The scenario of a case, with its faults. Raises UsageError where it is not there."""
    try:
        return (case.truth / "scenario.yaml").read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{case.truth}: the scenario cannot be read: {error.strerror}") from None
