"""What a packet, a post, a wait and a completion cost programs over verbs, beside the testbed's own `write`.

    sudo .venv/bin/python -m benchmarks.verbs [PAIRS]

A data packet: one run of the quickstart's shape, as benchmarks/programs.py has it. In turn every 4 s a `write` sends
from one host to another, and a C program over verbs from h0 to h4, in chains of eight writes of 64 KiB. CPU time of the
whole machine is counted over the payload that arrived. A post, a wait and a completion: in this process, by the server
of a daemon whose endpoint sends nothing, and a C program that polls; a post costs CPU time of the server, sixteen in a
datagram and one.

Prints each figure with its limit, and ends with 1 if one is above it.
"""

from __future__ import annotations

import ctypes
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

from benchmarks import programs
from mrc_testbed.hosts import compiled

compiled.use_what_fits()

from mrc_testbed.hosts.common.events import WriteCompleted  # noqa: E402
from mrc_testbed.hosts.mrc.config import EndpointConfig  # noqa: E402
from mrc_testbed.hosts.mrc.endpoint import Endpoint  # noqa: E402
from mrc_testbed.hosts.network import Network  # noqa: E402
from mrc_testbed.hosts.qps import NamedQps  # noqa: E402
from mrc_testbed.hosts.verbs.facts import HostFacts  # noqa: E402
from mrc_testbed.hosts.verbs.messages import (  # noqa: E402
    FORMS,
    MOST_POSTS,
    RECORD_BYTES,
    SOCKET_VARIABLE,
    VERSION,
    RecordKind,
    To,
)
from mrc_testbed.hosts.verbs.opening import gid_of, listen  # noqa: E402
from mrc_testbed.hosts.verbs.server import ProgramServer  # noqa: E402
from mrc_testbed.testbed.fabric.verbs_library import SOURCES, compiler, libraries  # noqa: E402

MOST_TIMES, MOST_POST_US, MOST_IDLE, MOST_SEEN_MS = 1.15, 3.0, 3.0, 1.0
PAIRS = 5
IDLE_S, COMPLETIONS, POSTS, BATCH, ROUNDS = 3, 300, 512, 64, 9
RTT_NS = 40_000_000
PEER = gid_of("10.64.0.2")
SOURCE = Path(__file__).with_suffix(".c")


def scenario_of(pairs: int) -> str:
    """As that of benchmarks/programs.py, with a C program over verbs between h0 and h4."""
    python = f"      command: python3 sender.py {pairs} {programs.SLICE_S}\n      files: [sender.py]\n"
    ours = (
        f"      command: ./verbs stream {pairs} {programs.SLICE_S}\n      files: [verbs]\n"
        "      hosts: [h0, h4]\n      verbs: libraries\n"
    )
    return programs.scenario_of(pairs).replace(python, ours)


def build(folder: Path) -> Path:
    """benchmarks/verbs.c, in a folder."""
    binary = folder / "verbs"
    command = [compiler(), "-O2", "-o", str(binary), str(SOURCE), f"-I{SOURCES}", f"-L{libraries()}"]
    subprocess.run([*command, "-lmrc", "-l:libibverbs.so.1"], check=True)
    return binary


