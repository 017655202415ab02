"""The pytest plugin: the fixture `mrc_testbed` runs scenarios, and an inconclusive run never counts as a pass.

Every pytest in an environment with the testbed loads it, so it imports only pytest until the fixture is used.
docs/ci.md has its use.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from mrc_testbed.testbed.app.finished import FinishedRun

_ANSWERS = ("fail", "xfail", "skip")
"""What an inconclusive run makes of a test after the last try."""
_RETRIES = "1"
_WORLDS = ("kernel", "virtual")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options, each with an ini entry."""
    group = parser.getgroup("mrc-testbed")
    group.addoption("--mrc-results", metavar="DIR", help="folder that keeps the run folders; default: tmp_path")
    group.addoption("--mrc-inconclusive", choices=_ANSWERS, help="result of a test whose run is inconclusive")
    group.addoption("--mrc-retries", type=int, metavar="N", help="run an inconclusive scenario again up to N times")
    group.addoption("--mrc-world", choices=_WORLDS, help="where scenarios run that do not say it")
    parser.addini("mrc_world", "as --mrc-world: kernel or virtual; default: as in the scenario", default="")
    parser.addini("mrc_results", "as --mrc-results; relative to the root folder")
    parser.addini("mrc_inconclusive", "as --mrc-inconclusive: fail (default), xfail or skip", default=_ANSWERS[0])
    parser.addini("mrc_retries", f"as --mrc-retries; default {_RETRIES}", default=_RETRIES)


def pytest_configure(config: pytest.Config) -> None:
    """Reports mistakes of the ini file before any test. Raises UsageError."""
    if config.getini("mrc_inconclusive") not in _ANSWERS:
        raise pytest.UsageError(f"mrc_inconclusive must be one of {', '.join(_ANSWERS)}")
    if config.getini("mrc_world") not in ("", *_WORLDS):
        raise pytest.UsageError(f"mrc_world must be one of {', '.join(_WORLDS)}")
    if not str(config.getini("mrc_retries")).isdecimal() or (config.getoption("mrc_retries") or 0) < 0:
        raise pytest.UsageError("mrc_retries must be a whole number, 0 or more")


class Testbed:
    """Runs scenarios for one test. Looks for paths beside the test's file, then in the current folder of pytest."""

    __test__ = False

    def __init__(self, here: Path, out: Path, retries: int, inconclusive: str, world: str) -> None:
        self._here = here
        self._out = out
        self._retries = retries
        self._inconclusive = inconclusive
        self._world = world

    def run(
        self,
        scenario: str | Path,
        *overrides: str,
        seed: int | None = None,
        retries: int | None = None,
        world: str | None = None,
    ) -> FinishedRun:
        """Run a scenario with changes as by `--set`. A returned result has passed or failed.

        `world`: "virtual" or "kernel", which needs Linux; None: as the options or the scenario say.

        A run that the machine spoiled is retried; one that stays inconclusive ends the test as configured. Raises
        ScenarioError for mistakes of the scenario, MissingCapability if the machine lacks something.
        """
        __tracebackhide__ = True  # pytest then shows the test's own line
        from mrc_testbed.testbed.app.finished import FinishedRun
        from mrc_testbed.testbed.app.run import run_scenario
        from mrc_testbed.testbed.errors import ExitCode, TestbedError
        from mrc_testbed.testbed.report.console import open_console
        from mrc_testbed.testbed.scenario import load_scenario

        if retries is not None and retries < 0:
            raise ValueError(f"retries must be 0 or more, not {retries}")
        tries, most = 0, 1 + (self._retries if retries is None else retries)
        try:
            chosen = world or self._world
            changes = (*overrides, *([f"world={chosen}"] if chosen else ()))
            loaded = load_scenario(self._found(Path(scenario)), changes, seed)
            while tries < most:
                tries += 1
                outcome = run_scenario(loaded, self._out, True, open_console())
                if not outcome.worth_another_try:
                    break
        except TestbedError as error:
            raise error.with_traceback(None) from None
        if outcome.stopped:
            raise KeyboardInterrupt
        if outcome.exit_code is not ExitCode.INCONCLUSIVE:
            return FinishedRun(outcome)
        self._give_up(
            f"inconclusive after {tries} {'try' if tries == 1 else 'tries'}: {outcome.reason}; see {outcome.folder}"
        )

    def _give_up(self, reason: str) -> NoReturn:
        __tracebackhide__ = True
        if self._inconclusive == "xfail":
            pytest.xfail(reason)
        if self._inconclusive == "skip":
            pytest.skip(reason)
        pytest.fail(reason, pytrace=False)

    def _found(self, path: Path) -> Path:
        beside = self._here / path
        return beside if beside.is_file() else path


@pytest.fixture
def mrc_testbed(request: pytest.FixtureRequest, tmp_path: Path) -> Testbed:
    """Runs scenarios: `result = mrc_testbed.run("scenario.yaml", "fabric.planes=2", seed=3)`."""
    config = request.config
    given = config.getoption("mrc_results")
    kept = config.invocation_params.dir / given if given else None
    if kept is None and config.getini("mrc_results"):
        kept = config.rootpath / config.getini("mrc_results")
    out = tmp_path if kept is None else kept / re.sub(r"[^\w.-]+", "_", request.node.name)
    retries = config.getoption("mrc_retries")
    retries = int(config.getini("mrc_retries")) if retries is None else retries
    answer = config.getoption("mrc_inconclusive") or config.getini("mrc_inconclusive")
    world = config.getoption("mrc_world") or config.getini("mrc_world")
    return Testbed(request.path.parent, out, retries, answer, world)
