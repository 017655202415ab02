"""Runs a check so that an error can never become a pass."""

from __future__ import annotations

from collections.abc import Callable

from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.windows import NoData, NotApplicable
from mrc_testbed.testbed.rundir.lines import Party


def guarded(name: str, line: int | None, check: Callable[[], CheckResult]) -> CheckResult:
    """The result of a check; missing data and a crash are inconclusive, with the reason."""
    try:
        return check()
    except NotApplicable as reason:
        return CheckResult(name, Status.NOT_APPLICABLE, why=str(reason), line=line)
    except NoData as error:
        return CheckResult(name, Status.INCONCLUSIVE, why=str(error), line=line, who=Party.SCENARIO)
    except Exception as error:
        why = f"the check itself failed: {error!r}"
        return CheckResult(name, Status.INCONCLUSIVE, why=why, line=line, who=Party.MACHINE)
