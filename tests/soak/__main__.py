"""A soak from the command line: figures, and exit status 0 if all is as it should be."""

from __future__ import annotations

import argparse
import socket
import sys
import threading
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.emu.runs import Run
from tests.soak.memory import Growth, Watch, sizes
from tests.soak.scenario import soak_scenario

LOOK_S = 2.0
MOST_BYTES_A_MINUTE = 12 << 20
"""Of all files together: a fabric of 64 links that is sampled five times a second, and its events."""
_SHOWN_FILES = 8


class Soak:
    """One of them, over. `wrong`: what does not hold."""

    def __init__(self, minutes: float, seed: int, folder: Path) -> None:
        began = time.monotonic()
        port = _free_port()
        options = ("--quiet", "--web", "--web-port", str(port))
        self.run = Run(folder, scenario=soak_scenario(minutes, seed), options=options)
        watch = Watch()
        threading.Thread(target=_look_on, args=(self.run, port), daemon=True).start()
        while self.run.process.poll() is None:
            watch.look(time.monotonic() - began, self.run.pids())
            time.sleep(LOOK_S)
        self.status = self.run.finish(timeout_s=600)
        self.seconds = time.monotonic() - began
        self.growths: list[Growth] = watch.growths()
        self.sizes = sizes(self.run.folder)

    @property
    def wrong(self) -> list[str]:
        """In words."""
        verdict = self.run.verdict
        found = [str(one) for one in self.growths if not one.flat]
        roles = {one.name.split()[0] for one in self.growths}
        found += [f"no {role} was seen" for role in ("daemon", "server", "command") if role not in roles]
        if verdict["verdict"] == "fail":
            found.append(self.run.output)
        if "Traceback" in self.run.output + self.run.errors:
            found.append(self.run.output + self.run.errors)
        if self.bytes_a_minute > MOST_BYTES_A_MINUTE:
            found.append(f"files grow by {self.bytes_a_minute / 2**20:.1f} MiB a minute")
        return found

    @property
    def bytes_a_minute(self) -> float:
        """Of all files together."""
        return sum(self.sizes.values()) / self.seconds * 60

    def __str__(self) -> str:
        largest = sorted(self.sizes.items(), key=lambda item: -item[1])[:_SHOWN_FILES]
        lines = [
            f"{self.seconds:.0f} s, exit status {self.status}",
            self.run.output.strip(),
            "memory of its own after the first third, and what it grew by since:",
            *map(str, self.growths),
            f"files: {self.bytes_a_minute / 2**20:.2f} MiB a minute",
            *(f"  {size / 2**20:8.2f} MiB  {name}" for name, size in largest),
        ]
        return "\n".join(lines)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _look_on(run: Run, port: int) -> None:
    """A browser that stays for the whole run, so that the server has something to do."""
    while run.process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/events", timeout=30) as stream:
                while stream.read(4096):
                    pass
        except OSError:
            time.sleep(0.5)


def main() -> int:
    """Exit status 0: nothing is wrong; 3: the verdict is not believed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=4)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        soak = Soak(given.minutes, given.seed, Path(folder))
        print(soak)  # noqa: T201
        for line in soak.wrong:
            print(f"wrong: {line}")  # noqa: T201
        return 1 if soak.wrong else soak.status


if __name__ == "__main__":
    sys.exit(main())
