"""The command `mrc-testbed`. Every command imports what it needs when it runs: `--help` must be quick."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from testbed.commands.replay import replay
from testbed.errors import ExitCode, ScenarioError, TestbedError, UsageError
from topos.shape import Shape

if TYPE_CHECKING:
    from testbed.scenario import Scenario

app = typer.Typer(
    name="mrc-testbed",
    help="An emulated multi-plane SRv6 cluster that shows how MRC survives network failure.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
topo_app = typer.Typer(help="Look at fabrics without building them.", no_args_is_help=True)
app.add_typer(topo_app, name="topo")

_Scenario = Annotated[Path, typer.Argument(help="Scenario file (YAML).", show_default=False)]
_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the file, as in fabric.planes=2. Repeatable."),
]
_Seed = Annotated[int | None, typer.Option(help="Use this seed instead of the file's.", show_default=False)]
_Out = Annotated[Path, typer.Option(help="Folder in which each run gets a folder of its own.")]


_ADMIN_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


class _State:
    debug = False


@app.callback()
def _options(debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False) -> None:
    _State.debug = debug


def _example(command: str) -> str:
    return f"[bold]Example:[/bold] mrc-testbed {command}"


@app.command(epilog=_example("run scenarios/quickstart.yaml --seed 3 --set endpoint.ev_active=8"))
def run(
    scenario: _Scenario,
    set_: _Set = None,
    seed: _Seed = None,
    out: _Out = Path("results"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the verdict line.")] = False,
) -> None:
    """Build the fabric, run the workload while faults come and go, and give a verdict.

    Exit status: 0 pass, 1 fail, 2 bad input, 3 inconclusive, 4 the machine lacks something, 130 interrupted.
    """
    from testbed.runner.run import run_scenario
    from testbed.scenario import load_scenario

    raise typer.Exit(run_scenario(load_scenario(scenario, set_ or [], seed), out, quiet))


@app.command(epilog=_example("validate scenarios/*.yaml"))
def validate(
    scenarios: Annotated[list[Path], typer.Argument(help="Scenario files.", show_default=False)],
    set_: _Set = None,
    seed: _Seed = None,
) -> None:
    """Check scenario files and report every mistake with its place; nothing is built."""
    from testbed.scenario import load_scenario

    failed = False
    for path in scenarios:
        try:
            loaded = load_scenario(path, set_ or [], seed)
        except ScenarioError as error:
            _show(error)
            failed = True
        else:
            needs = "; needs the port program, see `mrc-testbed doctor`" if loaded.needs_port_program else ""
            typer.echo(f"{path}: ok: {loaded.name}, takes about {loaded.estimate_ns / 1e9:.0f} s{needs}")
            _tell_draws(loaded)
            _warn_of_budget(loaded.shape())
    raise typer.Exit(ExitCode.USAGE if failed else ExitCode.PASS)


@app.command(epilog=_example("schema > scenario.schema.json"))
def schema() -> None:
    """Print the JSON Schema of scenario files, for completion and checks in an editor."""
    import json

    from testbed.scenario import scenario_json_schema

    typer.echo(json.dumps(scenario_json_schema(), indent=2))


@app.command(epilog=_example("doctor"))
def doctor() -> None:
    """Show what this machine can do, what is lost without each part, and the fix."""
    from testbed.report.doctor import show_doctor

    raise typer.Exit(show_doctor())


@topo_app.command("show", epilog=_example("topo show scenarios/quickstart.yaml --svg fabric.svg"))
def topo_show(
    scenario: _Scenario,
    set_: _Set = None,
    svg: Annotated[Path | None, typer.Option(help="Write a drawing there as SVG.", show_default=False)] = None,
) -> None:
    """Show the fabric of a scenario: a table of names and addresses, and a drawing."""
    import shutil

    from testbed.scenario import load_scenario
    from topos import render
    from topos.plan import build_plan

    shape = load_scenario(scenario, set_ or []).shape()
    plan = build_plan(shape)
    typer.echo(render.table(plan))
    typer.echo(render.drawing(plan, shutil.get_terminal_size().columns))
    _warn_of_budget(shape)
    if svg is not None:
        try:
            svg.write_text(render.svg(plan), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--svg {svg}: cannot be written: {error.strerror}") from error


@app.command(epilog=_example("shell scenarios/quickstart.yaml   then: h0 ping h5, p0-t1-2 ip -6 route"))
def shell(scenario: _Scenario, set_: _Set = None) -> None:
    """Build the fabric of a scenario and give Mininet's prompt on it; leaving the prompt takes it down."""
    from testbed.runner.shell import open_shell
    from testbed.scenario import load_scenario

    raise typer.Exit(open_shell(load_scenario(scenario, set_ or [])))


