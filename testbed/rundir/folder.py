"""The run folder: everything is written as it happens, so that a killed run leaves evidence."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from testbed.errors import RunError, UsageError
from testbed.rundir.owned import give, write_whole
from testbed.rundir.results import LOGS, STAMP

SAMPLE_COLUMNS = ("t_ns", "node", "port", "rx_bytes", "rx_packets", "rx_drops", "tx_bytes", "tx_packets", "tx_drops")
COMPLETION_COLUMNS = ("host", "step", "begin_ns", "end_ns", "bytes", "bytes_wrong")
PORT_COLUMNS = ("t_ns", "node", "port", "marked", "trimmed", "dropped", "lost", "corrupted")
WAIT_COLUMNS = ("host", "step", "peer", "wait_ns")
RECEIVED_COLUMNS = ("host", "flow", "qp", "begin_ns", "end_ns", "bytes", "messages", "bytes_wrong", "last")
MESSAGE_COLUMNS = ("host", "flow", "qp", "end_ns", "duration_ns")
OWNER = "owner.json"
"""Who is writing this folder; it goes when the verdict is there."""


def create_folder(out: Path, name: str) -> Path:
    """The folder of a run of that name, with the folder for logs in it. Raises UsageError."""
    folder = new_folder(out, name)
    (folder / LOGS).mkdir()
    return folder


def new_folder(out: Path, name: str) -> Path:
    """`out/<UTC>-<name>`, with a number behind it when two begin in the same second. Raises UsageError.

    What is made on the way there belongs to the user who called sudo.
    """
    missing = [path for path in (out, *out.parents) if not path.exists()]
    stamp = datetime.now(UTC).strftime(STAMP)
    for number in range(1, 1000):
        folder = out / (f"{stamp}-{name}" if number == 1 else f"{stamp}-{name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if not out.is_dir():
                raise UsageError(f"--out {out}: is not a folder") from None
            continue
        except OSError as error:
            raise UsageError(f"--out {out}: cannot make a folder there: {error.strerror}") from error
        give(missing)
        return folder
    raise UsageError(f"--out {out}: too many runs of {name} began in this second")


class Recorder:
    """The open files of a run. Every line is flushed: the run may be killed after it.

    A write that fails (a full disk) raises RunError, which ends the run; what is on disk stays.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index = _whole_lines(folder / "history.jsonl")
        self._files: dict[str, IO[str]] = {}
        for name, columns in (("samples.csv", SAMPLE_COLUMNS), ("completions.csv", COMPLETION_COLUMNS)):
            if not (folder / name).exists():
                self._csv(name, [columns])

    def history(self, outcome: str, /, **fields: Any) -> None:
        """Something was begun (`invoke`), done (`ok`) or failed (`fail`)."""
        self._line("history.jsonl", {"i": self._index, "t_ns": time.monotonic_ns(), "type": outcome, **fields})
        self._index += 1

    def event(self, host: str, event: dict[str, Any]) -> None:
        """A line from an endpoint daemon."""
        self._line("events.jsonl", {"host": host, **event})

    def samples(self, t_ns: int, rows: Iterable[tuple[Any, ...]]) -> None:
        """Interface counters of all ports at one time."""
        self._csv("samples.csv", ((t_ns, *row) for row in rows))

    def port_hits(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Ports at which packets did not just pass; fields as PORT_COLUMNS."""
        self._csv("ports.csv", rows, PORT_COLUMNS)

    def completion(self, row: tuple[Any, ...]) -> None:
        """One rank has finished one step; fields as COMPLETION_COLUMNS."""
        self._csv("completions.csv", [row])

    def waits(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """For whom one rank waited in one step; fields as WAIT_COLUMNS."""
        self._csv("waits.csv", rows, WAIT_COLUMNS)

    def received(self, row: tuple[Any, ...]) -> None:
        """What a QP of a flow delivered in a stretch of time; fields as RECEIVED_COLUMNS."""
        self._csv("flows.csv", [row], RECEIVED_COLUMNS)

    def messages(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Messages of a flow that were acknowledged; fields as MESSAGE_COLUMNS."""
        self._csv("messages.csv", rows, MESSAGE_COLUMNS)

    def document(self, name: str, content: Any) -> None:
        """A whole JSON file, written beside and moved into place: it is never half there."""
        self.text(name, json.dumps(content, indent=1) + "\n")

    def text(self, name: str, content: str) -> None:
        """A whole text file, likewise."""
        path = self.folder / name
        try:
            write_whole(path, content)
        except OSError as error:
            raise _write_failed(path, error) from error

    def log(self, host: str) -> IO[bytes]:
        """The file that takes what a host's daemon prints."""
        path = self.folder / LOGS / f"{host}.log"
        try:
            return path.open("wb")
        except OSError as error:
            raise _write_failed(path, error) from error

    def binary(self, name: str) -> IO[bytes]:
        """A new file for `append`; its folder is made."""
        path = self.folder / name
        try:
            path.parent.mkdir(exist_ok=True)
            return path.open("wb", buffering=0)
        except OSError as error:
            raise _write_failed(path, error) from error

    def append(self, file: IO[bytes], content: bytes | memoryview) -> None:
        """Write into a file of `binary`, at once."""
        try:
            if file.write(content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise _write_failed(Path(file.name), error) from error

    def close(self) -> None:
        """Close what is open. What could not be written is tried once more; its failure was told when it was met."""
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.close()
        self._files.clear()

    def _line(self, name: str, content: dict[str, Any]) -> None:
        self._write(name, json.dumps(content, separators=(",", ":")) + "\n")

    def _csv(self, name: str, rows: Iterable[tuple[Any, ...]], columns: tuple[str, ...] = ()) -> None:
        if columns and name not in self._files and not (self.folder / name).exists():
            rows = (columns, *rows)
        # Names and numbers only: nothing here needs quoting.
        self._write(name, "".join(",".join(map(str, row)) + "\n" for row in rows))

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        try:
            file = self._files.get(name)
            if file is None:
                file = self._files[name] = path.open("a", encoding="utf-8")
            file.write(text)
            file.flush()
        except OSError as error:
            raise _write_failed(path, error) from error


def _whole_lines(path: Path) -> int:
    """How many lines a file has. A last one that a kill tore is cut off, or the next would be written behind it."""
    if not path.exists():
        return 0
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    return content.count(b"\n")


def _write_failed(path: Path, error: OSError) -> RunError:
    return RunError(f"cannot write {path}: {error.strerror}; what was written before is kept")


def claim(folder: Path) -> None:
    """Note that this process writes the folder. Raises RunError."""
    pid, path = os.getpid(), folder / OWNER
    content = {"pid": pid, "started": process_start(pid), "boot": _boot_id()}
    try:
        path.write_text(json.dumps(content), encoding="utf-8")
    except OSError as error:
        raise _write_failed(path, error) from error


def release(folder: Path) -> None:
    """The verdict is written; nobody has to look after the folder any more."""
    (folder / OWNER).unlink(missing_ok=True)


def hand_over(folder: Path) -> None:
    """Give the folder to the user who called sudo: it lies among that user's files."""
    give((folder, *folder.rglob("*")))


def abandoned(folder: Path) -> bool:
    """True when a run was begun here and its process is gone: killed, or the machine went down."""
    try:
        owner = json.loads((folder / OWNER).read_text(encoding="utf-8"))
        return bool(owner["boot"] != _boot_id() or owner["started"] != process_start(owner["pid"]))
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        return True  # torn while it was written: its writer was killed then


def process_start(pid: int) -> int | None:
    """When a process began, in clock ticks since boot; None when there is none. PIDs come again, this does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(text.rpartition(")")[2].split()[19])


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
