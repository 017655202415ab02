"""A daemon that ends, talks nonsense or refuses: the program gets errors and never hangs, crashes or is ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.hosts.verbs.messages import FORMS, MOST_NEWS, RECORD_BYTES, RecordKind
from tests.workers import shared_folder

from .fake_daemon import FakeDaemon, Faults
from .programs import program, run

ENDED_WELL, GAVE_UP = 0, 3
GARBAGE = {
    "ones": b"\xff" * RECORD_BYTES,
    "zeros": bytes(RECORD_BYTES),
    "half a record": FORMS[RecordKind.REPLY].pack()[:64],
    "a record and a half": FORMS[RecordKind.SENT].pack() + bytes(64),
    "too many": FORMS[RecordKind.SENT].pack() * (MOST_NEWS + 1),
    "a program's record": FORMS[RecordKind.POST_SEND].pack(),
    "more sent than posted": FORMS[RecordKind.SENT].pack(qpn=0x11, count=0xFFFFFFFF),
    "received what is not posted": FORMS[RecordKind.RECEIVED].pack(qpn=0x11) * 9,
    "an event there is not": FORMS[RecordKind.ASYNC].pack(event=77),
    "an event of a CQ": FORMS[RecordKind.ASYNC].pack(event=0, element=5),
}
HARMLESS = {
    "a QP there is not": FORMS[RecordKind.SENT].pack(qpn=0x999, count=3),
    "an answer to nobody": FORMS[RecordKind.REPLY].pack(token=1 << 63),
    "events for nobody": FORMS[RecordKind.EV_STATE].pack(ev=1) + FORMS[RecordKind.PROBED].pack(ev=1),
    "a status there is not": FORMS[RecordKind.QP_ERROR].pack(qpn=0x11, status=4000, text=b"%s%n" * 24),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_folder(tmp_path_factory, "programs")


def records_of_a_life(folder: Path, tmp_path: Path) -> int:
    with FakeDaemon(tmp_path / "counting") as daemon:
        assert run(program(folder), "life", daemon).returncode == ENDED_WELL
    return len(daemon.seen)


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("sanitizers", [(), ("address", "undefined"), ("thread",)], ids=lambda each: "-".join(each))
def test_the_daemon_ends_at_any_record(sanitizers: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    path = program(folder, *sanitizers)
    for number in range(1, records_of_a_life(folder, tmp_path) + 1):
        with FakeDaemon(tmp_path / f"socket{number}", Faults(die_at=number)) as daemon:
            result = run(path, "life", daemon)
        assert result.returncode in (ENDED_WELL, GAVE_UP), (number, result.returncode, result.stderr)
        assert not [
            line for line in result.stderr.splitlines() if not line.startswith("mrc-testbed: ") and "ERROR" in line
        ]


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("name", GARBAGE)
@pytest.mark.parametrize("every", [4, 1])
def test_nonsense_at_any_record(name: str, every: int, folder: Path, tmp_path: Path) -> None:
    path = program(folder, "address", "undefined")
    for number in range(1, records_of_a_life(folder, tmp_path) + 1, every):
        faults = Faults(garbage_at=number, garbage=GARBAGE[name])
        with FakeDaemon(tmp_path / f"socket{number}", faults) as daemon:
            daemon.on_record = None
            result = run(path, "life", daemon)
        assert result.returncode in (ENDED_WELL, GAVE_UP), (number, result.returncode, result.stderr)


@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.nightly(keep=2)
def test_records_that_are_nobodys(name: str, folder: Path, tmp_path: Path) -> None:
    """They come before the answer, which comes too."""
    with FakeDaemon(tmp_path / "socket") as daemon:
        daemon.on_record = lambda sender, kind, _: (
            daemon.send(sender, HARMLESS[name]) if kind is RecordKind.CREATE_QP else None
        )
        result = run(program(folder, "address", "undefined"), "life", daemon)
    assert result.returncode == ENDED_WELL, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("record", [1, 4])
@pytest.mark.nightly
def test_a_daemon_that_answers_no_more_is_gone(record: int, folder: Path, tmp_path: Path) -> None:
    """After 10 s at the first record, after 30 s later."""
    with FakeDaemon(tmp_path / "socket", Faults(silent_at=record)) as daemon:
        result = run(program(folder), "life", daemon)
    assert result.returncode == GAVE_UP
    assert "mrc-testbed: mlx5_0: the daemon " in result.stderr


REFUSED = (
    RecordKind.REG_MR,
    RecordKind.CREATE_QP,
    RecordKind.MODIFY_QP,
    RecordKind.QUERY_PORT,
    RecordKind.DESTROY_QP,
    RecordKind.DEREG_MR,
)


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refusal_says_why(kind: RecordKind, folder: Path, tmp_path: Path) -> None:
    with FakeDaemon(tmp_path / "socket", Faults(refuse={kind: (13, "because of %d reasons")})) as daemon:
        result = run(program(folder), "life", daemon)
    assert result.returncode == GAVE_UP
    assert "mrc-testbed: mlx5_0: because of %d reasons\n" in result.stderr


def test_a_program_that_is_not_taken_has_no_device(folder: Path, tmp_path: Path) -> None:
    with FakeDaemon(tmp_path / "socket", Faults(hello_error=(71, "records of version 2"))) as daemon:
        result = run(program(folder), "absent", daemon)
    assert result.returncode == 0, result.stderr
    assert "mrc-testbed: mlx5_0: records of version 2\n" in result.stderr


def test_the_programs_introduce_themselves(folder: Path, tmp_path: Path) -> None:
    names = []
    with FakeDaemon(tmp_path / "socket") as daemon:
        daemon.on_record = lambda _, kind, values: names.append(values["name"]) if kind is RecordKind.HELLO else None
        assert run(program(folder), "life", daemon).returncode == ENDED_WELL
    assert [name.rstrip(b"\0") for name in names] == [b"program-libmrc.so-libibverbs.so"]
