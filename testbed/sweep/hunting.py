"""Tries of a hunt on the workers of a Dask scheduler, in place of processes here."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

from mrc_testbed.testbed.app.hunt.subject import HuntRequest
from mrc_testbed.testbed.app.hunt.trial import Candidate, Outcome
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.scenario.plugins.load import SUFFIX
from mrc_testbed.testbed.sweep.address import SchedulerAddress
from mrc_testbed.testbed.sweep.hunter import HuntSpec, attempt_here
from mrc_testbed.testbed.sweep.scheduler import CONNECT_S, connect, require_scheduler, require_workers, workers_of
from mrc_testbed.testbed.terminal import say

from distributed import Event, Future  # isort: skip - `scheduler` says when it is missing

_LOOK_EVERY_S = 1.0
_TOLD_EVERY_S = 30.0


def hunt_spec(request: HuntRequest) -> HuntSpec:
    """Raises UsageError for a scenario with files of plugins or traces, which lie here and not there."""
    source = request.source
    own = [name for name in source.data.get("plugins") or () if str(name).endswith(SUFFIX)]
    if own:
        raise UsageError(f"{request.file}: has the plugin {own[0]}, a file of this machine; hunt in it without --on")
    entries = [entry for entry in source.data.get("workload") or () if isinstance(entry, dict)]
    if any("trace" in entry for entry in entries):
        raise UsageError(f"{request.file}: has a trace, a file of this machine; hunt in it without --on")
    return HuntSpec(request, source.text)


def attempt_on_worker(spec: HuntSpec, job: Candidate, abort_name: str) -> Outcome:
    """A task."""
    return attempt_here(spec, job, Event(abort_name).is_set)


class WorkersElsewhere:
    """A context manager, as `app.hunt.workers.Workers`: as many tries at once as workers have threads."""

    def __init__(self, request: HuntRequest, address: SchedulerAddress) -> None:
        self._spec, self._address = hunt_spec(request), address
        self._futures: dict[str, tuple[Candidate, Future[Any]]] = {}
        self._ended: SimpleQueue[str] = SimpleQueue()
        self._abort_name = f"mrc-testbed-abort-{uuid.uuid4().hex}"
        self._told_s = 0.0

    def __enter__(self) -> WorkersElsewhere:
        self._client = connect(self._address)
        try:
            require_workers(self._client, self._address)
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            if self._futures:
                Event(self._abort_name, client=self._client).set()
                self._client.cancel([future for _, future in self._futures.values()], force=True)
        with contextlib.suppress(Exception):
            self._client.close(timeout=CONNECT_S)

    def outcome(self, job: Candidate) -> Outcome:
        """Of one try."""
        ((_, outcome),) = self.outcomes(iter([job]))
        return outcome

    def outcomes(self, jobs: Iterator[Candidate]) -> Iterator[tuple[Candidate, Outcome]]:
        """Of each job as it is done. They begin in order, and each is asked for when a thread is free."""
        more = True
        while more or self._futures:
            require_scheduler(self._client, self._address)
            threads = sum(facts.threads for facts in workers_of(self._client).values())
            if not threads:
                self._tell_of_none()
            while more and len(self._futures) < threads:
                job = next(jobs, None)
                if job is None:
                    more = False
                else:
                    self._submit(job)
            with contextlib.suppress(Empty):
                if self._futures and (done := self._done(self._ended.get(timeout=_LOOK_EVERY_S))):
                    yield done
            if not threads and not self._futures:
                time.sleep(_LOOK_EVERY_S)

    def _tell_of_none(self) -> None:
        """Now and then, that nobody is there who tries anything."""
        if time.monotonic() >= self._told_s:
            self._told_s = time.monotonic() + _TOLD_EVERY_S
            say("no worker is there; waiting for one", err=True)

    def _submit(self, job: Candidate) -> None:
        key = f"hunt {uuid.uuid4().hex}"
        future = self._client.submit(attempt_on_worker, self._spec, job, self._abort_name, key=key, pure=False)
        self._watch(key, job, future)

    def _watch(self, key: str, job: Candidate, future: Future[Any]) -> None:
        self._futures[key] = job, future
        future.add_done_callback(lambda _: self._ended.put(key))

    def _done(self, key: str) -> tuple[Candidate, Outcome] | None:
        """What came of a try; None where its worker died with that, and Dask makes it once more."""
        job, future = self._futures.pop(key)
        try:
            found: Outcome = future.result(timeout=CONNECT_S)
        except Exception as error:
            require_scheduler(self._client, self._address)
            if isinstance(error, TimeoutError) and future.status != "error":  # the task itself did not raise it
                self._watch(key, job, future)
                return None
            found = Outcome(problem=f"its worker could not say: {type(error).__name__}: {error}", spoiled=True)
        return job, found
