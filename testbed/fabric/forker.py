"""The supervisor's end of the process that forks the daemons (mrc_testbed.hosts.forker)."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
from typing import IO

from mrc_testbed.hosts.control import FORK_MESSAGE_BYTES
from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.sandbox import open_of
from mrc_testbed.testbed.isolated import PLACE, python_command

_XOR = "mrc_testbed.testbed.xor:xor_arrays"
"""By name: numpy starts a thread, and with threads no process enters a user namespace (setns(2)), as `attach` does."""
_ENDED = b'{"error": "the process that forks it has ended"}'


class Child:
    """A process that somebody else has forked for this one, as `subprocess.Popen` shows one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def wait(self, timeout: float) -> int:
        """The exit status, or -N if signal N ended it. Raises TimeoutError if it still runs after `timeout` seconds."""
        if self._status is None:
            process = os.pidfd_open(self.pid)
            try:
                ended = select.poll()  # takes any descriptor; select.select none from 1024 on
                ended.register(process, select.POLLIN)
                if not ended.poll(timeout * 1000):
                    raise TimeoutError(f"process {self.pid} is still running")
            finally:
                os.close(process)
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status


class Forker:
    """Started once; forks a daemon in a moment. `log` takes what it says should it fail; `source`: the folder that
    contains `mrc_testbed`; `environment`: variables of its own."""

    def __init__(self, log: IO[bytes], source: str = PLACE, **environment: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                python_command("mrc_testbed.hosts.forker", str(theirs.fileno()), _XOR, place=source),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **environment},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

    def fork(self, node: str, holder: int, control: int, log: IO[bytes]) -> Child:
        """A daemon in the network namespace of `node`, which process `holder` holds, at descriptor `control`.

        Raises FabricError if there is none.
        """
        network = open_of(holder, node, "ns/net")
        try:
            socket.send_fds(self._socket, [node.encode()], [network, control, log.fileno()])
            answer = json.loads(
                self._socket.recv(FORK_MESSAGE_BYTES) or b'{"error": "the process that forks it has ended"}'
            )
        except OSError as error:
            answer = {"error": error.strerror}
        finally:
            os.close(network)
        if "pid" not in answer:
            raise FabricError(node, "start its daemon", f"{answer['error']}; see {log.name}")
        return Child(answer["pid"])

    def close(self) -> None:
        """End it. Its daemons go on."""
        self._socket.close()
        self._process.wait()
