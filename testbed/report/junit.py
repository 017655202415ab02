"""JUnit XML: a testsuite per run, a testcase per check, valid against Jenkins' junit-10.xsd (docs/ci.md has the
mapping).

CI systems know passed, failed, error and skipped. Most count skipped as good, so everything unknown is an error:
inconclusive, interrupted, not run. Unknown is never pass. Skipped is what the transport of the run does not have.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from mrc_testbed.testbed.checks.cause import causes_of_machine, of_check
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.expect.vocabulary import Severity
from mrc_testbed.testbed.report.outcome import NOT_RUN, WORDS, Case, RunOutcome

JUNIT_FILE = "junit.xml"
KEPT_TIME = "the machine kept time"
"""The testcase of the fidelity verdict. It carries the time of the run and the earlier tries."""
RUN = "the run"
"""The only testcase of a run without a verdict."""

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAGS = {Status.FAIL: "failure", Status.INCONCLUSIVE: "error"}


def junit_text(cases: Sequence[Case]) -> str:
    """The whole document for these cases; a case that was not run yet is an error in it."""
    suites = [_suite(case, name) for case, name in zip(cases, _suite_names(cases), strict=True)]
    root = Element("testsuites", name="mrc-testbed")
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, 0)) for suite in suites)))
    root.set("time", _seconds(sum(float(suite.get("time", 0)) for suite in suites)))
    root.extend(suites)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _suite_names(cases: Sequence[Case]) -> list[str]:
    """A name for each, as no other has it: two files may have one `name`, and one file may be given twice."""
    counts = Counter(case.name for case in cases)
    return _distinct(case.name if counts[case.name] == 1 else f"{case.name} ({case.file})" for case in cases)


def _distinct(names: Iterable[str]) -> list[str]:
    """As XML holds them, with a number behind what was there before: GitLab and Jenkins know a test by its names, and
    keep one of several alike."""
    found: dict[str, None] = {}
    for name in map(_clean, names):
        number = 1
        while (numbered := name if number == 1 else f"{name} ({number})") in found:
            number += 1
        found[numbered] = None
    return list(found)


def _suite(case: Case, name: str) -> Element:
    outcome = case.outcome
    suite = Element("testsuite", name=name, file=_clean(str(case.file)))
    properties = SubElement(suite, "properties")
    for key, value in _properties(case):
        SubElement(properties, "property", name=key, value=_clean(value))
    tests = list(_tests(case))
    for test, distinct in zip(tests, _distinct(test.get("name", "") for test in tests), strict=True):
        test.set("name", distinct)
        test.set("classname", name)
    suite.extend(tests)
    suite.set("tests", str(len(tests)))
    suite.set("failures", str(sum(test.find("failure") is not None for test in tests)))
    suite.set("errors", str(sum(test.find("error") is not None for test in tests)))
    suite.set("skipped", str(sum(test.find("skipped") is not None for test in tests)))
    suite.set("time", _seconds(sum(one.seconds for one in case.tries)))
    if outcome:
        _text(suite, "system-out", "\n".join(_lines(outcome)))
    return suite


def _properties(case: Case) -> Iterator[tuple[str, str]]:
    yield "seed", str(case.scenario.seed)
    yield "verdict", case.word
    yield "tries", str(len(case.tries))
    outcome = case.outcome
    if outcome and outcome.folder:
        yield "folder", str(outcome.folder)
    if outcome and outcome.base_rtt_ns:
        yield "base_rtt_ms", f"{outcome.base_rtt_ns / 1e6:.3f}"


def _lines(outcome: RunOutcome) -> Iterator[str]:
    yield from (f"warning: {warning}" for warning in outcome.warnings)
    yield f"{outcome.word}: {outcome.headline}".removesuffix(": ")
    if outcome.reason:
        yield outcome.reason
    if outcome.verdict:
        for figure in outcome.verdict.fidelity.figures:
            known = figure.why if figure.observed is None else f"{number(figure.observed)} {figure.unit}"
            yield f"{figure.name}: {known}"


def _tests(case: Case) -> Iterator[Element]:
    verdict = case.outcome.verdict if case.outcome else None
    if verdict is None:
        yield _run_test(case)
        return
    yield _kept_time(case, verdict)
    for check in verdict.checks:
        yield _check_test(case, check, verdict.judged or verdict.decides(check))


def _run_test(case: Case) -> Element:
    test = _test(case, RUN, sum(one.seconds for one in case.tries))
    outcome = case.outcome
    if outcome is None:
        _text(test, "error", "none of its runs finished", type=NOT_RUN, message=NOT_RUN)
    else:
        word = WORDS[outcome.exit_code]
        _text(test, "error", outcome.reason or word, type=word, message=outcome.reason or word)
    return test


def _kept_time(case: Case, verdict: Verdict) -> Element:
    test = _test(case, KEPT_TIME, sum(one.seconds for one in case.tries))
    fidelity = verdict.fidelity
    if not fidelity.ok:
        reasons = [*map(str, causes_of_machine(fidelity))]
        _text(test, "error", "\n".join(reasons), type=Status.INCONCLUSIVE, message=reasons[0])
    last = case.tries[-1]
    earlier = "flakyError" if last.exit_code in (ExitCode.PASS, ExitCode.FAIL) else "rerunError"
    for one in case.tries[:-1]:
        _text(test, earlier, f"{one.reason}\n{one.folder or ''}", type=WORDS[one.exit_code], message=one.reason)
    return test


def _check_test(case: Case, check: CheckResult, judged: bool) -> Element:
    """`judged`: in a run that only measures, a check that does not hold says something, and fails nothing."""
    test = _test(case, check.name, 0)
    if check.status is Status.NOT_APPLICABLE:
        _text(test, "skipped", check.why)
        return test
    said = of_check(check).seen or check.status
    tag = _TAGS.get(check.status) if check.level is Severity.ERROR and judged else None
    if check.status is not Status.PASS and not tag:
        _text(test, "system-out", f"{'warning' if judged else 'measured'}: {said}")
    if tag:
        place = f"{check.place or case.file}: "
        _text(test, tag, f"{place}{check.name}\n{said}", type=check.status, message=said)
    return test


def _test(case: Case, name: str, seconds: float) -> Element:
    return Element("testcase", name=_clean(name), classname=_clean(case.name), time=_seconds(seconds))


def _text(parent: Element, tag: str, text: str, **attributes: str) -> None:
    child = SubElement(parent, tag, {key: _clean(value) for key, value in attributes.items()})
    child.text = _clean(text)


def _clean(text: str) -> str:
    """Removes what XML 1.0 cannot hold, as in a name from a file."""
    return _NOT_XML.sub("\ufffd", text)


def _seconds(value: float) -> str:
    return f"{value:.3f}"
