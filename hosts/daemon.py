"""The process on each host: one loop around the endpoint, its sockets, its rank program and the control channel.

A run forks its daemons (mrc_testbed.hosts.forker); alone one starts as `python -m mrc_testbed.hosts.daemon
--control-fd N`, where N is the daemon's end of a Unix stream socket pair. It exits with 0 after `stop`, and at once
when the other end is closed, for then the runner is gone; with 1 after an error in itself or in a plugin, which a
`fatal` event tells.
"""

from __future__ import annotations

import argparse
import gc
import signal
import socket
import sys
import traceback
from time import monotonic_ns

from mrc_testbed.hosts.blocks import Xor, xor_into
from mrc_testbed.hosts.control import ControlChannel
from mrc_testbed.hosts.session import Session
from mrc_testbed.hosts.turns import Turns
from mrc_testbed.hosts.udp import Timer


class Daemon:
    """A loop of turns. `run` returns the exit code."""

    def __init__(self, control: socket.socket, xor: Xor = xor_into) -> None:
        self._channel = ControlChannel(control)
        timer = Timer()
        self._session = Session(self._channel, timer.lateness, xor=xor)
        self._turns = Turns(self._channel, self._session, timer)

    def run(self) -> int:
        """Turn until `stop`, the end of the channel, or an error."""
        try:
            while self._session.running and not self._channel.closed:
                self._turns.take()
        except Exception as error:
            traceback.print_exc()
            self._session.report("fatal", monotonic_ns(), {"reason": self._session.plugins.reason(error)})
            return 1
        finally:
            self._channel.finish()
        return 0


def serve(control: socket.socket, xor: Xor = xor_into) -> int:
    """Be the daemon at this end of a control channel; returns the exit code of the process. `xor`: as of Session."""
    # Ctrl-C is for the runner, which heals first and then closes the channel.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # The hot path makes no reference cycles; a collection in the middle of a run would be seen as lateness.
    gc.disable()
    return Daemon(control, xor).run()


def main() -> int:
    """Entry point of `python -m mrc_testbed.hosts.daemon`."""
    parser = argparse.ArgumentParser(prog="mrc_testbed.hosts.daemon", description="MRC endpoint of one host")
    parser.add_argument("--control-fd", type=int, required=True, help="the daemon's end of a Unix stream socket pair")
    return serve(socket.socket(fileno=parser.parse_args().control_fd))


if __name__ == "__main__":
    sys.exit(main())
