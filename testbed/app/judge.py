"""The last phase of a run: its folder is read, judged and summed up. Works as well on what a killed run left."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from mrc_testbed.testbed.app.recorded_series import METRICS_FILE, recorded_readings
from mrc_testbed.testbed.checks.healing import RECOVERY_FILE, recovery_document
from mrc_testbed.testbed.checks.judge import judge, write_verdict
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.unmet import unmet_words
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.metrics.exposition import open_metrics
from mrc_testbed.testbed.pages.report.write import REPORT_FILE, write_report
from mrc_testbed.testbed.pcap.convert import write_captures
from mrc_testbed.testbed.report import facts
from mrc_testbed.testbed.report.junit import JUNIT_FILE, junit_text
from mrc_testbed.testbed.report.outcome import Case, RunOutcome
from mrc_testbed.testbed.report.summary import MIN_WIDTH, render_summary, summary_text, verdict_line
from mrc_testbed.testbed.rundir.files import RecordError, write_json
from mrc_testbed.testbed.whole_files import write_whole


def judge_folder(folder: Path, console: Console, quiet: bool, name: str = "") -> RunOutcome:
    """Write verdict.json, recovery.json, junit.xml, summary.txt, metrics.om, pcap/ of what was captured, and
    report.html; show the summary (with `quiet` the verdict line alone, of `name`). verdict.json comes after all that
    it needs: where it is, the run has its verdict, and only the page may be lacking.

    Raises TestbedError when the folder cannot be read or written.
    """
    record = load_record(folder)
    _make_captures(record, console)
    verdict = judge(record)
    outcome = _outcome(verdict, record)
    case = Case(folder / "scenario.yaml", record.scenario, 1, 1, (outcome,))
    try:
        write_json(folder / RECOVERY_FILE, recovery_document(record))
        write_whole(folder / JUNIT_FILE, junit_text([case]))
        write_whole(folder / "summary.txt", summary_text(verdict, record))
        _write_metrics(record, verdict, console)
        write_verdict(verdict, folder, outcome.headline)
    except OSError as error:
        place = error.filename2 or error.filename or folder
        raise RunError(f"cannot write {place}: {error.strerror}; the run has no verdict") from error
    write_page(record, verdict, console)
    if quiet:
        console.print(verdict_line(verdict, record, name), soft_wrap=True)
    else:  # a narrower terminal breaks the lines; else the tables would lose whole columns
        console.width = max(console.width, MIN_WIDTH)
        console.print(render_summary(verdict, record))
    return outcome


def _make_captures(record: RunRecord, console: Console) -> None:
    """The verdict does not need them."""
    try:
        write_captures(record)
    except RunError as error:
        console.print(f"warning: {error}", style="yellow", soft_wrap=True)


def _write_metrics(record: RunRecord, verdict: Verdict, console: Console) -> None:
    """The verdict does not need them: a folder with a value that no run writes has none."""
    try:
        text = open_metrics(recorded_readings(record, verdict))
    except RecordError as error:
        console.print(f"warning: {METRICS_FILE} could not be made: {error}", style="yellow", soft_wrap=True)
    else:
        write_whole(record.folder / METRICS_FILE, text)


def write_page(record: RunRecord, verdict: Verdict, console: Console) -> None:
    """Write report.html. The verdict is written by then: an error of its page must not take it away."""
    try:
        write_report(record, verdict)
    except Exception as error:
        text = f"warning: {record.folder / REPORT_FILE} could not be made: {type(error).__name__}: {error}"
        console.print(text, style="yellow", soft_wrap=True)


def _outcome(verdict: Verdict, record: RunRecord) -> RunOutcome:
    seconds = (record.history[-1].t_ns - record.history[0].t_ns) / 1e9 if record.history else 0.0
    return RunOutcome(
        verdict.exit_code,
        seconds,
        verdict,
        record.folder,
        facts.headline(record),
        record.base_rtt_ns,
        (*map(str, record.environment.get("warnings") or ()), *filter(None, [unmet_words(record)])),
    )
