"""Runs for people and scripts: summaries and tables on the terminal, reports for CI, pandas frames.

    from mrc_testbed.testbed.report import load_run

    run = load_run("latest")
    run.events[run.events["event"] == "ev_state"]

docs/notebook.md shows more. pandas is imported when the first frame is accessed, and what reads and judges a run when
one of these names is: most of what imports this package, as every run does before its first phase, wants neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrc_testbed.testbed.report.frames.run import Run, load_run

__all__ = ["Run", "load_run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mrc_testbed.testbed.report.frames import run

    return getattr(run, name)
