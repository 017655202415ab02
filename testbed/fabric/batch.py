"""Runs `ip -batch` and `tc -batch` inside network namespaces in parallel, and turns a refusal into one clear error."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Mapping

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.sandbox import network_of

_FAILED = re.compile(r"Command failed (?:-|\S+):(\d+)")
IP = ("ip", "-6", "-batch", "-")
IP4 = ("ip", "-4", "-batch", "-")
TC = ("tc", "-batch", "-")
_NO_MEMORY = "Cannot allocate memory"
_ATTEMPTS = 100
_PAUSE_S = 0.01
"""Every encap route takes per-CPU memory that the kernel requests without sleeping (seg6_iptunnel, GFP_ATOMIC); a
worker refills the pool in the background. Thousands of routes at once outrun it and are refused for some milliseconds:
measured with 14 752 routes on 64 nodes. So a batch continues from the refused line."""


def run_batches(tool: tuple[str, ...], pids: Mapping[str, int], lines: Mapping[str, Iterable[str]]) -> None:
    """Feed each node's lines to `tool` in the namespace of its process, all nodes in parallel.

    Raises FabricError with the node, the failed line and the kernel's answer; later lines were not executed.
    """
    todo = {node: list(text) for node, text in lines.items()}
    for _ in range(_ATTEMPTS):
        todo = _run_once(tool, pids, todo)
        if not todo:
            return
        time.sleep(_PAUSE_S)
    node, text = next(iter(todo.items()))
    raise FabricError(node, f"{tool[0]} {text[0]}", f"the kernel had no memory for it in {_ATTEMPTS} attempts")


def _run_once(tool: tuple[str, ...], pids: Mapping[str, int], todo: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The remaining lines where the kernel was temporarily out of memory."""
    started = {node: _start(tool, pids[node], node, "\n".join(text)) for node, text in todo.items()}
    answers = {node: process.communicate()[1] for node, (process, _) in started.items()}
    left = {}
    for node, (process, text) in started.items():
        if process.returncode == 0:
            continue
        failed = _FAILED.search(answers[node])
        if failed is None or _NO_MEMORY not in answers[node]:
            raise _error(node, tool, text, answers[node])
        left[node] = todo[node][int(failed[1]) - 1 :]
    return left


def run_batch(tool: tuple[str, ...], node: str, pid: int, lines: Iterable[str]) -> None:
    """As run_batches, for one node."""
    run_batches(tool, {node: pid}, {node: lines})


def query(command: list[str], pids: Mapping[str, int], stdin: Mapping[str, str] | None = None) -> dict[str, str]:
    """The output of `command` in every node's namespace. Raises FabricError if it fails in one of them."""
    started = {node: _start(tuple(command), pid, node, (stdin or {}).get(node, "")) for node, pid in pids.items()}
    answers = {}
    for node, (process, text) in started.items():
        out, err = process.communicate()
        if process.returncode != 0:
            raise _error(node, tuple(command), text, err)
        answers[node] = out
    return answers


def _start(command: tuple[str, ...], pid: int, node: str, text: str) -> tuple[subprocess.Popen[str], str]:
    # The whole input is in memory before the process starts, so that many pipes need no feeding at once.
    descriptor = os.memfd_create("batch")
    with open(descriptor, "w+", encoding="ascii") as stdin:
        stdin.write(text + "\n")
        stdin.flush()
        stdin.seek(0)
        with network_of(pid, node):
            process = subprocess.Popen(
                command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, close_fds=False
            )
    return process, text


def _error(node: str, command: tuple[str, ...], text: str, stderr: str) -> FabricError:
    failed = _FAILED.search(stderr)
    action = " ".join(command)
    if failed:
        action = f"{command[0]} {text.splitlines()[int(failed[1]) - 1]}"
    detail = stderr.splitlines()[0].strip() if stderr.strip() else "failed without a message"
    return FabricError(node, action, detail)
