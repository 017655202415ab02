"""The files of `run --junit` and `run --json`: whole at any time, also when the command is killed in mid-run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.inputs import ONLY_JSON, STANDARD_STREAM
from mrc_testbed.testbed.report.batch import batch_as_dict
from mrc_testbed.testbed.report.junit import junit_text
from mrc_testbed.testbed.report.outcome import Case
from mrc_testbed.testbed.rundir.ownership import write_given
from mrc_testbed.testbed.terminal import say


class Reports:
    """Writes what was asked for. Raises UsageError for JUnit on standard output. The first write must succeed;
    `on_error` gets later failures, and runs go on."""

    def __init__(self, junit: Path | None, json_: Path | None, on_error: Callable[[Exception], object]) -> None:
        self.json_on_stdout = json_ == STANDARD_STREAM
        self._on_error = on_error
        self._begun = False
        self._writers: list[tuple[str, Path, Callable[[Sequence[Case]], str]]] = []
        if junit == STANDARD_STREAM:
            raise UsageError(f"--junit -: {ONLY_JSON}")
        if junit is not None:
            self._writers.append(("--junit", junit, junit_text))
        if json_ is not None and not self.json_on_stdout:
            self._writers.append(("--json", json_, _json_text))

    def write(self, cases: Sequence[Case]) -> None:
        """Bring every file up to date. Raises UsageError when this is the first time and a file cannot be written."""
        for option, path, text_of in self._writers:
            try:
                write_given(path, text_of(cases))
            except OSError as error:
                reason = f"{option} {path}: cannot be written: {error.strerror}"
                if not self._begun:
                    raise UsageError(reason) from error
                self._on_error(RunError(reason))
        self._begun = True

    def print_json(self, cases: Sequence[Case]) -> None:
        """Where `--json -` was asked for, print it."""
        if self.json_on_stdout:
            say(_json_text(cases), end="")


def _json_text(cases: Sequence[Case]) -> str:
    return json.dumps(batch_as_dict(cases), indent=1) + "\n"
