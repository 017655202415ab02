"""An interrupt that comes while Python swallows what is raised ends a command all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, PlainSerializer

from mrc_testbed.testbed.interrupts import unwrapped
from tests.hangs import HANGS_S

SWALLOWS = """
import signal, sys, time
from mrc_testbed.testbed.interrupts import send_swallowed_again

class Gone:
    def __del__(self):
        {raised}

{handler}
send_swallowed_again()
try:
    Gone()
    until = time.monotonic() + {limit_s}
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
SLOW_HOOK = """
def profile(frame, event, _):
    if event == "return" and frame.f_code.co_name == "hook":
        sys.setprofile(None)
        time.sleep(0.1)
sys.setprofile(profile)
"""
WHILE_IT_LOADS = """
import signal, sys
from mrc_testbed.testbed import errors, interrupts
from mrc_testbed.__main__ import main

def profile(frame, event, _):
    if event == "call" and frame.f_code.co_name == "cb" and "importlib" in frame.f_code.co_filename:
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)

sys.argv = ["mrc-testbed", *sys.argv[1:]]
sys.setprofile(profile)
main()
"""
SMALL = Path(__file__).parents[1] / "small_virtual.yaml"


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=HANGS_S, check=False
    )


@pytest.mark.parametrize(
    ("handler", "name"), [("", "SIGINT"), (ONCE, "SIGTERM"), (ANY_NUMBER, "SIGHUP")], ids=["default", "once", "each"]
)
def test_an_interrupt_that_a_finalizer_swallows_is_heard_after_it(handler: str, name: str) -> None:
    ended = python(SWALLOWS.format(raised=f"signal.raise_signal(signal.{name})", handler=handler, limit_s=20))
    assert ended.stdout.splitlines() == [f"heard {name}"]
    assert ended.stderr == ""


def test_one_that_comes_again_before_the_hook_is_left_is_heard_after_it() -> None:
    """Seen on a busy machine: what the hook itself raised was swallowed for good."""
    ended = python(SWALLOWS.format(raised="signal.raise_signal(signal.SIGINT)", handler=SLOW_HOOK, limit_s=20))
    assert ended.stdout.splitlines() == ["heard SIGINT"]
    assert ended.stderr == ""


def test_what_else_a_finalizer_raises_is_told_as_ever() -> None:
    ended = python(SWALLOWS.format(raised="raise ValueError('lost')", handler="", limit_s=0))
    assert ended.stdout.splitlines() == ["never heard"]
    assert "Exception ignored in" in ended.stderr
    assert "ValueError: lost" in ended.stderr


def test_ctrl_c_in_a_callback_of_the_import_ends_the_command(tmp_path: Path) -> None:
    longer = "workload.0.train.steps=100000"
    ended = python(WHILE_IT_LOADS, "run", str(SMALL), "--virtual", "--set", longer, "--out", str(tmp_path))
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr


def test_sigterm_while_the_program_loads_ends_it_as_ctrl_c_does(tmp_path: Path) -> None:
    ended = python(WHILE_IT_LOADS.replace("SIGINT", "SIGTERM"), "worlds")
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_an_interrupt_that_a_library_wraps_is_one_again() -> None:
    """Seen in a sweep's run: `internal error: PydanticSerializationError: ... KeyboardInterrupt: SIGTERM`."""

    def stopped(_: int) -> int:
        raise KeyboardInterrupt("SIGTERM")

    class Written(BaseModel):
        one: Annotated[int, PlainSerializer(stopped)] = 1

    with pytest.raises(KeyboardInterrupt, match="SIGTERM"), unwrapped():
        Written().model_dump()


def test_any_other_error_stays_what_it_is() -> None:
    def ends_badly() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise RuntimeError("could not be closed after it") from OSError()

    with pytest.raises(RuntimeError, match="closed"), unwrapped():
        ends_badly()
