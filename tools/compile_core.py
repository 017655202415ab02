"""Compiles the protocol core, the loop around it and the network in virtual time with mypyc and clang, once per state
of their sources (hosts/compiled.py).

    .venv/bin/python tools/compile_core.py

What mypyc wants said differently is changed in a copy of the sources, line by line, so that tracebacks name their
lines. A failure is only reported: without machine code the core runs in Python.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
sys.path.insert(0, str(SOURCE))

from mrc_testbed.hosts import compiled  # noqa: E402
from mrc_testbed.testbed.cpus import usable_cpus  # noqa: E402

HEADERS = sysconfig.get_paths()["include"]
FLAGS = ("-shared", "-fPIC", "-O2", "-DNDEBUG", "-fwrapv", "-w")
PACKAGE = "mrc_testbed"
ROOMS = ("hosts/common/", "hosts/mrc/", "hosts/rc/")
FILES = tuple(
    f"hosts/{name}.py"
    for name in (
        *(
            "arrivals",
            "batched",
            "blocks",
            "control",
            "delay",
            "loops",
            "operations",
            "program",
            "program_state",
            "program_streams",
            "qps",
            "reports",
            "session",
            "stamps",
            "stream",
            "turns",
        ),
        "udp",
        *("gateway/gateway", "gateway/packets", "gateway/ring"),
        *("verbs/connection", "verbs/memory", "verbs/program", "verbs/qps", "verbs/served", "verbs/server"),
    )
)
"""What runs for every packet or in every turn; `hosts/daemon.py`, which is started as a program, must be Python."""
VIRTUAL = tuple(
    f"testbed/virtual/{name}.py"
    for name in (
        *("heard", "host", "inbox", "lateness", "loop", "lossless", "nic", "packet", "port", "port_row", "rules"),
        "scheduler",
    )
)
"""The same of the network in virtual time."""
INTERPRETED = (
    *("hosts/mrc/views.py", "hosts/mrc/cc/base.py", "hosts/mrc/evselect/base.py"),
    *("hosts/mrc/evselect/guard.py",),
    *("hosts/mrc/transport.py", "hosts/mrc/settings.py", "hosts/mrc/denylist.py", "hosts/rc/transport.py"),
)
"""Protocols, which classes of plugins may inherit from; what assigns its own methods; what runs
once, when a daemon is configured."""
INHERITED = (
    *("Adaptive", "Bitmap", "Counted", "EndpointBase", "FixedWindow", "Nscc"),
    *("Oblivious", "QueuePair", "Reps", "Rotation", "RxSocket", "Spec", "WeightedPlanes"),
)
"""Classes that plugins inherit from, or another transport, which stays Python, or a test in place of a socket."""
KEPT = 4
"""Folders of machine code; more branches than that are compiled again when they are set up."""
_RECIPE = "recipe"
"""File with what the machine code beside it was made by."""
_FUTURE = "from __future__ import annotations\n"
_EXTENDED = _FUTURE.rstrip() + "; from typing import TYPE_CHECKING, Final\n"
_MARK = "if TYPE_CHECKING: from mypy_extensions import mypyc_attr\n"
_MYPY_INI = """
[mypy]
strict = True
[mypy-mrc_testbed.testbed.*,mrc_testbed.topos.*]
ignore_missing_imports = True
warn_return_any = False
"""
"""Of the testbed and the topologies only what is compiled is there; values of other types are checked at run time."""
_MYPYC = """
import json, sys
from mypyc.build import include_dir, mypycify
made = mypycify(sys.argv[1:], group_name="mrc_core", target_dir="build")
rows = [(each.name, each.sources, [include_dir(), "build", *each.include_dirs]) for each in made]
print()
print(json.dumps(rows))
"""

_HELD = "interrupted_later.h"
_INTERRUPTED_LATER = r"""
#include <Python.h>

static int mrc_raise_held(void *held) {
    PyErr_SetObject((PyObject *)Py_TYPE((PyObject *)held), (PyObject *)held);
    Py_DECREF((PyObject *)held);
    return -1;
}

