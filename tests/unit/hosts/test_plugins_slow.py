"""The file of a plugin that never finishes loading is told with its line, wherever it is loaded."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from mrc_testbed.hosts import load_limit
from mrc_testbed.hosts.control import ControlChannel
from mrc_testbed.hosts.load_limit import SlowLoad
from mrc_testbed.hosts.session import Session
from mrc_testbed.hosts.udp import Lateness
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.errors import ExitCode, ScenarioError
from mrc_testbed.testbed.scenario import load_scenario
from tests.unit.hosts.test_control import with_plugin
from tests.unit.scenario.test_plugins import EXAMPLES, written

SCENARIO = """\
name: small
plugins: [mine.py]
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}
workload: [{train: {hosts: all, steps: 90, compute: 100ms, allreduce: 1MiB}}]
"""
CATCHES = """\
while True:
    try:
        int("x")
    except Exception:
        pass
"""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_limit, "LIMIT_S", 0.2)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = 1\nwhile True: x += 1\n", "mine.py:2"),
        ("import time\ntime.sleep(600)\n", "mine.py:2"),
        (CATCHES, "mine.py:"),
        ("import threading\nthreading.Event().wait()\n", "mine.py:2"),
    ],
    ids=["loop", "sleep", "catches what it can", "waits"],
)
def test_a_scenario_is_told_the_line(tmp_path: Path, source: str, line: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(written(tmp_path, SCENARIO, mine=source) / "s.yaml")
    (problem,) = caught.value.problems
    assert line in problem.message
    assert "SlowLoad: not loaded after 0.2 s" in problem.message
    assert "\n" not in problem.message
    assert "plugin mine.py" not in sys.modules


def test_the_line_of_another_file_that_it_waits_for_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "never_there.py").write_text("\n\nwhile True: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ScenarioError, match=r"mine\.py:1: SlowLoad: .* still at .*/never_there\.py:3; "):
        load_scenario(written(tmp_path, SCENARIO, mine="import never_there\n") / "s.yaml")


def test_a_class_that_never_finishes_being_made_is_told(tmp_path: Path) -> None:
    source = (
        "class Mine:\n    window = 9\n    def __init__(self, timing):\n        while True: pass\n"
        + "".join(
            f"    def {name}(self, *_): pass\n" for name in ("begin", "on_sack", "on_trim", "on_loss", "on_penalty")
        )
        + 'PLUGIN = {"congestion_control": {"mine": Mine}}\n'
    )
    with pytest.raises(ScenarioError, match=r"mine\.py:4: SlowLoad: not loaded after 0\.2 s"):
        load_scenario(written(tmp_path, SCENARIO, mine=source) / "s.yaml")


def test_who_reads_a_run_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRC_TRUST_PLUGINS", "1")
    written(tmp_path, "", mine="while True: pass\n")
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    with pytest.raises(ScenarioError, match=r"mine\.py:1: SlowLoad"):
        load_record(tmp_path)


def test_a_daemon_answers_with_the_line(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Session(ControlChannel(theirs), Lateness()).handle(with_plugin(tmp_path, "\nwhile True: pass\n"), 0)
        answer = json.loads(ours.recv(4096))
    assert answer["ok"] is False
    assert f"plugin mine: cannot load {tmp_path}/mine.py:2: SlowLoad: not loaded after 0.2 s" in answer["error"]


TINY = """\
name: tiny
world: virtual
plugins: [mine.py]
fabric: {planes: 1, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 10ms}
workload: [{train: {hosts: all, steps: 2, compute: 5ms, allreduce: 64KiB}}]
"""
CONTROL = (EXAMPLES / "my_cc.py").read_text().replace("fixed-rate", "mine")
ON_SACK = "def on_sack(self, acked, rtt_ns, ecn, under_way, now_ns):\n"
METRIC = (EXAMPLES / "step_spread.py").read_text()
GATHER = (EXAMPLES / "gather.py").read_text().replace('{"gather"', '{"mine"')


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "import time; time.sleep(600)",
        "while True:\n            try: 1 / 0\n            except: pass",
    ],
    ids=["loop", "sleep", "catches all"],
)
def test_a_call_that_never_returns_ends_a_run_in_virtual_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], loop: str
) -> None:
    """It had waited for ever, with a full core."""
    monkeypatch.setattr(load_limit, "CALL_LIMIT_S", 0.2)
    source = CONTROL.replace(ON_SACK, f"{ON_SACK}        {loop}\n")
    text = TINY + "endpoint: {congestion_control: mine}\n"
    scenario = load_scenario(written(tmp_path, text, mine=source) / "s.yaml")
    outcome = run_scenario(scenario, tmp_path / "out", quiet=True)
    assert outcome.exit_code == ExitCode.INCONCLUSIVE
    said = capsys.readouterr().out
    assert "program: the run was interrupted: plugin mine.py:3" in " ".join(said.split())
    assert "on_sack() has not returned after 0.2 s" in " ".join(said.split())


def test_calls_that_return_are_no_such_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: together they take far longer than the limit."""
    monkeypatch.setattr(load_limit, "CALL_LIMIT_S", 0.2)
    source = CONTROL.replace(ON_SACK, f"{ON_SACK}        import time; time.sleep(0.005)\n")
    text = TINY + "endpoint: {congestion_control: mine}\n"
    scenario = load_scenario(written(tmp_path, text, mine=source) / "s.yaml")
    assert run_scenario(scenario, tmp_path / "out", quiet=True).exit_code == ExitCode.PASS


