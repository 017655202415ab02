"""All daemons of a run: one request to each, all answers or an error that names the failed one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.world import HostProcess

_ANSWER_S = 30
"""Longest wait for an answer; starting 32 Python processes on 2 cores takes two seconds."""
_HINDER_S = 5
"""A daemon answers in milliseconds; the loop runs meanwhile."""


@dataclass(frozen=True)
class SentRequests:
    """A command that was sent: the number of each host's request."""

    command: str
    numbers: dict[str, int]


class Team:
    """The daemons by host, which answer while `loop` runs."""

    def __init__(self, daemons: Mapping[str, HostProcess], loop: Loop) -> None:
        self._loop = loop
        self.daemons = daemons

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
        return self.answers(self.send(command, fields, hosts), timeout_s)

    def send(
        self,
        command: str,
        fields: Callable[[str], dict[str, Any]] | None = None,
        hosts: Iterable[str] | None = None,
    ) -> SentRequests:
        """The first half of `ask`. Raises RunError naming a host that is dead."""
        numbers = {
            host: self.daemons[host].request(command, **(fields(host) if fields else {}))
            for host in (self.daemons if hosts is None else hosts)
        }
        return SentRequests(command, numbers)

    def answers(self, asked: SentRequests, timeout_s: float = _ANSWER_S) -> dict[str, dict[str, Any]]:
        """The other half, once. `timeout_s`: from now on. Raises RunError."""
        numbers = asked.numbers
        waiting = list(numbers)

        def all_answered() -> bool:  # asked very often: it looks at one host at a time
            while waiting and numbers[waiting[-1]] in self.daemons[waiting[-1]].answers:
                waiting.pop()
            return not waiting

        if not self._loop.run_until(all_answered, self._loop.now_ns() + int(timeout_s * 1e9)):
            missing = self._waiting(numbers)
            raise RunError(f"{', '.join(missing)}: no answer to `{asked.command}` within {timeout_s:g} s")
        answers = {host: self.daemons[host].answers.pop(number) for host, number in numbers.items()}
        for host, answer in answers.items():
            if not answer["ok"]:
                raise RunError(f"{host}: `{asked.command}` refused: {answer.get('error')}")
        return answers

    def _waiting(self, numbers: dict[str, int]) -> list[str]:
        return [host for host, number in numbers.items() if number not in self.daemons[host].answers]

    def stop(self) -> None:
        """Ask all daemons to exit."""
        for daemon in self.daemons.values():
            daemon.stopped = True
        self.ask("stop")

    def close(self) -> None:
        """Close all channels, which ends the remaining daemons."""
        for daemon in self.daemons.values():
            daemon.close()


def hinder(team: Team, host: str, held: bool, per_packet_ns: int) -> None:
    """A fault holds a host, slows it down, or lets it go; one that takes no part does nothing anyway. Raises
    RunError."""
    burden = {"held": held, "per_packet_ns": per_packet_ns}
    if host in team.daemons:
        team.ask("hinder", lambda _: burden, timeout_s=_HINDER_S, hosts=[host])
