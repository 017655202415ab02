"""The command `mrc-testbed`: registers the commands (mrc_testbed.testbed.commands) and turns every error into one
line and a status."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, NoReturn

import typer

from mrc_testbed.hosts import compiled
from mrc_testbed.testbed.commands import bench, errors, incident, lesson, sweep
from mrc_testbed.testbed.commands.bounds import bounds
from mrc_testbed.testbed.commands.calibrate import calibrate
from mrc_testbed.testbed.commands.compare import compare
from mrc_testbed.testbed.commands.completion.command import completed, completion
from mrc_testbed.testbed.commands.decode import decode
from mrc_testbed.testbed.commands.export import export
from mrc_testbed.testbed.commands.fabric import attach, execute, shell, topo_show
from mrc_testbed.testbed.commands.help import Commands, HelpGroup
from mrc_testbed.testbed.commands.hunt import hunt
from mrc_testbed.testbed.commands.import_file import import_file
from mrc_testbed.testbed.commands.interop import interop
from mrc_testbed.testbed.commands.machine import clean, doctor
from mrc_testbed.testbed.commands.map import map_run
from mrc_testbed.testbed.commands.metrics import metrics
from mrc_testbed.testbed.commands.options import example
from mrc_testbed.testbed.commands.paper import paper
from mrc_testbed.testbed.commands.replay import replay
from mrc_testbed.testbed.commands.report import report
from mrc_testbed.testbed.commands.results import ResultsGroup, list_results, remove_results
from mrc_testbed.testbed.commands.run import run
from mrc_testbed.testbed.commands.scenarios import copy, list_shipped, show
from mrc_testbed.testbed.commands.show import show_switch
from mrc_testbed.testbed.commands.validate import schema, validate
from mrc_testbed.testbed.commands.worlds import worlds
from mrc_testbed.testbed.consent import known_code_alone
from mrc_testbed.testbed.errors import ExitCode, end_for, lack_of, was_interrupted
from mrc_testbed.testbed.interrupts import unwrapped
from mrc_testbed.testbed.planner.commands.plan import plan
from mrc_testbed.testbed.terminal import say
from mrc_testbed.testbed.version import version_line

_SCENARIOS, _RUNS, _RESULTS, _LEARNING = "Scenarios", "Runs", "Results", "Courses and puzzles"
_MACHINE = "This machine, and networks on paper"
"""Groups of commands in the help."""

app = Commands(
    cls=HelpGroup,
    name="mrc-testbed",
    help="An emulated multi-plane SRv6 cluster that shows how MRC survives network failure.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
topo_app = Commands(cls=HelpGroup, help="Look at fabrics without building them.", no_args_is_help=True)
app.add_typer(topo_app, name="topo", rich_help_panel=_SCENARIOS)
scenarios_app = Commands(cls=HelpGroup, invoke_without_command=True)
app.add_typer(scenarios_app, name="scenarios", rich_help_panel=_SCENARIOS)
sweep_app = Commands(
    cls=HelpGroup, help="More runs than one machine can do: on Dask, SLURM or GitHub.", no_args_is_help=True
)
app.add_typer(sweep_app, name="sweep", rich_help_panel=_RUNS)
bench_app = Commands(cls=HelpGroup, help="The tests of the IETF draft on fabrics of AI clusters.", no_args_is_help=True)
app.add_typer(bench_app, name="bench", rich_help_panel=_RUNS)
lesson_app = Commands(cls=HelpGroup, help="A course: lessons that check themselves.", no_args_is_help=True)
app.add_typer(lesson_app, name="lesson", rich_help_panel=_LEARNING)
incident_app = Commands(cls=HelpGroup, help="Cases in which something may be broken.", no_args_is_help=True)
app.add_typer(incident_app, name="incident", rich_help_panel=_LEARNING)
results_app = Commands(invoke_without_command=True, cls=ResultsGroup)
app.add_typer(results_app, name="results", rich_help_panel=_RESULTS)

app.command(epilog=example("run scenarios/quickstart.yaml --seed 3 --set endpoint.ev_active=8"), rich_help_panel=_RUNS)(
    run
)
app.command(epilog=example("hunt hunts/training --seeds 1000"), rich_help_panel=_RUNS)(hunt)
app.command(epilog=example("validate scenarios/*.yaml"), rich_help_panel=_SCENARIOS)(validate)
app.command(epilog=example("interop mine.json -o mine/matrix.html"), rich_help_panel=_RUNS)(interop)
app.command(epilog=example("paper --only 9a,14"), rich_help_panel=_RUNS)(paper)
scenarios_app.callback(epilog=example("scenarios"))(list_shipped)
scenarios_app.command("show", epilog=example("scenarios show paper/fig14"))(show)
scenarios_app.command("copy", epilog=example("scenarios copy quickstart my.yaml"))(copy)
app.command("import", epilog=example("import incast.cm -o incast.yaml"), rich_help_panel=_SCENARIOS)(import_file)
app.command(epilog=example("schema > scenario.schema.json"), rich_help_panel=_SCENARIOS)(schema)
app.command(
    epilog=example("completion bash > ~/.local/share/bash-completion/completions/mrc-testbed"), rich_help_panel=_MACHINE
)(completion)
app.command(epilog=example("doctor"), rich_help_panel=_MACHINE)(doctor)
app.command(epilog=example("calibrate"), rich_help_panel=_MACHINE)(calibrate)
topo_app.command("show", epilog=example("topo show scenarios/quickstart.yaml --svg fabric.svg"))(topo_show)
app.command(epilog=example("plan --gpus 131072 --nic 800G --planes 8 --switch 51.2T"), rich_help_panel=_MACHINE)(plan)
app.command(
    epilog=example("shell scenarios/quickstart.yaml   then: h0 ping h5, p0-t1-2 ip -6 route"), rich_help_panel=_RUNS
)(shell)
app.command(epilog=example("attach   then: h0 ss -6u, p0-t1-2 ip -6 route"), rich_help_panel=_RUNS)(attach)
app.command(
    "exec",
    epilog=example("exec h3 -- ping -c 3 h5"),
    context_settings={"allow_interspersed_args": False},
    rich_help_panel=_RUNS,
)(execute)
app.command(epilog=example("clean"), rich_help_panel=_RUNS)(clean)
app.command(epilog=example("replay latest"), rich_help_panel=_RUNS)(replay)
app.command(epilog=example("report latest"), rich_help_panel=_RESULTS)(report)
app.command(epilog=example("metrics latest"), rich_help_panel=_RESULTS)(metrics)
app.command("map", epilog=example("map latest"), rich_help_panel=_RESULTS)(map_run)
app.command("show", epilog=example("show latest p0-t0-0 queue counters"), rich_help_panel=_RESULTS)(show_switch)
app.command(epilog=example("export latest --to perfetto"), rich_help_panel=_RESULTS)(export)
app.command(epilog=example("compare results/*-quickstart"), rich_help_panel=_RESULTS)(compare)
app.command(epilog=example("bounds results/*-quickstart"), rich_help_panel=_RESULTS)(bounds)
app.command(epilog=example("worlds quickstart"), rich_help_panel=_RESULTS)(worlds)
results_app.callback(epilog=example("results"))(list_results)
results_app.command("rm", epilog=example("results rm --older-than 7d --verdict pass"))(remove_results)
sweep_app.command("plan", epilog=example("sweep plan quickstart --repeat 10 --vary-seed --out big/"))(sweep.plan)
sweep_app.command("run", epilog=example("sweep run big/ --on tls://vm0:8786"))(sweep.run)
sweep_app.command("cell", epilog=example("sweep cell big/ --index 3 --of 20"))(sweep.cell)
sweep_app.command("matrix", epilog=example("sweep matrix big/ --jobs 20"))(sweep.matrix)
sweep_app.command("gather", epilog=example("sweep gather big/ parts/*"))(sweep.gather)
sweep_app.command("keys", epilog=example("sweep keys certs/"))(sweep.keys)
bench_app.command("list", epilog=example("bench list"))(bench.list_tests)
bench_app.command("plan", epilog=example("bench plan --transports mrc,roce-16 --budget 2h"))(bench.plan)
bench_app.command("run", epilog=example("bench run --tests 5.1,9 --out bench/"))(bench.run)
bench_app.command("page", epilog=example("bench page bench/ -o mine.html"))(bench.page)
lesson_app.command("list", epilog=example("lesson list"))(lesson.list_lessons)
lesson_app.command("show", epilog=example("lesson show 4"))(lesson.show)
lesson_app.command("start", epilog=example("lesson start 4 mine"))(lesson.start)
lesson_app.command("check", epilog=example("lesson check mine --virtual"))(lesson.check)
lesson_app.command("hint", epilog=example("lesson hint 4"))(lesson.hint)
lesson_app.command("solution", epilog=example("lesson solution 4"))(lesson.solution)
lesson_app.command("restore", epilog=example("lesson restore mine"))(lesson.restore)
lesson_app.command("grade", epilog=example("lesson grade students/* --virtual"))(lesson.grade)
lesson_app.command("course", epilog=example("lesson course term-1 4 6"))(lesson.course)
lesson_app.command("new", epilog=example("lesson new my-lesson"))(lesson.new)
incident_app.command("kinds", epilog=example("incident kinds"))(incident.kinds)
incident_app.command("draw", epilog=example("incident draw 7"))(incident.draw)
incident_app.command("observe", epilog=example("incident observe cases/5e8d4dcbf9e0"))(incident.observe)
incident_app.command("answer", epilog=example("incident answer cases/5e8d4dcbf9e0 mine.jsonl"))(incident.answer)
incident_app.command("serve", epilog=example("incident serve cases/5e8d4dcbf9e0 -- python3 docs/examples/detector.py"))(
    incident.serve
)
incident_app.command("score", epilog=example("incident score cases/5e8d4dcbf9e0"))(incident.score)
incident_app.command("set", epilog=example("incident set cases/first --count 20"))(incident.score_set)
app.command(epilog=example("decode t1.pcap --limit 20 --ev 1/0"), rich_help_panel=_RESULTS)(decode)

_ADMIN_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_READER_LEFT = 128 + 13
"""Exit status: what a shell reports of a command that SIGPIPE has ended; not every system has that signal."""


def _tell_version(asked: bool) -> None:
    if asked:
        say(version_line())
        raise typer.Exit


_Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")]
_Version = Annotated[
    bool,
    typer.Option("--version", callback=_tell_version, is_eager=True, help="Show version, commit and location."),
]


@app.callback()
def _options(debug: _Debug = False, version: _Version = False) -> None:
    errors.GlobalOptions.debug = debug


def _reach_admin_tools() -> None:
    """Adds sbin to PATH, which `su` and plain users lack and where Debian keeps tc and ifconfig."""
    known = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join([*known, *(folder for folder in _ADMIN_FOLDERS if folder not in known)])


def _reader_left() -> NoReturn:
    """Discards further output, including what the interpreter flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(_READER_LEFT)


def _open_standard_streams() -> None:
    """Opens /dev/null for closed standard streams; else the next opened file would become standard output."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            if null > 2:
                os.close(null)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _print_what_can_be_printed() -> None:
    """A character that the encoding of an output lacks becomes `?`, as in a file or pipe on Windows."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def main() -> None:
    """Entry point: every error is one clear line and an exit status; a traceback only with --debug."""
    _open_standard_streams()
    _print_what_can_be_printed()
    _reach_admin_tools()
    if complaint := compiled.complaint():
        say(f"warning: {complaint}", err=True)
    try:
        with unwrapped(), known_code_alone():
            if completed(app, sys.argv[1:]):
                sys.exit(ExitCode.PASS)
            app()
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        _reader_left()
    except SystemExit as stop:
        # Typer answers a broken pipe with status 1, which here means that a run failed.
        if isinstance(stop.__context__, BrokenPipeError):
            _reader_left()
        raise
    except (MemoryError, SystemError) as error:
        if errors.GlobalOptions.debug or not (lack := lack_of(error)):
            sys.exit(errors.show(error))
        end_for(lack)
    except Exception as error:
        sys.exit(ExitCode.INTERRUPTED if was_interrupted(error) else errors.show(error))
