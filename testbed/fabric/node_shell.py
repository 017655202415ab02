"""A shell that runs one command after the other and says how each ended, whatever the command prints or reads.

Its commands come by a pipe, where a line may have any length. What they print goes to a terminal of its own, because
programs that write to one do not hold their output back.
"""

from __future__ import annotations

import codecs
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Sequence

from mrc_testbed.testbed.errors import FabricError

_START_MS = 20_000
_LAST_S = 1
"""What a shell has, after its terminal is gone, to leave by itself."""
_AT_ONCE_BYTES = 4096
_RUBOUT = "\x7f"
"""Begins what the shell prints as its prompt, as in Mininet."""
_TELL = "_mrc_testbed_status"
_ECHO, _LOCAL_FLAGS = termios.ECHO, 3


class NodeShell:
    """A bash, started by the words of `enter`, which must make it the leader of a session. `name` is its last argument.

    `waiting`: a command is running. `status`: how the last one ended, as in the shell's `$?`. `ended`: the shell itself
    has, and runs no more commands. It is usable after `await_start`.
    """

    def __init__(self, name: str, enter: Sequence[str]) -> None:
        self.waiting, self.ended, self.status = True, False, 0
        self._name, self._held = name, ""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        secret = os.urandom(8).hex()  # or a command could print the prompt
        self._mark = f"{_RUBOUT}{secret}"
        self._told = re.compile(f"{self._mark}(?:=(\\d+)|:(\\d+):(\\d+)){_RUBOUT}")
        self._told_status: int | None = None
        self._number = ""
        self.terminal, theirs = pty.openpty()
        commands, self._commands = os.pipe()
        _echo_off(theirs)
        prompts = {"PS1": f"{self._mark}:$?:\\#{_RUBOUT}", "PS2": "", "PROMPT_COMMAND": ""}
        environment = {**os.environ, **_plain_where_unseen(), **prompts, "HISTFILE": ""}
        self.process = subprocess.Popen(
            [*enter, "bash", "--norc", "--noediting", "+m", "-is", name],
            stdin=commands, stdout=theirs, stderr=theirs, env=environment, close_fds=False,
        )  # fmt: skip
        os.close(commands)
        os.close(theirs)  # so that the terminal ends with the last process that has it
        self._process = os.pidfd_open(self.process.pid)
        self._ready = select.poll()
        for source in (self.terminal, self._process):
            self._ready.register(source, select.POLLIN)

    def await_start(self) -> None:
        """Wait until the shell takes commands. Raises FabricError if it exits or stays silent."""
        self._await_prompt()
        tell = f"printf '{self._mark}=%d{_RUBOUT}' $1 >&2; return $1"
        # Not for what it starts: a shell in this shell would print the same prompts.
        self._write(f"{_TELL}() {{ {tell}; }}; export -n PS1 PS2 PROMPT_COMMAND")
        self.waiting = True
        self._await_prompt()

    def _await_prompt(self) -> None:
        seen = ""
        while self.waiting:
            said = self.read(_START_MS)
            seen += said
            if self.ended or (self.waiting and not said):
                raise FabricError(self._name, "start a shell", seen.strip() or "no answer")

    def send(self, command: str, typed: bool) -> None:
        """Start a command. It reads the terminal where someone types into that, else it finds the end of its input."""
        self.waiting = True
        source = "<&1" if typed else "</dev/null"
        self._write(f"eval {shlex.quote(command)} {source}; {_TELL} $?")

    def _write(self, line: str) -> None:
        left = os.fsencode(f"{line}\n")
        while left:
            left = left[os.write(self._commands, left) :]

    def read(self, timeout_ms: int | None = None) -> str:
        """What the command has printed since the last call; empty after the timeout. `waiting` tells if it is over."""
        said, over = self._receive(timeout_ms)
        self._held += said
        if over:
            self.waiting, self.ended = False, True
            self.status = shown_status(self.process.wait())
        while told := self._told.search(self._held):
            self._held = self._held[: told.start()] + self._held[told.end() :]
            self._learn(*told.groups())
        return self._take()

    def _learn(self, told: str | None, status: str | None, number: str | None) -> None:
        """A command is over when its prompt is there. Its status comes before that, unless Ctrl-C has ended the whole
        line; then the prompt has it. A prompt may come again, after an interrupt, and where quotes are left open bash
        prints the one before: so it counts if its number is new, or behind a status."""
        if told is not None:
            self._told_status = int(told)
        elif status is not None and number is not None and (self._told_status is not None or number != self._number):
            self.status = int(status) if self._told_status is None else self._told_status
            self.waiting, self._told_status, self._number = False, None, number

    def _receive(self, timeout_ms: int | None) -> tuple[str, bool]:
        """What is there, and whether the shell has ended with nothing left to read."""
        ready = {source for source, _ in self._ready.poll(timeout_ms)}
        if self.terminal in ready:
            try:
                if read := os.read(self.terminal, _AT_ONCE_BYTES):
                    return self._decode(read), False
            except OSError:  # nobody has the other end any more
                return "", True
        return "", self._process in ready

    def _take(self) -> str:
        """All that is held, but the beginning of what may become a prompt."""
        at = self._held.rfind(_RUBOUT) if self.waiting else -1
        tail = self._held[at:] if at >= 0 else ""
        is_part = tail and (self._mark.startswith(tail) or tail.startswith(self._mark))
        taken, self._held = (self._held[:at], tail) if is_part else (self._held, "")
        return taken

    def type(self, text: str) -> None:
        """What someone types at the terminal, for the command that is running."""
        os.write(self.terminal, os.fsencode(text))

    def fileno(self) -> int:
        """The descriptor of the terminal."""
        return self.terminal

    def watch(self, poll: select.poll) -> None:
        """Have `poll` return when `read` has something to say."""
        for source in (self.terminal, self._process):
            poll.register(source, select.POLLIN)

    def interrupt(self) -> None:
        """Ctrl-C for the command that is running. A shell that is reading its next one would lose a part of it."""
        if self.waiting:
            self._signal(signal.SIGINT)

    def end(self) -> None:
        """End the shell and what still runs in it, and close its terminal."""
        self._signal(signal.SIGHUP)
        for file in (self.terminal, self._commands, self._process):
            os.close(file)
        try:
            self.process.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return  # nothing is left of it


def shown_status(code: int) -> int:
    """As a shell shows it: 128 + N for signal N."""
    return code if code >= 0 else 128 - code


def _plain_where_unseen() -> dict[str, str]:
    """Disables colours: a node's shell has a terminal, where newer `ip` and `tc` print in colour even into a file."""
    return {} if sys.stdout.isatty() else {"NO_COLOR": "1"}


def _echo_off(terminal: int) -> None:
    """Without this what is typed for a command would appear twice."""
    settings = termios.tcgetattr(terminal)
    settings[_LOCAL_FLAGS] &= ~_ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
