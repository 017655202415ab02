"""An interrupt that comes while Python swallows what is raised ends a command all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SWALLOWS = """
import signal, sys, time
from testbed.interrupts import send_swallowed_again

class Gone:
    def __del__(self):
        {raised}

{handler}
send_swallowed_again()
try:
    Gone()
    print("it goes on", flush=True)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        time.sleep(0.001)
    print("never heard")
except KeyboardInterrupt as stop:
    time.sleep(0.1)
    print("heard", str(stop))
"""
ONCE = """
def once(number, _):
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number).name)
signal.signal(signal.SIGTERM, once)
"""
ANY_NUMBER = """
def each(number, _):
    raise KeyboardInterrupt(signal.Signals(number).name)
signal.signal(signal.SIGHUP, each)
"""
WHILE_IT_LOADS = """
import signal, sys
from testbed.__main__ import main

def profile(frame, event, _):
    if event == "call" and frame.f_code.co_name == "cb" and "importlib" in frame.f_code.co_filename:
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)

sys.argv = ["mrc-testbed", *sys.argv[1:]]
sys.setprofile(profile)
main()
"""
ENDLESS = """
name: endless
world: virtual
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 4000, compute: 20ms, allreduce: 64KiB}}]
"""


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("handler", "name"), [("", "SIGINT"), (ONCE, "SIGTERM"), (ANY_NUMBER, "SIGHUP")], ids=["default", "once", "each"]
)
def test_an_interrupt_that_a_finalizer_swallows_is_heard_after_it(handler: str, name: str) -> None:
    ended = python(SWALLOWS.format(raised=f"signal.raise_signal(signal.{name})", handler=handler))
    assert ended.stdout.splitlines() == ["it goes on", f"heard {name}"]
    assert ended.stderr == ""


def test_what_else_a_finalizer_raises_is_told_as_ever() -> None:
    ended = python(SWALLOWS.format(raised="raise ValueError('lost')", handler="").replace("20", "0"))
    assert ended.stdout.splitlines() == ["it goes on", "never heard"]
    assert "Exception ignored in" in ended.stderr
    assert "ValueError: lost" in ended.stderr


def test_ctrl_c_in_a_callback_of_the_import_ends_the_command(tmp_path: Path) -> None:
    file = tmp_path / "endless.yaml"
    file.write_text(ENDLESS)
    ended = python(WHILE_IT_LOADS, "run", str(file), "--out", str(tmp_path / "out"))
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr
