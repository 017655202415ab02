"""A prompt beside a run ends with the fabric, whatever it is doing and whatever the run's own process does next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mrc_testbed.testbed.errors import FabricError, RunError
from mrc_testbed.testbed.fabric import nodes, prompt, running
from mrc_testbed.testbed.fabric.processes import Process
from mrc_testbed.testbed.fabric.prompt import Failed
from mrc_testbed.topos.plan import Plan

SUPERVISOR = """
import os, subprocess
shell = subprocess.Popen(["bash", "-c", "(sleep 60; true) & echo; wait", "mininet:h0"], stdout=subprocess.PIPE)
shell.stdout.readline()
print(os.getpid(), flush=True)
shell.wait()
"""
OWNER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SUPERVISOR!r}]); sys.stdin.read()"
"""Goes on when its supervisor has ended, as with a verdict or the next run of a batch. Its shell has forked one that is
called as it is."""
PLAN = cast(Plan, SimpleNamespace(node_names=["h0"], hosts=[]))
OVER = "^the run is over, and its fabric is gone$"


class Tree:
    """A run's processes: `owner`, its supervisor, and the shell of h0."""

    def __init__(self) -> None:
        self.owner = subprocess.Popen(
            [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self.owner.stdout is not None
        self.supervisor = int(self.owner.stdout.readline())

    def end_fabric(self, *_: Any, **__: Any) -> None:
        """The supervisor ends, and what would take longer goes on."""
        os.kill(self.supervisor, signal.SIGKILL)
        time.sleep(5)

    def prompt(self) -> list[Failed]:
        return running.prompt_beside(Process(self.owner.pid), PLAN, lambda *_: None, ["h0 true"])


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    monkeypatch.setattr(running, "needs_user_namespace", lambda: False)
    for name, stand_in in PROMPT.items():
        monkeypatch.setattr(prompt, name, stand_in)
    made = Tree()
    yield made
    os.killpg(made.owner.pid, signal.SIGKILL)
    made.owner.communicate()


FAILED = [Failed("h0 true: status 1", 1)]
PROMPT: dict[str, Callable[..., Any]] = {
    "Cables": lambda *_: None,
    "start_nodes": lambda *_, **__: SimpleNamespace(nameToNode={}),
    "describe_links": lambda *_: None,
    "_run_commands": lambda *_: FAILED,
}


def test_it_ends_with_the_supervisor_though_the_runs_own_process_goes_on(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt, "_run_commands", tree.end_fabric)
    with pytest.raises(RunError, match=OVER):
        tree.prompt()
    assert tree.owner.poll() is None


def test_it_says_so_when_the_run_ends_while_its_shells_start(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt, "start_nodes", tree.end_fabric)
    with pytest.raises(RunError, match=OVER):
        tree.prompt()


def refuse(*_: Any, **__: Any) -> None:
    raise FabricError("h0", "start a shell with mnexec", "no such file")


def test_a_shell_that_cannot_start_for_that_is_not_the_reason(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def start_nodes(*_: Any, **__: Any) -> None:
        os.kill(tree.supervisor, signal.SIGKILL)
        refuse()

    monkeypatch.setattr(prompt, "start_nodes", start_nodes)
    with pytest.raises(RunError, match=OVER):
        tree.prompt()


def test_a_shell_that_cannot_start_in_a_run_that_goes_on_is_the_reason(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_NEWS_S", 0)
    monkeypatch.setattr(prompt, "start_nodes", refuse)
    with pytest.raises(FabricError, match="no such file"):
        tree.prompt()


def test_a_run_that_ends_while_its_shells_are_ended_stops_none_of_that(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []

    def terminate() -> None:
        if not ended:
            os.kill(tree.supervisor, signal.SIGKILL)
            time.sleep(0.3)
        ended.append(True)

    def made(name: str, *_: Any) -> SimpleNamespace:
        return SimpleNamespace(name=name, address=None, await_shell=lambda: None, terminate=terminate)

    two = cast(Plan, SimpleNamespace(node_names=["h0", "h0-too"], hosts=[]))
    monkeypatch.setattr(nodes, "FabricNode", made)
    monkeypatch.setattr(prompt, "start_nodes", lambda _, **more: nodes.start_nodes(two, **more))
    assert tree.prompt() == FAILED
    assert len(ended) == 2
