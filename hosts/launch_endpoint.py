"""Becomes a program in the place of a host's daemon: in the network of the host, its control channel as descriptor 3.

Started as `python -m mrc_testbed.hosts.launch_endpoint SPEC`, where SPEC is JSON: `network` and `control` are
descriptors (of a network namespace, or null to stay in this one; of the program's end of its control channel),
`command` what to become. What cannot be done is said in one line, with exit status 126, or 127 for a command that is
not there.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import NoReturn

from mrc_testbed.hosts.contract_daemon import CONTROL
from mrc_testbed.hosts.launch import CANNOT_RUN, NOT_FOUND

_CLONE_NEWNET = 0x40000000


def main() -> NoReturn:
    """Entry point of `python -m mrc_testbed.hosts.launch_endpoint`."""
    spec = json.loads(sys.argv[1])
    control, command = spec["control"], spec["command"]
    try:
        if spec["network"] is not None:
            _enter(spec["network"])
        if control != CONTROL:
            os.dup2(control, CONTROL)
            os.close(control)
        os.execvp(command[0], command)
    except FileNotFoundError:
        _end(NOT_FOUND, f"{command[0]}: there is no such command")
    except OSError as error:
        _end(CANNOT_RUN, f"{command[0]}: cannot be run: {error.strerror}")


def _enter(network: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(network, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    os.close(network)


def _end(status: int, why: str) -> NoReturn:
    sys.stderr.write(f"mrc-testbed: {why}\n")
    sys.exit(status)


if __name__ == "__main__":
    main()
