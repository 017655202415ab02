"""The programs of the user in a run: started together, listened to, and ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator
from typing import Any

from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.results import PROGRAMS_FOLDER
from mrc_testbed.testbed.rundir.tables import KILLED, PRINTED, PROGRAMS, STOPPED, PrintedValue, ProgramEnd
from mrc_testbed.testbed.runner.events import Note, ProgramsRun
from mrc_testbed.testbed.runner.launching import Launched, NetworkOf, Watched, families
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.process_limit import bound_processes
from mrc_testbed.testbed.runner.program_output import TOLD_NS, Output
from mrc_testbed.testbed.runner.program_spec import ProgramSpec
from mrc_testbed.testbed.runner.progress import Progress
from mrc_testbed.testbed.scenario.model.programs import UNNAMED_FIGURE

GRACE_NS = 5 * 10**9
"""After one program of a job failed, the others have this time to end by themselves."""
MOST_PROCESSES = 512
"""Of one program, with all that it starts."""
_TOLD_NS, _GLANCE_NS = 10**9, 10**8
_READ_BYTES = 1 << 16
"""As much as a pipe holds."""
_TURN_NS, _REST_NS = 2_000_000, 2_000_000
"""A program that prints without end is read for so long, and then waits: the schedule of faults goes on meanwhile."""

OnEvent = Callable[[str, dict[str, Any]], None]


class RunningPrograms:
    """All programs of a run. `on_event`: takes a step that a program has made, as a daemon tells of one."""

    def __init__(
        self,
        specs: list[ProgramSpec],
        loop: Loop,
        recorder: Recorder,
        progress: Progress,
        on_event: OnEvent,
    ) -> None:
        self._loop = loop
        self._recorder = recorder
        self._progress = progress
        self._on_event = on_event
        self._specs = specs
        self._running: list[_Running] = []
        self._start_ns = 0
        self._printed: dict[str, tuple[str, float]] = {}
        """Of each figure the last value, and who printed it."""

    def prepare(self, fabric: NetworkOf) -> None:
        """Start all processes up to the point at which they become the programs."""
        for spec in self._specs:
            read = bool(spec.entry.step or spec.entry.begin or spec.entry.metric)
            output = Output(self._recorder.binary(f"{PROGRAMS_FOLDER}/{spec.host}.log"), read)
            self._running.append(_Running(spec, fabric, output))

    def start_at(self, start_ns: int) -> None:
        """Let them go at this time. Without any nobody looks at processes."""
        if self._specs:
            bound_processes(len(self._specs))
            self._loop.at(start_ns, self._start)

    def _start(self) -> None:
        self._start_ns = self._loop.now_ns()
        self._loop.every(_TOLD_NS, self._look, self._start_ns + _TOLD_NS)
        self._loop.every(_GLANCE_NS, self._glance, self._start_ns + _GLANCE_NS)
        for one in self._running:
            one.launched.go()
            self._loop.watch(one.output_end, lambda one=one: self._read(one))  # type: ignore[misc, arg-type]
            one.rests = False
            self._loop.watch(one.launched.end, lambda one=one: self._ended(one))  # type: ignore[misc, arg-type]
            one.watched = True
            timeout_ns = one.spec.entry.timeout_ns
            late = f"was killed: it was not done within its timeout of {timeout_ns / 1e9:g} s"
            self._loop.at(self._start_ns + timeout_ns, lambda one=one, late=late: self._kill(one, late))  # type: ignore[misc]

    def process_on(self, host: str) -> int | None:
        """The process of the program that runs there now."""
        running = (one for one in self._running if one.spec.host == host and self._start_ns and not one.ended)
        return next((one.launched.process.pid for one in running), None)

    @property
    def over(self) -> bool:
        """All have ended."""
        return all(one.ended for one in self._running)

    def stuck(self) -> list[str]:
        """Hosts whose programs have not ended."""
        return [one.spec.host for one in self._running if not one.ended]

    def running_jobs(self) -> list[str]:
        """The names of jobs with a program that has not ended."""
        return [one.spec.job for one in self._running if not one.ended]

    def end_jobs(self, names: Collection[str], why: str) -> None:
        """End the programs of these jobs."""
        for one in self._running:
            if one.spec.job in names:
                self._kill(one, f"was ended by the run: {why}", stopped=True)

    def close(self) -> None:
        """End what is left: the run is over."""
        for one in self._running:
            if not one.ended:
                if not one.killed:
                    one.killed, one.stopped = "was ended with the run", True
                one.launched.signal(signal.SIGKILL)
                self._ended(one)
            if not one.silent:
                self._take_what_is_there(one)
                self._forget_output(one)

    def _glance(self) -> None:
        """At the number of processes alone, which takes no time."""
        if len(os.listdir("/proc")) > MOST_PROCESSES and not self.over:
            self._look()

    def _look(self) -> None:
        running = [one for one in self._running if not one.ended]
        found = families()
        for one in running:
            members = found.get(one.launched.family, []) if one.launched.family else []
            one.launched.lighten(members)
            if len(members) > MOST_PROCESSES and not one.killed:
                one.killed = f"was killed: it had more than {MOST_PROCESSES} processes"
                one.launched.kill_family()
        self._tell(running)

    def _tell(self, running: list[_Running]) -> None:
        """How far programs are whose steps are not known."""
        if any(not one.step for one in running):
            since_s = (self._loop.now_ns() - self._start_ns) / 1e9
            longest_s = max(one.spec.entry.timeout_ns for one in running) / 1e9
            printed = tuple((figure, host, value) for figure, (host, value) in self._printed.items())
            self._progress.publish(ProgramsRun(since_s, longest_s, len(running), printed))

    def _read(self, one: _Running) -> None:
        """What is there, for as long as a turn may last. Then the program, or what it left behind, waits."""
        until_ns = self._loop.now_ns() + _TURN_NS
        while self._loop.now_ns() < until_ns:
            try:
                data = os.read(one.output_end.fileno(), _READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                self._forget_output(one)
                return
            self._take(one, one.output.take(data))
        self._loop.forget(one.output_end)  # type: ignore[arg-type]
        one.rests = True
        one.held_ns += _REST_NS
        self._loop.at(self._loop.now_ns() + _REST_NS, lambda: self._listen_again(one))

    def _listen_again(self, one: _Running) -> None:
        if one.rests and not one.silent:
            one.rests = False
            self._loop.watch(one.output_end, lambda: self._read(one))  # type: ignore[arg-type]

    def _take(self, one: _Running, lines: Iterator[str]) -> None:
        """Look at the lines of one read, which have its time. What a program left behind prints is kept, and is none of
        its steps and figures."""
        t_ns = self._loop.now_ns()
        for line in lines:
            if one.ended:
                continue
            values = list(one.figures_in(line))
            self._printed |= {name: (one.spec.host, value) for name, value in values}
            self._recorder.rows(PRINTED, (PrintedValue(one.spec.host, name, t_ns, value) for name, value in values))
            if one.step and one.step.search(line):
                self._step(one, t_ns)
            elif one.begin and one.begin.search(line):
                one.last_ns = t_ns

    def _step(self, one: _Running, t_ns: int) -> None:
        event = {"event": "step", "t_ns": t_ns, "step": one.steps, "begin_ns": one.last_ns or self._start_ns}
        one.steps, one.last_ns = one.steps + 1, t_ns
        self._on_event(one.spec.host, {**event, "end_ns": t_ns, "bytes": 0, "bytes_wrong": 0, "waits": {}})

    def _ended(self, one: _Running) -> None:
        """The process has ended. Others that it started may print on: they are read until the run ends."""
        if one.watched:
            self._loop.forget(one.launched.end)  # type: ignore[arg-type]
        status, cpu_ns = one.launched.reap()
        if not one.silent:
            self._take_what_is_there(one)
        self._take(one, one.output.rest())
        one.ended = True
        self._note(one, status, cpu_ns)

    def _take_what_is_there(self, one: _Running) -> None:
        """What was printed up to now: no more than a pipe holds, even if a child goes on printing."""
        with contextlib.suppress(BlockingIOError):
            self._take(one, one.output.take(os.read(one.output_end.fileno(), _READ_BYTES)))

    def _note(self, one: _Running, status: int, cpu_ns: int) -> None:
        spec = one.spec
        end_ns = self._loop.now_ns()
        killed = STOPPED if one.stopped else KILLED if one.killed else 0
        self._recorder.rows(PROGRAMS, [ProgramEnd(spec.host, spec.job, self._start_ns, end_ns, status, killed, cpu_ns)])
        if one.held_ns >= TOLD_NS:
            held = f"output was held back for {one.held_ns / 1e9:.1f} s: it printed faster than it is read"
            self._progress.publish(Note(end_ns, "program", f"{spec.host}: {held}"))
        if status == 0 and not one.killed:
            return
        why = one.killed or (
            f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        )
        said = f": {'; '.join(one.output.last_lines)}" if one.output.last_lines else ""
        reason = f"{spec.command[0]} {why}{said}"
        self._progress.publish(Note(end_ns, "program", f"{spec.host}: {reason}"))
        if one.stopped:
            return
        self._on_event(spec.host, {"event": "program_failed", "t_ns": end_ns, "reason": reason})
        of_job = f"was ended by the run: that of {spec.host} had failed"
        for other in self._running:
            if other.spec.job == spec.job and not other.ended and not other.killed:
                self._loop.at(end_ns + GRACE_NS, lambda other=other: self._kill(other, of_job, True))  # type: ignore[misc]

    def _kill(self, one: _Running, why: str, stopped: bool = False) -> None:
        """`stopped`: it may have ended well."""
        if one.ended or one.killed:
            return
        one.killed, one.stopped = why, stopped
        one.launched.terminate(self._loop)

    def _forget_output(self, one: _Running) -> None:
        one.silent = True
        if not one.rests:
            self._loop.forget(one.output_end)  # type: ignore[arg-type]
        one.output_end.close()
        self._take(one, one.output.rest())
        one.output.close(one.held_ns)


class _Running:
    """One process. `killed`: why the run ended it; `stopped`: for no failure of its own; `watched`: the loop looks for
    its end; `rests`: it does not look at its output."""

    def __init__(self, spec: ProgramSpec, fabric: NetworkOf, output: Output) -> None:
        self.spec = spec
        self.output = output
        self.step = re.compile(spec.entry.step) if spec.entry.step else None
        self.begin = re.compile(spec.entry.begin) if spec.entry.begin else None
        self._figures = [re.compile(pattern) for pattern in spec.entry.metric]
        self.steps = 0
        self.last_ns = 0
        self.killed = ""
        self.held_ns = 0
        self.ended = self.silent = self.stopped = self.watched = False
        self.rests = True
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        try:
            self.launched = Launched(spec.place, spec.command, fabric, (subprocess.DEVNULL, write_end, write_end))
        finally:
            os.close(write_end)
        self.output_end = Watched(read_end)

    def figures_in(self, line: str) -> Iterator[tuple[str, float]]:
        """The figures that a line gives, by name. What is no number is none."""
        for pattern in self._figures:
            for found in pattern.finditer(line):
                named = found.groupdict() or {UNNAMED_FIGURE: found.group(1)}
                for name, text in named.items():
                    with contextlib.suppress(TypeError, ValueError):
                        yield name, float(text)