class Server:
    """The server of a daemon whose endpoint sends nothing, at a socket in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "nic")
        gids = {PEER: 1, gid_of("10.64.0.1"): 0}
        endpoint = Endpoint(EndpointConfig(0, 1, 49152, RTT_NS, 12_500_000))
        endpoint.add_peer(1, [(0, 0, None)])
        network = Network(
            endpoint=endpoint, peers={1: "h1"}, carrier=cast(Any, None), rtt_ns=RTT_NS, read_remote=cast(Any, dict)
        )
        told = HostFacts(0, "h0", gid_of("10.64.0.1"), gids, 1, 4096, 8, 32, RTT_NS)
        self._server = ProgramServer(network, endpoint, NamedQps(network), told, listen(self.path), lambda *_: None)

    def turn(self) -> None:
        """One turn of a daemon, as far as programs go."""
        self._server.pump(time.monotonic_ns())

    def completed(self, qpn: int) -> int:
        """The oldest write of a QP is complete: tell its program. Returns the time, ns."""
        self._server.take_event(WriteCompleted(qpn, 0))
        self.turn()
        return time.monotonic_ns()

    def outstanding(self) -> list[int]:
        """QPs with a write that is not complete."""
        return [qpn for qpn, (_, qp) in self._server.by_number.items() if qp.outstanding]

    @property
    def posts(self) -> int:
        """Writes that programs have posted."""
        return self._server.counters()["verbs_writes"]


class Program:
    """What a program sends, without a library and in this process."""

    def __init__(self, host: Server) -> None:
        self._host = host
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(host.path)
        memory, events = os.open("/proc/self/mem", os.O_RDWR), os.eventfd(0)
        hello = FORMS[RecordKind.HELLO].pack(version=VERSION, token=1, pid=os.getpid())
        host.turn()
        socket.send_fds(self._socket, [hello], [memory, events])
        host.turn()
        self._socket.recv(RECORD_BYTES)
        os.close(memory)
        os.close(events)

    def ask(self, kind: RecordKind, **values: object) -> int:
        """A request and the value of its REPLY."""
        self.send(FORMS[kind].pack(token=1, **values))
        self._host.turn()
        reply = FORMS[RecordKind.REPLY].unpack(self._socket.recv(RECORD_BYTES))
        if reply["error"]:
            raise SystemExit(reply["text"].decode())
        return int(reply["value"])

    def send(self, datagram: bytes) -> None:
        """One datagram."""
        self._socket.send(datagram)

    def connected_qp(self) -> int:
        """One in RTS, to a peer that is not there."""
        qpn = self.ask(RecordKind.CREATE_QP, pd=1, max_send_wr=1024)
        for state in (To.INIT, To.RTR, To.RTS):
            self.ask(RecordKind.MODIFY_QP, qpn=qpn, state=state, dest_qpn=16, path_mtu=4096, dgid=PEER)
        return qpn


def post_us(at_once: int) -> float:
    """CPU time of the server a post, in us: median of rounds. `at_once`: posts in a datagram."""
    memory = bytearray(4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    with tempfile.TemporaryDirectory() as folder:
        host = Server(Path(folder))
        program = Program(host)
        key = program.ask(RecordKind.REG_MR, pd=1, address=address, length=4096, access=3)
        costs = []
        for _ in range(ROUNDS):
            qpn = program.connected_qp()
            record = FORMS[RecordKind.POST_SEND].pack(qpn=qpn, address=address, length=4096, lkey=key, rkey=1)
            costs.append(_spent(host, program, record * at_once, at_once) / POSTS)
    return statistics.median(costs) / 1000


def _spent(host: Server, program: Program, datagram: bytes, at_once: int) -> int:
    spent = 0
    for _ in range(POSTS // BATCH):
        for _ in range(BATCH // at_once):
            program.send(datagram)
        before, wanted = time.process_time_ns(), host.posts + BATCH
        while host.posts < wanted:
            host.turn()
        spent += time.process_time_ns() - before
    return spent


def polled(folder: Path) -> tuple[float, list[float]]:
    """Percent of a core that a program takes in mrc_poll_cq of an empty CQ, and how long after the server had told it a
    completion was seen, in ms, at random times."""
    binary, host = build(folder), Server(folder)
    environment = {**os.environ, SOCKET_VARIABLE: host.path, "LD_LIBRARY_PATH": str(libraries())}

    def printed(by: subprocess.Popen[bytes]) -> str:
        return by.stdout.read().decode() if by.stdout else ""

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([binary, *arguments], env=environment, stdout=subprocess.PIPE)

    told: list[int] = []
    with start("idle", str(IDLE_S)) as idle:
        while idle.poll() is None:
            host.turn()
            time.sleep(0.001)
        share = float(printed(idle).partition("=")[2])
    with start("seen", str(COMPLETIONS)) as seen:
        while seen.poll() is None:
            host.turn()
            for qpn in host.outstanding():
                time.sleep(random.uniform(0.0005, 0.0015))
                told.append(host.completed(qpn))
            time.sleep(0.0001)
        at = [int(line) for line in printed(seen).split()]
    return share, [(saw - tell) / 1e6 for saw, tell in zip(at, told, strict=True)]


def main() -> int:
    """Measure, print, compare with the limits."""
    pairs = min(int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS, len(programs.FLOWS))
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        run, busy = programs.measure(scenario_of(pairs), programs.SENDER, Path(folder))
        costs = list(programs.ratios(run, busy, pairs))
    with tempfile.TemporaryDirectory() as folder:
        share, seen = polled(Path(folder))
    for write, program in costs:
        print(f"write {write:6.2f} us a KB   verbs {program:6.2f} us a KB   ratio {program / write:.2f}")
    times = statistics.median(program / write for write, program in costs)
    chained, alone = post_us(MOST_POSTS), post_us(1)
    late = sorted(seen)[len(seen) * 99 // 100]
    print(f"CPU a byte, verbs / write     {times:6.2f}     at most {MOST_TIMES}")
    print(f"a post, of 16 in a datagram   {chained:6.2f} us  at most {MOST_POST_US} us (alone in one {alone:.2f} us)")
    print(f"an idle program that polls    {share:6.2f} %   at most {MOST_IDLE} %")
    middle = statistics.median(seen)
    print(f"a completion is seen, p99     {late:6.2f} ms  at most {MOST_SEEN_MS} ms (median {middle:.3f} ms)")
    return int(times > MOST_TIMES or chained > MOST_POST_US or share > MOST_IDLE or late > MOST_SEEN_MS)


if __name__ == "__main__":
    sys.exit(main())
