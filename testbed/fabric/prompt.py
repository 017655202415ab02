"""Mininet's prompt on nodes that are there: typed at, piped into, or given single commands."""

from __future__ import annotations

import cmd
import contextlib
import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mininet.cli import CLI
from mininet.util import quietRun

from mrc_testbed.testbed.errors import ExitCode, TestbedError
from mrc_testbed.testbed.fabric.cables import Cables
from mrc_testbed.testbed.fabric.mininet_parts import Mininet, Node, log
from mrc_testbed.testbed.fabric.node_shell import shown_status
from mrc_testbed.testbed.fabric.nodes import FabricNode, ShellsOf, describe_links, start_nodes
from mrc_testbed.testbed.fabric.prober import KernelProber
from mrc_testbed.testbed.fabric.processes import Process
from mrc_testbed.testbed.fabric.switch_reading import SwitchReader
from mrc_testbed.testbed.interrupts import ignored_by_wish
from mrc_testbed.testbed.oam.commands import carry_out, is_ours, read
from mrc_testbed.testbed.switchview.show import as_json, shown, view_named
from mrc_testbed.testbed.switchview.views import VIEWS
from mrc_testbed.testbed.terminal import say
from mrc_testbed.topos.plan import Plan

_TYPED_BYTES = 1024
_END_OF_INPUT = "\x04"


NoteAsked = Callable[[str, int], None]


def _noted_nowhere(_host: str, _packets: int) -> None:
    return


class Failed(NamedTuple):
    """A command that did not end well. `status`: its own, or 1 where the prompt refused it."""

    why: str
    status: int


class Prompt(CLI):  # type: ignore[misc]
    """Mininet's prompt, for names with hyphens, with answers on stdout.

    `failed`: how the last command failed, if it did. `cables`: what changes links and switches. `reader`: what `show`
    asks. `note_asked`: told how many packets a host has sent to ask switches.
    """

    identchars = CLI.identchars + "-"
    readlineInited = True  # noqa: N815 (Mininet's name; else it would write ~/.mininet_history)
    failed: Failed | None = None

    def __init__(self, net: Mininet, cables: Cables, reader: SwitchReader, note_asked: NoteAsked) -> None:
        self.cables, self.reader, self.note_asked = cables, reader, note_asked
        super().__init__(net)

    def onecmd(self, line: str) -> Any:
        """A command, and what comes of it. An error of ours is one line, and the prompt goes on."""
        self.failed = None
        try:
            return super().onecmd(line)
        except TestbedError as error:
            self._refuse(line, str(error))
            return None

    def _refuse(self, line: str, why: str) -> None:
        self.failed = Failed(f"{line}: {why}", ExitCode.FAIL)
        self.tell(why)

    def tell(self, why: str) -> None:
        """Say what no command says itself."""
        say(f"*** {why}")

    def default(self, line: str) -> None:
        """A command on a node, or one that is not known."""
        name, arguments, _ = self.parseline(line)
        if is_ours(self.cables.plan, line.split()):
            self._ended(line, self._ask(line.split()))
        elif name not in self.mn:
            self._refuse(line, "unknown command; NODE COMMAND, or one that `help` lists")
        elif not arguments:
            self._refuse(line, f"has no command for {name}")
        else:
            node: FabricNode = self.mn[name]
            node.typed = self.isatty()
            super().default(line)
            self._ended(line, node.live_shell.status)
            if node.live_shell.ended:
                self.tell(f"the shell of {name} has ended, here is a new one")
                node.renew_shell()

    def _ask(self, words: Sequence[str]) -> int:
        """Ping and trace of switches. Raises UsageError, FabricError."""
        plan = self.cables.plan
        command = read(plan, words)
        with contextlib.closing(KernelProber(plan, plan.host_by_name[words[0]], self.mn[words[0]].pid)) as prober:
            try:
                return carry_out(command, prober, plan, say)
            except KeyboardInterrupt:
                self.interrupted()
                return ExitCode.INTERRUPTED
            finally:
                self.note_asked(words[0], prober.sent)

    def _ended(self, line: str, status: int) -> None:
        """A command has ended; one that failed has said why, where it wanted to."""
        if status:
            self.failed = Failed(f"{line}: status {status}", status)

    def waitForNode(self, node: Node) -> None:  # noqa: N802 (Mininet's name)
        """Print what the command prints, until it has ended.

        What is typed meanwhile goes to the command. What comes from a file or a pipe does not: those are the commands
        that follow.
        """
        sources = select.poll()
        node.watch(sources)
        keys = self.stdin.fileno() if self.isatty() else None
        if keys is not None:
            quietRun("stty -icanon min 1")
            sources.register(keys, select.POLLIN)
        while node.waiting:
            try:
                ready = {source for source, _ in sources.poll()}
                if keys in ready:
                    self._pass_on(keys, node, sources)
                if ready - {keys}:
                    log.output(node.monitor(0))
            except KeyboardInterrupt:
                node.sendInt()
                self.interrupted()

    @staticmethod
    def _pass_on(keys: int, node: Node, sources: select.poll) -> None:
        typed = os.read(keys, _TYPED_BYTES).decode(errors="replace")
        if not typed:  # the terminal is gone
            sources.unregister(keys)
        node.write(typed or _END_OF_INPUT)

    def interrupted(self) -> None:
        """Ctrl-C has ended a command; at a prompt the next one can be given."""

    def do_link(self, line: str) -> None:
        """Cut the link between two nodes, or bring it back with its routes.
        Usage: link NODE NODE up|down"""
        self._change(line, "link NODE NODE up|down", 2, {"up": self.cables.up, "down": self.cables.down})

    def do_switch(self, line: str) -> None:
        """Take a switch's ports down and its table away, or bring both back.
        Usage: switch NAME start|stop"""
        self._change(line, "switch NAME start|stop", 1, {"start": self.cables.on, "stop": self.cables.off})

    def _change(self, line: str, usage: str, names: int, changes: dict[str, Callable[..., None]]) -> None:
        words = line.split()
        if len(words) != names + 1 or words[-1] not in changes:
            self._refuse(self.lastcmd or line, f"usage: {usage}")
            return
        changes[words[-1]](*words[:-1])

    def do_show(self, line: str) -> None:
        """What a switch has counted, under the names of switch operators.
        Usage: show SWITCH VIEW [-j], as in show p0-t0-0 queue counters"""
        words = [word for word in line.split() if word != "-j"]
        if not words:
            self._refuse("show", f"usage: show SWITCH VIEW [-j]; views: {', '.join(VIEWS)}")
            return
        if words[0] not in self.reader.plan.switch_by_name:
            self._refuse(f"show {line}", f"{words[0]} is no switch")
            return
        view = view_named(words[1:])
        render = as_json if "-j" in line.split() else shown
        log.output(f"{render(self.reader.reading(words[0]), view)}\n")

    def do_sh(self, line: str) -> None:
        """Run a command outside of the fabric.
        Usage: sh COMMAND"""
        ran = subprocess.run(["sh", "-c", line], stdin=None if self.isatty() else subprocess.DEVNULL, check=False)
        self._ended(f"sh {line}", shown_status(ran.returncode))

    def do_dpctl(self, line: str) -> None:
        """There is no OpenFlow here."""
        self._refuse(f"dpctl {line}", "the switches here are kernels, without OpenFlow: `NODE ip -6 route`")

    def do_wait(self, line: str) -> None:
        """There is no controller to wait for."""
        self._refuse(f"wait {line}", "no switch here has a controller")


