"""Starts the daemons of many hosts: one process that has loaded their code, and forks a daemon for each request.

    runner --request--> forker --fork--> a process that ends at once --fork--> daemon

Because of the process between them a daemon becomes a child of the runner, which is PID 1 of its namespace and can wait
for it. The pages of the loaded code are shared: 64 daemons answer after 0.26 s and take 2.7 MB each, in place of 3.0 s
and 12.2 MB.

Started as `python -m mrc_testbed.hosts.forker REQUESTS [XOR]`, where REQUESTS is its end of a Unix seqpacket pair, and
XOR names the function with which daemons add training data, as MODULE:NAME (hosts/blocks.py). A request is the name of
a host with three descriptors: a network namespace, the daemon's end of its control channel, a log. The answer is
`{"pid": N}` or `{"error": TEXT}`. It exits when the other end is closed; its daemons go on.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import socket
import sys
import traceback
from typing import NoReturn

from mrc_testbed.hosts import batches
from mrc_testbed.hosts.blocks import Xor, xor_into
from mrc_testbed.hosts.control import FORK_MESSAGE_BYTES
from mrc_testbed.hosts.daemon import serve

_CLONE_NEWNET = 0x40000000
_PR_SET_NAME = 15
_DESCRIPTORS = 3
_libc = ctypes.CDLL(None, use_errno=True)


def fork_daemons(requests: socket.socket, xor: Xor) -> None:
    """Answer requests until the other end is closed. `xor`: as of mrc_testbed.hosts.session.Session."""
    while True:
        name, descriptors, _, _ = socket.recv_fds(requests, FORK_MESSAGE_BYTES, _DESCRIPTORS)
        if not name:
            return
        requests.sendall(json.dumps(_forked(name, descriptors, requests, xor)).encode())
        for descriptor in descriptors:
            os.close(descriptor)


def _forked(name: bytes, descriptors: list[int], requests: socket.socket, xor: Xor) -> dict[str, int | str]:
    """The PID of a new daemon, from the process between, which ends at once."""
    read_end, write_end = os.pipe()
    between = os.fork()
    if between == 0:
        daemon = os.fork()
        if daemon == 0:
            requests.close()
            os.close(read_end)
            os.close(write_end)
            _become_daemon(name, xor, *descriptors)
        os.write(write_end, str(daemon).encode())
        os._exit(0)
    os.close(write_end)
    os.waitpid(between, 0)
    with os.fdopen(read_end, "rb") as answer:
        pid = answer.read()
    return {"pid": int(pid)} if pid else {"error": "no process could be made"}


def _become_daemon(name: bytes, xor: Xor, network: int, control: int, log: int) -> NoReturn:
    """The rest of the life of a forked process, which never returns to the forker's code."""
    status = 1
    try:
        os.setsid()
        os.dup2(log, 1)
        os.dup2(log, 2)
        _libc.prctl(_PR_SET_NAME, b"mrc-" + name)
        if _libc.setns(network, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"setns: {os.strerror(number)}")
        os.close(network)
        os.close(log)
        status = serve(socket.socket(fileno=control), xor)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def main() -> int:
    """Entry point of `python -m mrc_testbed.hosts.forker`."""
    xor = _named(sys.argv[2]) if len(sys.argv) > 2 else xor_into
    batches.found()
    gc.disable()
    gc.freeze()
    fork_daemons(socket.socket(fileno=int(sys.argv[1])), xor)
    return 0


def _named(place: str) -> Xor:
    """Loaded before the forks, so that all daemons share its pages."""
    module, _, name = place.partition(":")
    xor: Xor = getattr(importlib.import_module(module), name)
    return xor


if __name__ == "__main__":
    sys.exit(main())
