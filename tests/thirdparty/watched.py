"""Runs one end of a benchmark on a host. Its exit status says nothing about its data, so its output is read as well.

watched.py server PORT COMMAND...      tells the client once the command listens on that TCP port
watched.py client SERVER COMMAND...    starts it then, with the server's IPv4 address as its last word
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

WRONG = ("Data mismatch", "Data validation found", "[MRC ERROR]")
READY_PORT = 18187
PATIENCE_S = 30
_LISTENS = "0A"


def main(role: str, other: str, *command: str) -> int:
    """The command's status; 1 if its output has one of the words of WRONG."""
    os.chmod(command[0], 0o755)  # a copy, whose rights are those of any file
    if role == "server":
        threading.Thread(target=tell_client, args=(int(other),), daemon=True).start()
        return watch(command)
    address = socket.gethostbyname(other)
    wait_for_server(address)
    return watch((*command, address))


def watch(command: tuple[str, ...]) -> int:
    """Pass its output on, and end it at the first word that says that it failed."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as run:
        assert run.stdout
        for line in run.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            if any(words in line for words in WRONG):
                run.kill()
                return 1
    return run.returncode if run.returncode >= 0 else 128 - run.returncode


def tell_client(port: int) -> None:
    """Listen as soon as somebody listens on `port`."""
    while not listens(port):
        time.sleep(0.05)
    with socket.create_server(("", READY_PORT)) as ready:
        ready.accept()[0].close()


def listens(port: int) -> bool:
    """As /proc/net/tcp and tcp6 have it."""
    found = []
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}", encoding="ascii") as file:
            found += [line.split() for line in file.readlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") and row[3] == _LISTENS for row in found)


def wait_for_server(address: str) -> None:
    """Raises OSError if it does not listen in time."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection((address, READY_PORT), timeout=PATIENCE_S).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
