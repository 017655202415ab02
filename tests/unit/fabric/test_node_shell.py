"""The shell of a node, without a namespace: each command ends, and says how, whatever it prints or reads."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from mrc_testbed.testbed.fabric.node_shell import NodeShell

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nodes are Linux's")
_PATIENCE_S = 20
_PART_MS = 100


@pytest.fixture
def shell() -> Iterator[NodeShell]:
    started = NodeShell("node", ["setsid"])
    started.await_start()
    yield started
    started.end()


def said(shell: NodeShell, command: str = "", typed: bool = False) -> str:
    """What a command prints until it is over; without one, what the running one does."""
    if command:
        shell.send(command, typed)
    printed, deadline = "", time.monotonic() + _PATIENCE_S
    while shell.waiting:
        printed += shell.read(_PART_MS)
        assert time.monotonic() < deadline, f"{command!r} does not end, after {printed!r}"
    return printed.replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("command", "prints", "status"),
    [
        ("printf 'a\\177b\\n'", "a\x7fb\n", 0),
        ("printf '\\177'; false", "\x7f", 1),
        ("echo it's", "bash: unexpected EOF while looking for matching `''\n", 2),
        ("if true", "bash: syntax error: unexpected end of file\n", 2),
        ("cat", "", 0),
        ("cat; exec nonesuch", "bash: exec: nonesuch: not found\n", 127),
        ("kill -INT $$; echo never", "\n", 130),
        ("printf '\\377ok'", "\N{REPLACEMENT CHARACTER}ok", 0),
        (f"echo {'x' * 9000} | wc -c", "9001\n", 0),
        ("echo 'two\nlines'", "two\nlines\n", 0),
        ("echo hi!there", "hi!there\n", 0),
    ],
)
def test_a_command_ends_with_its_status_and_the_next_one_runs(
    shell: NodeShell, command: str, prints: str, status: int
) -> None:
    assert said(shell, command) == prints
    assert shell.status == status
    assert said(shell, "echo $? after") == f"{status} after\n"
    assert not shell.ended


@pytest.mark.parametrize(("command", "status"), [("exit 3", 3), ("kill -9 $$", 137), ("sleep 100 & exit 0", 0)])
def test_the_end_of_the_shell_itself_ends_the_command(shell: NodeShell, command: str, status: int) -> None:
    said(shell, command)
    assert (shell.ended, shell.status) == (True, status)


def test_what_is_typed_goes_to_the_command(shell: NodeShell) -> None:
    shell.send("read line; echo got $line", typed=True)
    shell.type("this\n")
    assert said(shell) == "got this\n"


def test_an_interrupt_ends_the_command_and_not_the_shell(shell: NodeShell) -> None:
    shell.send("sh -c 'echo started; exec sleep 1000'", typed=False)
    while "started" not in shell.read(_PART_MS):
        pass
    shell.interrupt()
    said(shell)
    assert (shell.ended, shell.status) == (False, 130)
    shell.interrupt()
    assert said(shell, "echo next") == "next\n"


def test_a_shell_in_the_shell_does_not_know_the_prompt(shell: NodeShell) -> None:
    assert said(shell, "env | grep -c -e ^PS1 -e ^PROMPT_COMMAND") == "0\n"


def test_state_stays_from_command_to_command(shell: NodeShell) -> None:
    said(shell, "cd /; known=5; sleep 1000 &")
    assert said(shell, "pwd; echo $known; kill %1") == "/\n5\n"
