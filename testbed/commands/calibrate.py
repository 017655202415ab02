"""`mrc-testbed calibrate`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.commands.options import note_core
from mrc_testbed.testbed.errors import ExitCode, RunError, UsageError
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from mrc_testbed.testbed.calibration import Calibration, Step
    from mrc_testbed.testbed.transports.base import Transport

_Transports = Annotated[
    str, typer.Option("--transport", metavar="NAME,...", help="What to measure, as in mrc,tcp; 80 s each, mrc 3 min.")
]


def calibrate(
    transport: _Transports = "mrc",
    show: Annotated[bool, typer.Option("--show", help="Show the saved calibration without measuring.")] = False,
    cpus: Annotated[
        bool, typer.Option("--cpus", help="Print the CPU seconds a second that it carries over MRC, no more.")
    ] = False,
) -> None:
    """Measure how much CPU time for packets this machine carries over a transport, and save the result.

    `run` and `validate` then warn of what may not fit and of what does not fit. Run nothing else meanwhile.
    """
    from mrc_testbed.testbed.calibration import load_calibration, machine_capacity, state_file
    from mrc_testbed.topos.cost import STANDARD_COST

    if not show:
        note_core()
        for kind in tuple(_kinds(transport)):
            _measure(kind)
    if cpus:
        say(f"{machine_capacity(STANDARD_COST).cpus:.3g}")
        return
    found = load_calibration()
    if found is None:
        raise UsageError(f"--show: there is no {state_file()}; run `mrc-testbed calibrate`")
    _show(found)
    if not show:
        say(f"saved in {state_file()}")


def _kinds(words: str) -> Iterator[Transport]:
    """The transports of a list. Raises UsageError for what is none."""
    from mrc_testbed.testbed.expect import did_you_mean
    from mrc_testbed.testbed.transports.registry import TRANSPORTS

    known = list(TRANSPORTS)
    for word in dict.fromkeys(word.strip() for word in words.split(",")):
        if word not in known:
            there_are = did_you_mean(word, known) or f"; there are {', '.join(known)}"
            raise UsageError(f"--transport {words}: {word!r} is no transport{there_are}")
        yield TRANSPORTS[word]


def _measure(transport: Transport) -> None:
    """Measure and save one transport, so that it stays if the next one fails; with MRC, many hosts."""
    from datetime import UTC, datetime

    from mrc_testbed.testbed.app.calibrate import confirm, try_training
    from mrc_testbed.testbed.app.crowd import try_crowd
    from mrc_testbed.testbed.calibration import CarriedLoad, Crowd, lasting_pps, with_load
    from mrc_testbed.topos.cost import STANDARD_COST
    from mrc_testbed.topos.crowd import CROWD_HOSTS

    training = try_training(transport, _teller(transport.word))
    many = None
    if transport.word == STANDARD_COST.of:
        carried = max(one.offered_pps for one in training.steps if one.carried)
        many = try_crowd(carried, _teller(f"{transport}, {CROWD_HOSTS} hosts"))
    confirm((training, many) if many else (training,))
    if not lasting_pps(training.steps):
        raise RunError(f"{transport}: no load was carried with room each time; run nothing else meanwhile")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    load = CarriedLoad(now, training.switch_ports, tuple(training.steps))
    _save(with_load(transport.word, load, Crowd(now, CROWD_HOSTS, tuple(many.steps)) if many else None))


def _teller(what: str) -> Callable[[Step], None]:
    from mrc_testbed.testbed.report.calibration import step_line

    return lambda step: say(step_line(what, step))


def _save(found: Calibration) -> None:
    from mrc_testbed.testbed.calibration import calibration_text, state_file
    from mrc_testbed.testbed.rundir.ownership import write_given

    try:
        write_given(state_file(), calibration_text(found))
    except OSError as error:
        raise RunError(f"cannot write {state_file()}: {error.strerror}") from error


def _show(found: Calibration) -> None:
    from mrc_testbed.testbed.report.calibration import render_calibration
    from mrc_testbed.testbed.report.console import open_console

    open_console().print(render_calibration(found))
    if reason := found.stale():
        say(f"stale, not used: {reason}; run `mrc-testbed calibrate` again", err=True)
        raise typer.Exit(ExitCode.INCONCLUSIVE)
