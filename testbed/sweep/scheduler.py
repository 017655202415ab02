"""A scheduler of Dask as a client: connected, with workers that have our code, and quiet."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from mrc_testbed.testbed.errors import MissingCapability, UsageError
from mrc_testbed.testbed.sweep.address import SchedulerAddress
from mrc_testbed.testbed.sweep.code import code_version, version_words
from mrc_testbed.testbed.sweep.keys import CA, PAIR
from mrc_testbed.testbed.sweep.listening import asks_scheduler, asks_worker, open_address
from mrc_testbed.testbed.sweep.placing import WorkerFacts
from mrc_testbed.testbed.sweep.worker import describe
from mrc_testbed.testbed.version import install_extra

try:
    from distributed import Client, Security
except ImportError:
    raise MissingCapability("--on a scheduler needs Dask", install_extra("sweep")) from None

CONNECT_S = 5.0
_LOOK_EVERY_S = 0.1


def connect(address: SchedulerAddress) -> Client:
    """Raises MissingCapability where none answers, or none that has our keys; UsageError where others may order it."""
    for name in logging.root.manager.loggerDict:  # what matters we tell ourselves, in a line
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address.url, timeout=CONNECT_S, security=_security(address), name="mrc-testbed sweep")
    except OSError as error:
        why = str(error.__cause__ or error).rpartition(">: ")[2]  # without the object that tried
        start = f"start one by `dask scheduler {address.how_to_start}`, or wait until it is up"
        if "expired" in why:
            start = "its keys have expired: start it with those of --certs"
        raise MissingCapability(f"no scheduler at {address.url} ({why})", start) from None
    try:
        _refuse_open(client, address)
    except BaseException:
        client.close()
        raise
    return client


def _refuse_open(client: Client, address: SchedulerAddress) -> None:
    """Raises UsageError for a scheduler that takes orders from other machines without TLS."""
    if address.insecure:
        return
    try:
        listens = client.run_on_scheduler(asks_scheduler())
    except Exception as error:
        raise UsageError(f"the scheduler at {address.url} does not say where it listens: {error}") from None
    _require_closed("the scheduler", f"at {address.url} ", listens)


def _require_closed(who: str, where: str, listens: Iterable[str]) -> None:
    if found := open_address(listens):
        raise UsageError(
            f"{who} {where}listens on {found} without TLS, and who reaches it is root on the workers: start it with"
            " --host 127.0.0.1 --no-dashboard, or with TLS (docs/sweeps.md); --insecure is for a network that is yours"
            " alone"
        )


def _security(address: SchedulerAddress) -> Security | None:
    if address.certs is None:
        return None
    ca, pair = str(address.certs / CA), str(address.certs / PAIR)
    return Security(tls_ca_file=ca, tls_client_cert=pair, tls_client_key=pair, require_encryption=True)


def require_scheduler(client: Client, address: SchedulerAddress) -> None:
    """Waits while the client tries to reach it again. Raises MissingCapability where it is gone."""
    end_s = time.monotonic() + 2 * CONNECT_S
    while client.status == "connecting" and time.monotonic() < end_s:
        time.sleep(_LOOK_EVERY_S)
    if client.status != "running":
        raise MissingCapability(f"the scheduler at {address.url} is gone", "start it and run the same command again")


def workers_of(client: Client) -> dict[str, WorkerFacts]:
    """All that are there now, by address."""
    found: Mapping[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return {name: _facts(name, each) for name, each in found.items()}


def _facts(name: str, found: Mapping[str, Any]) -> WorkerFacts:
    resources = found.get("resources") or {}
    return WorkerFacts(name, str(found["host"]), int(found["nthreads"]), resources.get("fabric"), resources.get("cpus"))


def require_workers(client: Client, address: SchedulerAddress) -> dict[str, WorkerFacts]:
    """Those that are there, at least one. Raises MissingCapability without any, UsageError for other code."""
    found = workers_of(client)
    if not found:
        start = f"on each machine: sudo dask worker {address.url} --resources fabric=1 {address.how_to_start}"
        raise MissingCapability(f"the scheduler at {address.url} has no workers", start)
    ours = version_words(code_version())
    answers: Mapping[str, Any] = client.run(describe, on_error="return")
    for worker, answer in answers.items():
        theirs = "that cannot be asked for its version" if isinstance(answer, BaseException) else version_words(answer)
        if theirs != ours:
            raise UsageError(f"worker {worker} has mrc-testbed {theirs}, here is {ours}; update it and start it again")
    if not address.insecure:
        for worker, listens in client.run(asks_worker()).items():
            _require_closed(f"worker {worker}", "", listens)
    return found
