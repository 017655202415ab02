"""Runs for people and scripts: summaries and tables on the terminal, reports for CI, pandas frames.

    from testbed.report import load_run

    run = load_run("latest")
    run.events[run.events["event"] == "ev_state"]

docs/notebook.md shows more. pandas is imported when the first frame is accessed.
"""

from __future__ import annotations

from testbed.report.frames.run import Run, load_run

__all__ = ["Run", "load_run"]