def test_a_metric_that_never_returns_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_limit, "CALL_LIMIT_S", 0.2)
    source = METRIC.replace("def spreads(record, window):\n", "def spreads(record, window):\n    while True: pass\n")
    scenario = load_scenario(written(tmp_path, TINY + "expect: [step_spread.max < 1s]\n", mine=source) / "s.yaml")
    outcome = run_scenario(scenario, tmp_path / "out", quiet=True)
    assert outcome.verdict
    check = outcome.verdict.checks[0]
    assert check.status == "inconclusive"
    assert check.why == "plugin mine.py:10: spreads() has not returned after 0.2 s"


def test_a_workload_that_never_returns_is_a_mistake_of_the_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_limit, "CALL_LIMIT_S", 0.2)
    head = "def operations(self, member, step):\n"
    assert head in GATHER
    text = TINY.partition("workload:")[0] + "workload:\n  - mine: {size: 1KB, iterations: 4}\n"
    folder = written(tmp_path, text, mine=GATHER.replace(head, f"{head}        while True: pass\n"))
    with pytest.raises(
        ScenarioError, match=r"s\.yaml:3:\d+: plugins: plugin mine\.py:24: operations\(\) has not returned"
    ):
        load_scenario(folder / "s.yaml")


def test_the_timer_of_somebody_else_goes_on() -> None:
    rang: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rang.append(number))
    timer = signal.setitimer(signal.ITIMER_REAL, 60)
    try:
        with pytest.raises(SlowLoad), load_limit.load_limit(0.05):
            time.sleep(30)
        assert 30 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
        signal.raise_signal(signal.SIGALRM)
        assert rang == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)


def test_an_interrupt_that_is_to_come_again_outlives_the_limit() -> None:
    """testbed/interrupts.py takes the timer for one that Python swallowed while a plugin was loaded."""
    heard: list[int] = []
    before = signal.getsignal(signal.SIGALRM)
    try:
        with load_limit.load_limit(30):
            signal.signal(signal.SIGALRM, lambda number, _: heard.append(number))
            signal.setitimer(signal.ITIMER_REAL, 0.05)
        time.sleep(0.2)
        assert heard == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_another_thread_has_no_limit() -> None:
    done: list[bool] = []

    def load() -> None:
        with load_limit.load_limit(0.01):
            time.sleep(0.1)
        done.append(True)

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    assert done == [True]


def test_a_system_without_timer_signals_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_limit, "signal", SimpleNamespace())
    with load_limit.load_limit(0.01):
        time.sleep(0.03)
