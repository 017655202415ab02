"""Mininet's prompt on nodes that are there: typed at, piped into, or given single commands."""

from __future__ import annotations

import cmd
import contextlib
import logging
import select
import signal
import sys
from collections.abc import Iterable

from mininet.cli import CLI

from testbed.fabric.mininet_parts import Mininet, Node, log


class Prompt(CLI):  # type: ignore[misc]
    """Mininet's prompt, for names with hyphens, with answers on stdout.

    `failed` is the last command that ended with a status other than 0 or that nobody knows, with the reason.
    """

    identchars = CLI.identchars + "-"
    readlineInited = True  # noqa: N815 (Mininet's name; else it would write ~/.mininet_history)
    failed = ""

    def default(self, line: str) -> None:
        """A command on a node, or one that is not known."""
        super().default(line)
        name, arguments, _ = self.parseline(line)
        if name not in self.mn:
            self.failed = f"{line}: unknown command; NODE COMMAND, or one that `help` lists"
        elif not arguments:
            self.failed = f"{line}: has no command for {name}"
        elif (status := self.mn[name].cmd("echo $?").strip()) != "0":
            self.failed = f"{line}: status {status}"

    def waitForNode(self, node: Node) -> None:  # noqa: N802 (Mininet's name)
        """Print what the command prints, until it has ended.

        What is typed meanwhile goes to the command. What comes from a file or a pipe does not: those are the commands
        that follow.
        """
        if self.isatty():
            super().waitForNode(node)
            return
        output = select.poll()
        output.register(node.stdout, select.POLLIN)
        while node.waiting:
            try:
                output.poll()
                log.output(node.monitor())
            except KeyboardInterrupt:
                node.sendInt()


class _Script(Prompt):
    """The prompt's commands without the prompt."""

    def __init__(self, net: Mininet) -> None:
        self.mn, self.locals, self.inputFile = net, {"net": net}, None
        cmd.Cmd.__init__(self)

    def isatty(self) -> bool:
        """Nobody types into a single command."""
        return False


def prompt(net: Mininet) -> None:
    """Mininet's interactive prompt, until the user leaves it or nobody reads its output any more."""
    _answer_on_stdout("info")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # here Ctrl-C ends a command, and then the next one
    with contextlib.suppress(BrokenPipeError):
        Prompt(net)


def run_commands(net: Mininet, commands: Iterable[str]) -> str:
    """Run commands as the prompt does, up to the first that fails. Returns which one failed and why, or nothing."""
    _answer_on_stdout("output")
    script = _Script(net)
    for command in commands:
        script.onecmd(command)
        if script.failed:
            break
    return script.failed


def _answer_on_stdout(level: str) -> None:
    logging.raiseExceptions = False
    for handler in log.lg.handlers:
        handler.setStream(sys.stdout)
    log.setLogLevel(level)
