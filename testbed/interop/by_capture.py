"""A row that is a capture: what can be seen of each step in packets that somebody else recorded."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from mrc_testbed.testbed.interop.capture_judges import CHECKS, is_whole
from mrc_testbed.testbed.interop.captured import Captured, read_captures
from mrc_testbed.testbed.interop.entries import ListedCapture
from mrc_testbed.testbed.interop.evidence import Complaints
from mrc_testbed.testbed.interop.results import Row, StepMark, StepResult, judge_each
from mrc_testbed.testbed.interop.steps import STEPS, ContractStep

_MOST_REASONS = 3
_UNSEEN = {
    1: "a capture does not show lines",
    8: "a capture does not show what is in the memory of hosts",
}


def capture_row(
    entry: ListedCapture, told: Callable[[StepResult], None], steps: tuple[ContractStep, ...] = STEPS
) -> Row:
    """Judge all steps; each is told when it is over. Raises UsageError for a file that is no capture."""
    captured = read_captures(entry.files, entry.host)
    results = judge_each(steps, lambda step: _result(step, captured, entry), told)
    return Row(entry, "", results, captured.notes())


def _result(step: ContractStep, captured: Captured, entry: ListedCapture) -> StepResult:
    """Pass, where the capture shows all that the role has to do."""
    if step.number in _UNSEEN:
        return StepResult(step, StepMark.NOT_APPLICABLE, (_UNSEEN[step.number],))
    checks = [check for check in CHECKS if check.step == step.number and check.needs(entry.role)]
    lacking, wrong = [], list(_broken(captured))
    for check in checks:
        if lack := check.lacks(captured):
            lacking.append(lack)
            continue
        complaints = list(islice(check.judge(captured), _MOST_REASONS))
        if complaints and check.of_absence and not is_whole(captured):
            lacking.append(f"packets are missing in the capture, so this is not certain: {complaints[0]}")
        else:
            wrong += complaints
    if len(lacking) < len(checks) and wrong:
        return StepResult(step, StepMark.FAIL, tuple(wrong[:_MOST_REASONS]))
    if lacking:
        return StepResult(step, StepMark.NOT_APPLICABLE, tuple(dict.fromkeys(lacking)))
    return StepResult(step, StepMark.PASS)


def _broken(captured: Captured) -> Complaints:
    return (f"{count} packets to UDP port 4791 cannot be read: {what}" for what, count in captured.broken.items())
