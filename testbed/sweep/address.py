"""The address of a scheduler, and whether it is safe to talk to it.

A scheduler of Dask runs what it is sent, on workers that are root: everybody who can reach it owns them all.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.sweep.keys import CA, PAIR, require_valid
from mrc_testbed.testbed.sweep.listening import is_loopback

_NO_PAGES = "--no-dashboard --dashboard-address 127.0.0.1:0"
"""Dask has a port for pages that know no keys; without a dashboard it shows figures of the machine alone."""
EXAMPLES = "local, tcp://127.0.0.1:8786 or tls://HOST:8786"


@dataclass(frozen=True, slots=True)
class SchedulerAddress:
    """`certs`: the folder with the keys of TLS, None without TLS. `insecure`: others may reach it without TLS."""

    url: str
    certs: Path | None
    insecure: bool = False

    @property
    def how_to_start(self) -> str:
        """What makes it listen for nobody else, in the options of `dask scheduler` and `dask worker`."""
        if self.certs is None:
            return "--host 127.0.0.1 --no-dashboard"
        ca, pair = self.certs / CA, self.certs / PAIR
        return f"--protocol tls --tls-ca-file {ca} --tls-cert {pair} --tls-key {pair} {_NO_PAGES}"


def scheduler_address(text: str, certs: Path, insecure: bool) -> SchedulerAddress:
    """Raises UsageError for what is no address, for tcp:// to other machines, and where keys are missing or have
    expired."""
    try:
        parts = urlsplit(text)
        known = parts.scheme in ("tcp", "tls") and parts.hostname and parts.port
    except ValueError:
        known = False
    if not known:
        raise UsageError(f"--on {text}: is no address of a scheduler; write {EXAMPLES}")
    if parts.scheme == "tls":
        missing = next((certs / name for name in (CA, PAIR) if not (certs / name).is_file()), None)
        if missing:
            raise UsageError(
                f"--on {text}: there is no {missing}; make keys by `mrc-testbed sweep keys {certs}`, or name their"
                " folder by --certs"
            )
        require_valid(certs, time.time())
        return SchedulerAddress(text, certs)
    if not insecure and not is_loopback(parts.hostname or ""):
        raise UsageError(
            f"--on {text}: anyone who can reach this scheduler is root on every worker; use tls:// with"
            " `mrc-testbed sweep keys`, or --insecure on a network that is yours alone"
        )
    return SchedulerAddress(text, None, insecure)
