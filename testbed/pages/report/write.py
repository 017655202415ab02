"""Makes report.html of a run folder."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.pages.assemble import assemble
from mrc_testbed.testbed.pages.charts import CHART_SCRIPTS, CHART_STYLES
from mrc_testbed.testbed.pages.report.clock import clock_of
from mrc_testbed.testbed.pages.report.data import drawn, texts
from mrc_testbed.testbed.pages.report.losses import FINER, grain_of
from mrc_testbed.testbed.pages.report.reproduce import files
from mrc_testbed.testbed.pages.report.samples import PortSamples, read_samples
from mrc_testbed.testbed.pages.terms import TERM_SCRIPTS
from mrc_testbed.testbed.whole_files import write_whole

REPORT_FILE = "report.html"
_FOLDER = "report"
_SCRIPTS = ("sides.js", "goodput.js", "steps.js", "rows.js", "timelines.js", "losses.js", "topology.js", "main.js")


def report_text(record: RunRecord, verdict: Verdict) -> str:
    """The page, of a run folder and what was judged of it. Reads samples.csv and what files the folder holds."""
    words = texts(record, verdict)
    found = files(record.folder)
    captured = any(name.endswith(".pcapng") for name, _ in found)
    values = {**words, "drawing": Markup(words["drawing"]), "files": found, "captured": captured}
    scripts = (*TERM_SCRIPTS, *CHART_SCRIPTS, *(f"{_FOLDER}/{name}" for name in _SCRIPTS))
    styles = (*CHART_STYLES, f"{_FOLDER}/report.css")
    return assemble(f"{_FOLDER}/report.html", values, drawn(record, _samples(record)), styles, scripts)


def _samples(record: RunRecord) -> PortSamples:
    clock = clock_of(record)
    return read_samples(record.folder, grain_of(clock) * 1e9 / FINER if clock else 0)


def write_report(record: RunRecord, verdict: Verdict) -> Path:
    """Write it into the folder. Raises OSError."""
    path = record.folder / REPORT_FILE
    write_whole(path, report_text(record, verdict))
    return path
