"""The page of a run, made again from its folder."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.app.clean import finish
from mrc_testbed.testbed.app.judge import judge_folder
from mrc_testbed.testbed.checks.judge import VERDICT_FILE, judge, read_verdict
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.folders import require_own_way
from mrc_testbed.testbed.pages.report.write import REPORT_FILE, write_report
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.files import RecordError, any_values
from mrc_testbed.testbed.rundir.ownership import abandoned, give, is_running


def make_report(folder: Path) -> Path:
    """Write report.html, and the verdict first where there is none. Raises TestbedError; UsageError when the run is
    still going on."""
    with any_values(folder):
        return _made(folder)


def _made(folder: Path) -> Path:
    if is_running(folder):
        raise UsageError(f"{folder}: this run is still going on; its page is made when it ends")
    require_own_way(folder)
    if abandoned(folder):
        finish(folder)
    elif not (folder / VERDICT_FILE).exists():
        judge_folder(folder, PatientConsole(quiet=True), quiet=True)
    record = load_record(folder)
    try:
        path = write_report(record, _verdict(record))
        give([path])
    except OSError as error:
        raise RunError(f"cannot write {folder / REPORT_FILE}: {error.strerror}") from error
    return path


def _verdict(record: RunRecord) -> Verdict:
    """As it was written; one that an older version wrote otherwise is worked out again."""
    try:
        return read_verdict(record.folder)
    except RecordError:
        return judge(record)
