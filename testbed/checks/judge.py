"""Run record -> verdict: the scenario's expectations, the checks of every run, and machine fidelity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from mrc_testbed.testbed.checks.advice import advised
from mrc_testbed.testbed.checks.builtin import builtin_checks
from mrc_testbed.testbed.checks.cause import causes_of_machine
from mrc_testbed.testbed.checks.compare import check_expectation
from mrc_testbed.testbed.checks.end_rows import end_rows
from mrc_testbed.testbed.checks.fidelity import evaluate_fidelity
from mrc_testbed.testbed.checks.guard import guarded
from mrc_testbed.testbed.checks.outage import death_words
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.result import CheckResult, Fidelity, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.rundir.files import RecordError, read_json, write_json
from mrc_testbed.testbed.scenario import SCENARIO_FILE

VERDICT_FILE = "verdict.json"
COMMAND_LINE = "command line"
"""The place of an expectation that is in no file."""


def judge(record: RunRecord) -> Verdict:
    """Evaluate everything. Never raises because of the record: what cannot be judged is inconclusive."""
    fidelity = advised(record, evaluate_fidelity(record))
    wanted = [_believed(check, fidelity) for check in _expectations(record)]
    always = [_believed(check, fidelity) for check in builtin_checks(record)]
    judged = record.scenario.judged
    status = _merged([check.status for check in (*wanted, *always) if check.decides(judged)], fidelity)
    if status is Status.PASS and not judged:
        status = Status.DIED if record.death else Status.MEASURED
    told = death_words(record), judged, end_rows(record)
    return Verdict(status, record.scenario.name, (*wanted, *always), fidelity, *told)


def write_verdict(verdict: Verdict, folder: Path, headline: str = "") -> None:
    """Write verdict.json. `headline`: the figures of the verdict line, for lists of runs."""
    write_json(folder / VERDICT_FILE, {**verdict.as_dict(), "headline": headline})


def read_verdict(folder: Path) -> Verdict:
    """Read verdict.json. Raises RecordError if it is missing or malformed."""
    value = read_json(folder / VERDICT_FILE)
    try:
        return Verdict.from_dict(value or {})
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(folder / VERDICT_FILE, f"is not a verdict ({error!r})") from None


def _expectations(record: RunRecord) -> Iterator[CheckResult]:
    for index, wanted in enumerate(record.scenario.expect):
        line = record.scenario.line_of("expect", index)
        check = guarded(wanted.text, line, partial(check_expectation, record, wanted, line))
        yield replace(check, level=wanted.level, place=_place(record, index, line))


def _place(record: RunRecord, index: int, line: int | None) -> str:
    """In the user's own file, where the run noted it; else in the copy."""
    file, lines = record.environment.get("scenario_file"), record.environment.get("expect_lines")
    if isinstance(file, str) and isinstance(lines, list) and len(lines) == len(record.scenario.expect):
        return f"{file}:{lines[index]}" if lines[index] else COMMAND_LINE
    return f"{SCENARIO_FILE}:{line}" if line else COMMAND_LINE


def _believed(check: CheckResult, fidelity: Fidelity) -> CheckResult:
    """The check on this machine: if it did not keep time, neither pass nor fail counts."""
    settled = check.status in (Status.INCONCLUSIVE, Status.NOT_APPLICABLE)
    certain = check.hard and check.status is Status.FAIL and not fidelity.meddled_with
    if fidelity.ok or settled or certain:
        return check
    why = f"would be {check.status}, but {causes_of_machine(fidelity)[0].said}"
    return replace(check, status=Status.INCONCLUSIVE, why=why, unbelieved=check.status)


def _merged(deciding: Iterable[Status], fidelity: Fidelity) -> Status:
    """Any remaining fail decides; then any inconclusive; else pass. What does not apply does not count."""
    statuses = {status for status in deciding if status is not Status.NOT_APPLICABLE}
    if Status.FAIL in statuses:
        return Status.FAIL
    if Status.INCONCLUSIVE in statuses or not statuses or not fidelity.ok:
        return Status.INCONCLUSIVE
    return Status.PASS
