"""All daemons of a run: one request to each, all answers or an error that names the failed one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from testbed.errors import RunError
from testbed.fabric.fabric import Fabric
from testbed.rundir.recorder import Recorder
from testbed.runner.daemon import DaemonProcess
from testbed.runner.loop import Loop

_ANSWER_S = 30
"""Longest wait for an answer; starting 32 Python processes on 2 cores takes two seconds."""


class Team:
    """The daemons of `hosts`, started on `fabric`."""

    def __init__(
        self,
        hosts: Iterable[str],
        fabric: Fabric,
        loop: Loop,
        recorder: Recorder,
        on_event: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._loop = loop
        self.daemons = {host: DaemonProcess(host, fabric, loop, recorder, on_event) for host in hosts}

    @property
    def pids(self) -> dict[str, int]:
        """Process of each host's daemon."""
        return {host: daemon.process.pid for host, daemon in self.daemons.items()}

    def ask(
        self,
        command: str,
        fields: Callable[[str], dict[str, Any]] | None = None,
        timeout_s: float = _ANSWER_S,
        hosts: Iterable[str] | None = None,
    ) -> dict[str, dict[str, Any]]:
        """Send `command` to every daemon, or those of `hosts` (with `fields(host)`), and wait for all answers.

        The loop keeps running meanwhile, so a timer action may call this. Raises RunError naming a host that is dead,
        refused, or did not answer in time.
        """
        asked = {
            host: self.daemons[host].request(command, **(fields(host) if fields else {}))
            for host in (self.daemons if hosts is None else hosts)
        }
        self._loop.run_until(lambda: not self._waiting(asked), time.monotonic_ns() + int(timeout_s * 1e9))
        if missing := self._waiting(asked):
            raise RunError(f"{', '.join(missing)}: no answer to `{command}` within {timeout_s:g} s")
        answers = {host: self.daemons[host].answers.pop(number) for host, number in asked.items()}
        for host, answer in answers.items():
            if not answer["ok"]:
                raise RunError(f"{host}: `{command}` refused: {answer.get('error')}")
        return answers

    def _waiting(self, asked: dict[str, int]) -> list[str]:
        return [host for host, number in asked.items() if number not in self.daemons[host].answers]

    def stop(self) -> None:
        """Ask all daemons to exit."""
        for daemon in self.daemons.values():
            daemon.stopped = True
        self.ask("stop")

    def close(self) -> None:
        """Close all channels, which ends the remaining daemons."""
        for daemon in self.daemons.values():
            daemon.close()