@app.command(epilog=_example("clean"))
def clean(out: _Out = Path("results")) -> None:
    """Finish the books of runs that were killed: each gets its verdict. Nothing else is touched.

    A dead run leaves no process, namespace or link behind; the kernel takes them with it.
    """
    from testbed.runner.clean import finish_abandoned

    finished = finish_abandoned(out)
    for folder, outcome in finished:
        typer.echo(f"{folder}: was killed; {outcome}")
    if not finished:
        typer.echo(f"{out}: nothing to clean")


app.command(epilog=_example("replay results/20260101T120000Z-quickstart"))(replay)


@app.command(epilog=_example("decode t1.pcap --limit 20 --ev 1/0"))
def decode(
    file: Annotated[
        Path | None, typer.Argument(help="Capture: pcap or pcapng, also gzipped.", show_default=False)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=0, help="Print so many packets; 0 for the summary alone.", show_default=False)
    ] = None,
    psn: Annotated[
        str | None, typer.Option(metavar="N or N-M", help="Only packets about these PSNs.", show_default=False)
    ] = None,
    ev: Annotated[
        str | None, typer.Option(metavar="PLANE/UPLINK", help="Only packets on or about this path.", show_default=False)
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object a packet, then one for the summary.")] = False,
    fields: Annotated[bool, typer.Option("--fields", help="Every field of every header under each packet.")] = False,
    dissector: Annotated[
        bool, typer.Option("--dissector", help="Where the Wireshark dissector is, and its use.")
    ] = False,
) -> None:
    """Show the MRC packets of a capture, one a line, and count them by type and path.

    tcpdump on any port of the fabric makes such captures; docs/wireshark.md shows how, and what the lines mean.
    """
    from testbed.wireview.decode import decode as show
    from testbed.wireview.decode import dissector_help
    from testbed.wireview.select import selection

    if dissector:
        typer.echo(dissector_help())
    elif file is None:
        raise typer.BadParameter("which capture? (or --dissector)")
    else:
        show(file, selection(psn, ev), limit, json_, fields)


def _tell_draws(scenario: Scenario) -> None:
    from testbed.report.draws import draw_lines, empty_chaos

    for line in draw_lines(scenario):
        typer.echo(f"  {line}")
    for warning in empty_chaos(scenario):
        typer.echo(f"warning: {warning}", err=True)


def _warn_of_budget(shape: Shape) -> None:
    from topos.budget import budget

    for warning in budget(shape).warnings:
        typer.echo(f"warning: {warning.text}", err=True)


def _show(error: TestbedError) -> None:
    if isinstance(error, ScenarioError):
        from testbed.scenario import render_problems

        typer.echo(render_problems(error), err=True)
    else:
        typer.echo(f"mrc-testbed: {error}", err=True)


def _reach_admin_tools() -> None:
    """`su` and plain users have no sbin in their PATH, where Debian keeps tc and ifconfig."""
    known = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join([*known, *(folder for folder in _ADMIN_FOLDERS if folder not in known)])


def _reader_left() -> NoReturn:
    """Say nothing more, not even when the interpreter flushes its streams."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(128 + signal.SIGPIPE)


def _open_standard_streams() -> None:
    """Started with `>&-`, the next file opened would be standard output, and get what is printed."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            if null > 2:
                os.close(null)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def main() -> None:
    """Entry point: every error is one clear line and an exit status; a traceback only with --debug."""
    _open_standard_streams()
    _reach_admin_tools()
    try:
        app()
    except TestbedError as error:
        if _State.debug:
            traceback.print_exc()
        _show(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        _reader_left()
    except SystemExit as stop:
        # Typer answers a broken pipe with status 1, which here means that a run failed.
        if isinstance(stop.__context__, BrokenPipeError):
            _reader_left()
        raise
    except Exception as error:
        if _State.debug:
            traceback.print_exc()
        typer.echo(f"mrc-testbed: internal error: {type(error).__name__}: {error} (more with --debug)", err=True)
        sys.exit(ExitCode.INCONCLUSIVE)