class _Script(Prompt):
    """The prompt's commands without the prompt."""

    def __init__(self, net: Mininet, cables: Cables, reader: SwitchReader, note_asked: NoteAsked) -> None:
        self.cables, self.reader, self.note_asked = cables, reader, note_asked
        self.mn, self.locals, self.inputFile = net, {"net": net}, None
        cmd.Cmd.__init__(self)

    def isatty(self) -> bool:
        """Nobody types into a single command."""
        return False

    def tell(self, why: str) -> None:
        """Who runs the commands says what failed."""

    def interrupted(self) -> None:
        """Ctrl-C ends all of them."""
        raise KeyboardInterrupt


def prompt_on(
    reader_of: Callable[[Mapping[str, int]], SwitchReader],
    plan: Plan,
    beside: Mapping[str, Process],
    started: contextlib.ExitStack,
    commands: Sequence[str] = (),
    addresses: Mapping[str, str] | None = None,
    note_asked: NoteAsked = _noted_nowhere,
) -> list[Failed]:
    """Mininet's prompt in shells of its own, in the namespaces of processes `beside`; or single commands as it runs
    them. `reader_of`: makes what `show` asks, of processes that hold the nodes. `addresses`: what the names of hosts
    mean, where that is not their address in the fabric. `note_asked`: told how many packets a host has sent to ask
    switches.

    It ends when the user leaves it, nobody reads its output any more, or by SIGTERM or SIGHUP; its shells end with
    `started`. Returns those single commands that failed.
    """
    with _ended_by_signals():
        net = start_nodes(plan, beside=beside, started=started, addresses=addresses)
        pids = ShellsOf(net)
        cables, reader = Cables(plan, pids), reader_of(pids)
        describe_links(net, plan)
        if commands:
            return _run_commands(_Script(net, cables, reader, note_asked), commands)
        _answer_on_stdout("info")
        signal.signal(signal.SIGINT, signal.default_int_handler)  # here Ctrl-C ends a command, and then the next one
        with contextlib.suppress(BrokenPipeError):
            Prompt(net, cables, reader, note_asked)
    return []


def _run_commands(script: _Script, commands: Iterable[str]) -> list[Failed]:
    """As the prompt does, one after the other, whatever comes of them."""
    _answer_on_stdout("output")
    failed = []
    for command in commands:
        script.onecmd(command)
        if script.failed is not None:
            say(f"mrc-testbed: {script.failed.why}", err=True)
            failed.append(script.failed)
    return failed


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the prompt, whatever command is running; Ctrl-C is for that command."""

    def end(number: int, _frame: object) -> None:
        for each in ending:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(ExitCode.INTERRUPTED)

    ending = [each for each in (signal.SIGTERM, signal.SIGHUP) if not ignored_by_wish(each)]
    before = {each: signal.signal(each, end) for each in ending}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _answer_on_stdout(level: str) -> None:
    logging.raiseExceptions = False
    for handler in log.lg.handlers:
        handler.setStream(sys.stdout)
    log.setLogLevel(level)
