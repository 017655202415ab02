"""The job around an all-reduce: connects all ranks, calls it in each step, and checks every sum. It stays as it is."""

import importlib
import os
import socket
import sys
import time
from array import array
from operator import add as plus
from operator import mul as times
from queue import SimpleQueue
from random import Random, getrandbits
from threading import Thread

RANK, SIZE, HOSTS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["MRC_HOSTS"].split(",")
STEPS, COUNT, PORT = int(os.environ["STEPS"]), int(os.environ["COUNT"]), 5555


def add(some, others):
    """The sums of two arrays of one length."""
    return array("d", map(plus, some, others))


def stop(why):
    """End at once, whatever is still to be sent."""
    print(why, flush=True)
    os._exit(1)


class Links:
    """A connection to each other rank. Sending never waits; receiving waits for all that was asked for."""

    def __init__(self):
        listener = socket.create_server(("", PORT), backlog=SIZE)
        self._to = {rank: self._connect(rank) for rank in range(RANK)}
        for _ in range(RANK + 1, SIZE):
            accepted, _ = listener.accept()
            self._to[accepted.recv(1)[0]] = accepted
        self._waiting = {rank: SimpleQueue() for rank in self._to}
        self._senders = [Thread(target=self._send_all, args=(self._to[rank], self._waiting[rank])) for rank in self._to]
        for sender in self._senders:
            sender.start()

    @staticmethod
    def _connect(rank):
        until = time.monotonic() + 30
        while True:
            try:
                link = socket.create_connection((HOSTS[rank], PORT), timeout=30)
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        link.settimeout(None)
        link.sendall(bytes([RANK]))
        return link

    @staticmethod
    def _send_all(link, waiting):
        while (numbers := waiting.get()) is not None:
            link.sendall(numbers)

    def send(self, rank, numbers):
        """Numbers, an array, are on their way to another rank."""
        self._waiting[rank].put(numbers.tobytes())

    def close(self):
        """Wait until all is sent."""
        for waiting in self._waiting.values():
            waiting.put(None)
        for sender in self._senders:
            sender.join()

    def receive(self, rank, count):
        """The next `count` numbers from another rank, as an array."""
        came = bytearray()
        while len(came) < 8 * count:
            part = self._to[rank].recv(8 * count - len(came))
            if not part:
                stop(f"rank {rank} has gone")
            came += part
        return array("d", bytes(came))


def some_numbers():
    """By chance, so no rank knows another's. They are whole: sums of them are exact in any order."""
    return array("d", iter(os.urandom(COUNT)))


def all_have(value, links):
    """What each rank says, in the order of ranks."""
    others = [rank for rank in range(SIZE) if rank != RANK]
    for rank in others:
        links.send(rank, array("d", [value]))
    return [value if rank == RANK else links.receive(rank, 1)[0] for rank in range(SIZE)]


def is_sum(found, mine, links):
    """All ranks draw weights together, which nobody knew before. Weighted, the sums are as much as all numbers."""
    seed = int(sum(all_have(float(getrandbits(32)), links)))
    weights = Random(seed).randbytes(COUNT).replace(b"\0", b"\1")
    wanted = sum(all_have(float(sum(map(times, mine, weights))), links))
    return len(found) == COUNT and sum(map(times, found, weights)) == wanted


def main():
    """All ranks go on until a sum is wrong."""
    all_reduce = importlib.import_module(sys.argv[1]).all_reduce
    links = Links()
    for step in range(STEPS):
        mine = some_numbers()
        print("begin", flush=True)
        found = all_reduce(mine[:], RANK, SIZE, links)
        print(f"step {step} done", flush=True)
        if not is_sum(found, mine, links):
            stop(f"rank {RANK}, step {step}: the sum is wrong")
    links.close()


if __name__ == "__main__":
    main()
