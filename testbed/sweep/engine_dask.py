"""The engine of others: workers of a Dask scheduler. Nothing else imports Dask, which takes half a second.

Dask chooses among the workers that fit, begins a task again where its worker dies, and gives up after several. What is
ours: a run dies with its worker (`cell.py`), Ctrl-C reaches runs that have begun, and a cell that a machine spoiled
goes to another one.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import Counter
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.sweep.address import SchedulerAddress
from mrc_testbed.testbed.sweep.engine import CellJob, Ended, Told
from mrc_testbed.testbed.sweep.folder import SweepFolder
from mrc_testbed.testbed.sweep.placing import Placing, WorkerFacts, carries, wants
from mrc_testbed.testbed.sweep.scheduler import CONNECT_S, connect, require_scheduler, require_workers, workers_of
from mrc_testbed.testbed.sweep.worker import WorkerAnswer, run_on_worker

from distributed import CancelledError, Event, Future, KilledWorker  # isort: skip - the scheduler says when it is missing

_LOOK_EVERY_S = 1.0
"""Between looks at which workers there are."""
_TOLD_EVERY_S = 30.0
_FETCH_S = 600.0
"""For evidence with captures, over a slow line."""


class DaskEngine:
    """Workers of the scheduler at `address`."""

    def __init__(self, address: SchedulerAddress, sweep: SweepFolder) -> None:
        self.told = Told()
        self._address, self._sweep = address, sweep
        self._placing = Placing()
        self._unfit: set[str] = set()
        self._workers: dict[str, WorkerFacts] = {}
        self._running: dict[str, CellJob] = {}
        self._futures: dict[str, Future[Any]] = {}
        self._places: dict[str, set[str]] = {}
        self._ended: SimpleQueue[str] = SimpleQueue()
        self._abort_name = f"mrc-testbed-abort-{uuid.uuid4().hex}"
        self._looked_s = self._told_s = 0.0

    def __enter__(self) -> DaskEngine:
        self._client = connect(self._address)
        try:
            self._event = Event(self._abort_name, client=self._client)
            self._require_good_workers()
        except BaseException:
            self._client.close()
            raise
        self.told.lines.append(f"{len(self._workers)} workers")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            if self._futures:
                self._event.set()
                self._client.cancel(list(self._futures.values()), force=True)
        with contextlib.suppress(Exception):
            self._client.close(timeout=CONNECT_S)

    @property
    def machines(self) -> int:
        """How many workers' machines there are."""
        return len({facts.host for facts in self._workers.values()})

    def has_room(self, job: CellJob) -> bool:
        """As many as can begin at once, so that none waits on a worker that may die."""
        self._look()
        self._tell_if_too_big(job)
        fit = self._fit(job)
        # Those that may run where this one cannot do not count, nor do those that nobody carries any more.
        busy = sum(count for one, count in self._running_by_size() if (theirs := self._fit(one)) and theirs <= fit)
        return busy < (len(fit) if job.cell.on_kernel else sum(self._workers[name].threads for name in fit))

    def _fit(self, job: CellJob) -> frozenset[str]:
        """The workers that carry it."""
        everyone = self._workers.values()
        return frozenset(name for name, facts in self._workers.items() if carries(facts, job, everyone))

    def _running_by_size(self) -> list[tuple[CellJob, int]]:
        """A job of each size, and how many of it there are: room is a matter of size alone."""
        counts = Counter(job.cell.cpus for job in self._running.values())
        examples = {job.cell.cpus: job for job in self._running.values()}
        return [(examples[size], count) for size, count in counts.items()]

    def _tell_if_too_big(self, job: CellJob) -> None:
        if self._workers and not self._fit(job):
            self._tell(
                f"{job.cell.name}: no worker is there that carries its {job.cell.cpus:.2g} CPUs; waiting for one"
            )

    def submit(self, job: CellJob) -> None:
        """Begin it where it may be, under a name of its own."""
        key = f"{job.cell.name} {job.cell.id} {uuid.uuid4().hex[:8]}"
        narrowed = bool(job.not_on or self._placing.set_aside or self._unfit)
        self._places[key] = self._placing.allowed(job, self._workers) if narrowed else set()
        future = self._client.submit(
            run_on_worker,
            job.spec,
            self._abort_name,
            key=key,
            pure=False,
            retries=0,
            priority=-job.order,
            resources=wants(job, self._workers.values()) or None,
            workers=sorted(self._places[key]) or None,
        )
        self._watch(key, job, future)

    def _watch(self, key: str, job: CellJob, future: Future[Any]) -> None:
        self._running[key], self._futures[key] = job, future
        future.add_done_callback(lambda _: self._ended.put(key))

    def next_ended(self, timeout_s: float) -> Ended | None:
        """The next job that ended, None if none did in time. Raises MissingCapability where the scheduler is gone."""
        self._look()
        try:
            key = self._ended.get(timeout=timeout_s)
        except Empty:
            return None
        if key not in self._running:
            return None
        job, future = self._running.pop(key), self._futures.pop(key)
        places = self._places.pop(key)
        try:
            return self._answered(job, future.result(timeout=_FETCH_S))
        except TimeoutError as error:
            if future.status == "error":  # the task itself raised it
                return Ended(job, "", problem=f"the engine failed: {type(error).__name__}: {error}")
            # Its worker died with the result: Dask makes it once more.
            self._places[key] = places
            self._watch(key, job, future)
            return None
        except KilledWorker as killed:
            last = getattr(killed.last_worker, "address", "")
            return Ended(job, last, problem=f"its worker died {_times(killed)}: the last was {last}")
        except CancelledError:
            require_scheduler(self._client, self._address)
            return Ended(job, "", problem="its workers are gone, or the scheduler was started again", refused=True)
        except Exception as error:
            return Ended(job, "", problem=f"the engine failed: {type(error).__name__}: {error}")

    def abort(self) -> None:
        """Cancelling a task leaves what it does going: the tasks look for this event instead."""
        with contextlib.suppress(Exception):
            self._event.set()

    def _answered(self, job: CellJob, answer: WorkerAnswer) -> Ended:
        if answer.result is None:
            self._unfit.add(answer.worker)
            self._workers.pop(answer.worker, None)
            self.told.lines.append(f"worker {answer.worker} gets nothing: {answer.refusal}")
            return Ended(job, answer.worker, problem=answer.refusal, refused=True)
        document = answer.result.document
        spoiled = document["exit_code"] not in (ExitCode.PASS, ExitCode.FAIL, ExitCode.INTERRUPTED)
        if self._placing.ended(answer.worker, spoiled):
            why = f"worker {answer.worker} is set aside: 3 of its last cells were inconclusive"
            self.told.lines.append(f"{why}, the last: {document.get('reason', '')}")
        return Ended(job, answer.worker, answer.result)

    def _require_good_workers(self) -> None:
        """All that are there by now. Those that come later are looked at when they get a cell."""
        self._workers = require_workers(self._client, self._address)
        cells = [cell for cell in self._sweep.open_cells() if cell.on_kernel]
        facts = self._workers.values()
        lacking = next((each for each in facts if each.fabric is None), None)
        if cells and lacking:
            raise UsageError(
                f"worker {lacking.name} was started without --resources fabric=1: it would run several fabrics at once"
            )
        if cells and all(each.cpus is not None for each in facts):
            big, most = max(cells, key=lambda cell: cell.cpus), max(each.cpus or 0 for each in facts)
            if big.cpus > most:
                raise UsageError(
                    f"cell {big.id} ({big.name}) takes {big.cpus:.2g} CPUs, and no worker carries more than {most:.2g}"
                    " (cpus of --resources); slow its ports down, or add a bigger machine"
                )

    def _look(self) -> None:
        """Which workers there are. Raises MissingCapability where the scheduler is gone."""
        now_s = time.monotonic()
        if now_s < self._looked_s + _LOOK_EVERY_S:
            return
        require_scheduler(self._client, self._address)
        self._looked_s = now_s
        found = workers_of(self._client).items()
        self._workers = {name: facts for name, facts in found if name not in self._unfit}
        if not self._workers:
            self._tell("no fit worker is there; waiting for one")
        for job, _ in self._running_by_size():  # the worker of one may have gone
            self._tell_if_too_big(job)
        self._recall_the_stranded()

    def _tell(self, why: str) -> None:
        """Why something waits, now and then."""
        now_s = time.monotonic()
        if now_s > self._told_s + _TOLD_EVERY_S:
            self._told_s = now_s
            self.told.lines.append(why)

    def _recall_the_stranded(self) -> None:
        """Jobs that may go to workers alone that are gone by now: Dask would wait for them for ever."""
        for key, places in self._places.items():
            if places and not places & self._workers.keys() and not self._futures[key].done():
                self._futures[key].cancel()


def _times(killed: KilledWorker) -> str:
    count = getattr(killed, "allowed_failures", 3) + 1
    return {3: "three times", 4: "four times"}.get(count, f"{count} times")
