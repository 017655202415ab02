"""What runs inside a worker of Dask: it says what it is, and runs cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mrc_testbed.testbed.sweep.cell import CellResult, CellSpec, run_cell
from mrc_testbed.testbed.sweep.code import code_version, version_words


@dataclass(frozen=True, slots=True)
class WorkerAnswer:
    """What came of a cell, and who ran it. `refusal`: why it was not begun."""

    worker: str
    result: CellResult | None
    refusal: str = ""


def describe() -> dict[str, Any]:
    """The code of this worker."""
    return code_version()


def run_on_worker(spec: CellSpec, abort_name: str) -> WorkerAnswer:
    """A task: the cell, until the event `abort_name` of the scheduler is set."""
    from distributed import Event, get_worker

    worker: str = get_worker().address
    ours, wanted = version_words(code_version()), version_words(spec.version)
    if ours != wanted:
        return WorkerAnswer(worker, None, f"it has mrc-testbed {ours}, the sweep was planned with {wanted}")
    abort = Event(abort_name)
    return WorkerAnswer(worker, run_cell(spec, abort.is_set))
