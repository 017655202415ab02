"""Verbs for Python programs on the hosts of a run: `from mrc_testbed import verbs`.

    with verbs.join(buffer=1 << 20, to="ring") as job:
        job.next.write(0, 4096, remote_offset=0, immediate=1)
        job.previous.receive()
        print(bytes(job.region.view[:4096]))

See `open` for a single device, `join` for the ranks of a job.
"""

from __future__ import annotations

from mrc_testbed.hosts.verbs.client import Device, Event, open
from mrc_testbed.hosts.verbs.client_errors import (
    DeviceLost,
    NoDevice,
    QueuePairError,
    Refused,
    TimedOut,
    VerbsError,
)
from mrc_testbed.hosts.verbs.client_job import Job, Link, join
from mrc_testbed.hosts.verbs.client_memory import Address, Region
from mrc_testbed.hosts.verbs.client_qp import Completion, QueuePair

__all__ = [
    "Address",
    "Completion",
    "Device",
    "DeviceLost",
    "Event",
    "Job",
    "Link",
    "NoDevice",
    "QueuePair",
    "QueuePairError",
    "Refused",
    "Region",
    "TimedOut",
    "VerbsError",
    "join",
    "open",
]