static inline PyObject *mrc_multiply(PyObject *left, PyObject *right) {
    PyObject *type, *held, *traceback, *product = PyNumber_Multiply(left, right);
    if (product || !PyLong_CheckExact(left) || !PyLong_CheckExact(right) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return product;
    PyErr_Fetch(&type, &held, &traceback);
    PyErr_NormalizeException(&type, &held, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    if (Py_AddPendingCall(mrc_raise_held, held) != 0)
        Py_DECREF(held);
    return mrc_multiply(left, right);
}

#define PyNumber_Multiply mrc_multiply
"""
"""Python hears signals while it multiplies integers of more than two digits. What a handler raises there (Ctrl-C, the
end of a call's time) reads as a lack of memory to mypyc's run-time library, which aborts the process. So it is held
until Python code runs again, and the product is made once more."""


class CannotCompile(Exception):
    """Why the core stays Python."""


def for_mypyc(text: str) -> str:
    """The source with the same lines, as mypyc takes it: its classes have slots anyway, and what is written in capitals
    never changes."""
    text = text.replace("(frozen=True, slots=True)", "(frozen=True)")
    text = text.replace("(slots=True)", "").replace("(slots=True, eq=False)", "(eq=False)")
    text = re.sub(r"^(_?[A-Z][A-Z0-9_]+) = ", r"\1: Final = ", text, flags=re.M)
    text = text.replace(_FUTURE, _EXTENDED)
    mark = r"@mypyc_attr(allow_interpreted_subclasses=True)\n\1"
    marked = re.sub(rf"\n(class (?:{'|'.join(INHERITED)})\b)", mark, text)
    return text if marked == text else marked.replace(_EXTENDED + "\n", _EXTENDED + _MARK)


def copy_sources(to: Path) -> list[str]:
    """Write the copy for mypyc, which wants the types of all; returns what is to be compiled."""
    for source in compiled.sources():
        target = to / PACKAGE / source
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(for_mypyc((ROOT / source).read_text(encoding="utf-8")), encoding="utf-8")
    for folder in {each for source in compiled.sources() for each in Path(source).parents}:
        (to / PACKAGE / folder / "__init__.py").touch()
    (to / "mypy.ini").write_text(_MYPY_INI, encoding="utf-8")
    return [f"{PACKAGE}/{each}" for each in compiled_files()]


def compiled_files() -> list[str]:
    """What becomes machine code. In it no type may be overruled: machine code holds to what is written."""
    found = [each for each in compiled.sources() if each.startswith(ROOMS) or each in FILES + VIRTUAL]
    return [each for each in found if each not in INTERPRETED and not each.endswith("__init__.py")]


def generate_c(work: Path, files: list[str]) -> list[tuple[str, list[str], list[str]]]:
    """Have mypyc write C: name, sources and folders of headers of each shared library."""
    (work / _HELD).write_text(_INTERRUPTED_LATER, encoding="utf-8")
    done = _run([sys.executable, "-c", _MYPYC, *files], work)
    if done.returncode != 0:
        raise CannotCompile(f"mypyc refuses it: {_first_error(done)}")
    rows: list[tuple[str, list[str], list[str]]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def compile_c(work: Path, name: str, sources: list[str], headers: list[str], target: Path) -> None:
    """One shared library, into the folder `target`."""
    folders = [f"-I{folder}" for folder in (HEADERS, *headers)]
    held = ("-include", str(work / _HELD))
    done = _run(["clang", *FLAGS, *folders, *held, *sources, "-o", str(target / (name + compiled.SUFFIX))], work)
    if done.returncode != 0:
        raise CannotCompile(f"clang: {_first_error(done)}")


def try_import(target: Path) -> None:
    """Raises CannotCompile unless daemon, protocols and virtual hosts can be imported with what is in `target`."""
    program = (
        "import sys; from importlib import import_module; from mrc_testbed.hosts import compiled, protocols\n"
        "compiled.use(sys.argv[1]); import mrc_testbed.hosts.daemon, mrc_testbed.testbed.virtual.host\n"
        "for each in set(protocols.PROTOCOLS.values()): import_module('mrc_testbed.hosts.' + each)"
    )
    done = _run(
        [sys.executable, "-c", program, str(target)], ROOT, **{compiled.SWITCH: "python", "PYTHONPATH": str(SOURCE)}
    )
    if done.returncode != 0:
        raise CannotCompile(f"what was compiled cannot be imported: {done.stderr.splitlines()[-1]}")


def _run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def _first_error(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stdout + done.stderr).splitlines()
    return next((line.strip() for line in lines if "error" in line.lower()), "no message")


def recipe() -> str:
    """What makes the machine code, beside the sources."""
    if shutil.which("clang") is None:
        raise CannotCompile("clang is missing (apt-get install clang libc6-dev)")
    if not Path(HEADERS, "Python.h").exists():
        raise CannotCompile("Python's headers are missing (apt-get install libpython3-dev)")
    try:
        mypy = metadata.version("mypy")
    except metadata.PackageNotFoundError:
        raise CannotCompile("mypy, which brings mypyc, is missing") from None
    return f"mypy {mypy}, {_run(['clang', '--version'], ROOT).stdout.splitlines()[0]}\n{Path(__file__).read_text()}"


def make(target: Path, made_by: str) -> None:
    """Fill the folder `target`, in place of what another recipe made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=target.parent) as beside:
        work, fresh = Path(folder), Path(beside) / "core"
        fresh.mkdir()
        libraries = generate_c(work, copy_sources(work))
        with ThreadPoolExecutor(usable_cpus()) as pool:
            for done in [pool.submit(compile_c, work, *library, fresh) for library in libraries]:
                done.result()
        try_import(fresh)
        (fresh / compiled.SUMS).write_text(compiled.sums(str(fresh)), encoding="utf-8")
        (fresh / _RECIPE).write_text(made_by, encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
    folders: list[Any] = sorted(target.parent.glob("core-*"), key=lambda path: path.stat().st_mtime)
    for old in folders[:-KEPT]:
        shutil.rmtree(old)


def main() -> int:
    """Entry point. 1 where the core stays Python."""
    if os.environ.get(compiled.SWITCH) == "python":
        return 0
    target = Path(compiled.folder())
    try:
        made_by = recipe()
        if not compiled.is_whole(str(target)) or (target / _RECIPE).read_text(encoding="utf-8") != made_by:
            print("setup: compiling the core, for one to two minutes")
            make(target, made_by)
    except (CannotCompile, OSError) as reason:
        print(f"setup: the core stays Python: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
