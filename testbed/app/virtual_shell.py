"""`mrc-testbed shell` of a scenario in virtual time: a prompt with what needs no node to enter."""

from __future__ import annotations

import cmd
from collections.abc import Callable, Sequence

from mrc_testbed.testbed.errors import ExitCode, TestbedError, UsageError
from mrc_testbed.testbed.oam.commands import USAGE, carry_out, is_ours, read
from mrc_testbed.testbed.report.console import open_console
from mrc_testbed.testbed.runner.virtual_world import virtual_options
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.terminal import say
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.prober import VirtualProber
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos.nodes import Link
from mrc_testbed.topos.plan import Plan

_LINK, _SWITCH = "link NODE NODE up|down", "switch NAME start|stop"
_USAGE = (*USAGE.values(), _LINK, _SWITCH, "exit")


def open_virtual_shell(scenario: Scenario, commands: Sequence[str] = ()) -> int:
    """Build, prompt or carry out single commands. Returns the exit code: that of the first command that failed."""
    plan = scenario.plan(prompt=True)
    asked = _Commands(plan, virtual_options(scenario), scenario.seed)
    if not commands:
        shape = plan.shape
        welcome = f"{shape.hosts} hosts, {shape.switches} switches, {shape.links} links, in virtual time."
        open_console().print(f"{welcome}\n{_help()}", soft_wrap=True)
        VirtualPrompt(asked).cmdloop()
        return ExitCode.PASS
    failed = [status for line in commands if (status := _status_of(asked, line))]
    return failed[0] if failed else ExitCode.PASS


def _help() -> str:
    return "Commands:  " + "    ".join(_USAGE)


def _status_of(asked: _Commands, line: str) -> int:
    """A single command, which says on standard error that it has failed, and why."""
    try:
        status, why = asked.carry_out(line), ""
    except TestbedError as error:
        status, why = ExitCode.FAIL, str(error)
    if status:
        say(f"mrc-testbed: {line}: {why or f'status {status}'}", err=True)
    return status


class _Commands:
    """What can be done with a fabric in virtual time."""

    def __init__(self, plan: Plan, options: FabricOptions, seed: int) -> None:
        scheduler = Scheduler()
        self._plan = plan
        self._fabric = VirtualFabric(plan, options, scheduler, seed)
        self._prober = VirtualProber(self._fabric, scheduler)

    def carry_out(self, line: str) -> int:
        """One command. Returns its status. Raises UsageError."""
        words = line.split()
        if is_ours(self._plan, words):
            return carry_out(read(self._plan, words), self._prober, self._plan, say)
        if words[:1] == ["link"]:
            self._change(words, _LINK, {"up": self._link_up, "down": self._link_down})
        elif words[:1] == ["switch"]:
            self._change(words, _SWITCH, {"start": self._switch_on, "stop": self._switch_off})
        else:
            raise UsageError(f"virtual time has no nodes to enter (`--set world=kernel` has). {_help()}")
        return 0

    def _change(self, words: list[str], usage: str, changes: dict[str, Callable[..., None]]) -> None:
        if len(words) != len(usage.split()) or words[-1] not in changes:
            raise UsageError(f"usage: {usage}")
        changes[words[-1]](*words[1:-1])

    def _link_up(self, one: str, other: str) -> None:
        self._fabric.ports_up(self._link(one, other).ends)

    def _link_down(self, one: str, other: str) -> None:
        self._fabric.ports_down([self._link(one, other).far])

    def _link(self, one: str, other: str) -> Link:
        try:
            return self._plan.link_between(one, other)
        except KeyError:
            raise UsageError(f"no link between {one} and {other}") from None

    def _switch_on(self, name: str) -> None:
        self._fabric.switch_on(self._switch(name), [own for own, _ in self._plan.ports[name]])

    def _switch_off(self, name: str) -> None:
        self._fabric.switch_off(self._switch(name))

    def _switch(self, name: str) -> str:
        if name not in self._plan.switch_by_name:
            raise UsageError(f"no switch {name}")
        return name


class VirtualPrompt(cmd.Cmd):
    """Reads commands, and says what comes of them. It ends with `exit`, `quit` or the end of its input."""

    prompt = "virtual> "

    def __init__(self, asked: _Commands) -> None:
        super().__init__()
        self._asked = asked

    def onecmd(self, line: str) -> bool:
        """An error of ours is one line, and the prompt goes on."""
        word = line.strip()
        if word in ("exit", "quit", "EOF"):
            return True
        if word in ("help", "?"):
            say(_help())
        elif word:
            self._say_what_comes(line)
        return False

    def _say_what_comes(self, line: str) -> None:
        try:
            self._asked.carry_out(line)
        except TestbedError as error:
            say(f"*** {error}")
