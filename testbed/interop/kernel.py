"""The network on the kernel with one host whose daemon is a program of form B."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.fabric.capabilities import Capability
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.forker import Child
from mrc_testbed.testbed.interop.channel import (
    last_words,
    read_fields,
    read_hello,
    refuse_unsupported,
    start_on_channel,
)
from mrc_testbed.testbed.interop.entries import ListedProgram
from mrc_testbed.testbed.interop.program import ANSWER_S, MOST_LINE_BYTES, ContractFailure, Unsupported
from mrc_testbed.testbed.interop.world import SUBJECT_HOST
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.daemon import DaemonProcess
from mrc_testbed.testbed.runner.kernel_world import KernelWorld
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.world import OnEvent
from mrc_testbed.testbed.switching.options import FabricOptions

_MOST_BYTES = 64 << 20
"""Of all lines of a run; our own daemon says less than 1 MiB in one of these."""
_UNKNOWN = {"wakeups": 0, "p50_ns": None, "p99_ns": None, "max_ns": None}
"""How late it is, it alone knows, so nobody does."""


@dataclass
class ProgramReport:
    """What the run learned of the program: the name that it gives itself, and why the run ended by it."""

    says: str = ""
    broken: str = ""
    unsupported: str = ""


class ForeignDaemon(DaemonProcess):
    """The program, as the runner sees a daemon. Whatever it says wrong ends the run with one line."""

    def __init__(
        self,
        entry: ListedProgram,
        report: ProgramReport,
        fabric: Fabric,
        loop: Loop,
        recorder: Recorder,
        on_event: OnEvent,
    ) -> None:
        self._entry = entry
        self._report = report
        self._said_bytes = 0
        self._asked: dict[int, str] = {}
        super().__init__(SUBJECT_HOST, fabric, loop, recorder, on_event)
        loop.at(loop.now_ns() + int(ANSWER_S * 1e9), self._require_hello)

    def _start(self, fabric: Fabric, control: int, log: IO[bytes]) -> Child:
        network = fabric.network(self.name)
        try:
            self._kept = start_on_channel(self._entry.command, self._entry.folder, control, log, network)
        except ContractFailure as failure:
            self._report.broken = str(failure)
            raise RunError(f"{self.name}: {failure}") from None
        finally:
            os.close(network)
        self._kept.process.returncode = 0  # it is waited for by its number, as all daemons are
        return Child(self._kept.process.pid)

    def request(self, command: str, **fields: Any) -> int:
        """As of any daemon."""
        number = super().request(command, **fields)
        self._asked[number] = command
        return number

    def _require_hello(self) -> None:
        if not self._report.says and not self.stopped:
            raise self._broken(f"gave no line for its first line within {ANSWER_S:g} s")

    def _readable(self) -> None:
        super()._readable()
        if len(self._received) > MOST_LINE_BYTES:
            raise self._broken(f"a line is longer than {MOST_LINE_BYTES >> 20} MiB")

    def _fields(self, line: bytes) -> dict[str, Any]:
        self._said_bytes += len(line)
        if self._said_bytes > _MOST_BYTES:
            raise self._broken(f"said more than {_MOST_BYTES >> 20} MiB in a run")
        try:
            return read_fields(line)
        except ContractFailure as failure:
            raise self._broken(str(failure)) from None

    def _take(self, message: dict[str, Any]) -> None:
        try:
            if not self._report.says:
                self._report.says = read_hello(message)
            elif "id" in message:
                self._take_answer(message)
            else:
                super()._take(message)
        except Unsupported as lacking:
            self._report.unsupported = str(lacking)
            raise RunError(f"{self.name}: {lacking}") from None
        except ContractFailure as failure:
            raise self._broken(str(failure)) from None
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise self._broken(f"said what cannot be: {type(error).__name__} {error}: {str(message)[:120]}") from None

    def _take_answer(self, message: dict[str, Any]) -> None:
        command = self._asked.pop(message["id"], None)
        if command is None or not isinstance(message.get("ok"), bool):
            raise ContractFailure(f'an answer must have "id" of a request and "ok", not {str(message)[:80]}')
        refuse_unsupported(command, message)
        if command == "stats" and message["ok"]:
            message["lateness"] = _UNKNOWN
        super()._take(message)

    def death(self) -> RunError:
        """As of any daemon; it is the program's."""
        error = super().death()
        self._report.broken = self._report.broken or str(error)
        return error

    def _broken(self, text: str) -> RunError:
        self._report.broken = f"{text}{last_words(self._log)}"
        return RunError(f"{self.name}: {self._report.broken}")


class ForeignWorld(KernelWorld):
    """`entry`: the program of the host SUBJECT_HOST."""

    def __init__(self, found: Iterable[Capability], options: FabricOptions, entry: ListedProgram) -> None:
        super().__init__(list(found), options)
        self._entry = entry
        self.report = ProgramReport()

    def host_processes(self, hosts: Iterable[str], recorder: Recorder, on_event: OnEvent) -> dict[str, DaemonProcess]:
        """As of any world on the kernel, but for that host."""
        foreign = partial(ForeignDaemon, self._entry, self.report)
        for host in hosts:
            make: Callable[..., DaemonProcess] = foreign if host == SUBJECT_HOST else partial(DaemonProcess, host)
            self._daemons[host] = make(self._fabric, self.loop, recorder, on_event)
        self._fabric.all_started()
        return self._daemons
