"""The network in virtual time with one host whose endpoint is a program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mrc_testbed.testbed.interop.network import JudgedProgram, plugin_fields
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.virtual_world import VirtualWorld
from mrc_testbed.testbed.runner.world import HostProcess, OnEvent
from mrc_testbed.testbed.scenario import Scenario

SUBJECT_HOST = "h0"
"""Where the program is."""


class SubjectProcess:
    """The host of the program: as any other, but for what `configure` says."""

    def __init__(self, host: HostProcess, subject: JudgedProgram) -> None:
        self._host = host
        self._subject = subject
        self.answers = host.answers

    @property
    def stopped(self) -> bool:
        """As of any host."""
        return self._host.stopped

    @stopped.setter
    def stopped(self, value: bool) -> None:
        self._host.stopped = value

    def request(self, command: str, **fields: Any) -> int:
        """As of any host."""
        own = plugin_fields(self._subject) if command == "configure" else {}
        return self._host.request(command, **{**fields, **own})

    def close(self) -> None:
        """The program is ended by who started it."""
        self._host.close()


class InteropWorld(VirtualWorld):
    """`subject`: the program of the host SUBJECT_HOST."""

    def __init__(self, scenario: Scenario, subject: JudgedProgram) -> None:
        super().__init__(scenario)
        self._subject = subject

    def host_processes(self, hosts: Iterable[str], recorder: Recorder, on_event: OnEvent) -> dict[str, Any]:
        """As of any virtual world."""
        processes: dict[str, Any] = dict(super().host_processes(hosts, recorder, on_event))
        processes[SUBJECT_HOST] = SubjectProcess(processes[SUBJECT_HOST], self._subject)
        return processes
