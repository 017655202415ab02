"""The core as machine code: found for its own sources and no others, left alone on demand, and the same results."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrc_testbed.hosts import compiled
from mrc_testbed.testbed import cli
from tests.unit.virtual.test_run import FIGURES, PYTHON, SMALL, figures_of

ROOT = Path(__file__).resolve().parents[3]
WHICH = "import {0}; from mrc_testbed.hosts import compiled; print(compiled.in_use(), {0}.__file__)"
SENDER = WHICH.format("mrc_testbed.hosts.mrc.sender")
PLACE = "from mrc_testbed.hosts import compiled; print(compiled.folder())"
COMPILE = "import sys; sys.path.insert(0, 'tools'); import compile_core as c; {}; sys.exit(c.main())"
MADE = Path(compiled.folder()).is_dir() or bool(os.environ.get("CI"))
needs_it = pytest.mark.skipif(not MADE, reason="make setup has not compiled the core here")


def python(*arguments: str, root: Path = ROOT, core: str = "compiled") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}", compiled.SWITCH: core}
    return subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True, check=False
    )


COMPILER = ("tools/compile_core.py", "src/mrc_testbed/__init__.py", "testbed/cpus.py")
"""It, and what it imports beside `hosts`."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What is compiled, and what compiles it."""
    for name in (*compiled.sources(), *COMPILER):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@needs_it
@pytest.mark.parametrize(
    "module", ["mrc_testbed.hosts.mrc.sender", "mrc_testbed.hosts.loops", "mrc_testbed.testbed.virtual.scheduler"]
)
def test_what_was_compiled_of_these_sources_is_used(module: str) -> None:
    which, file = python("-c", WHICH.format(module)).stdout.split()
    assert which == "compiled"
    assert Path(file).parent == Path(compiled.folder())


@needs_it
def test_a_variable_leaves_it_alone() -> None:
    assert python("-c", SENDER, core="python").stdout.split() == ["Python", str(ROOT / "hosts/mrc/sender.py")]


@needs_it
@pytest.mark.parametrize(
    "changed",
    [
        *(f"hosts/{name}.py" for name in ("mrc/wire", "common/psn", "mrc/cc/nscc", "loops", "network")),
        *("testbed/virtual/port.py", "testbed/switching/thresholds.py"),
    ],
)
@pytest.mark.nightly(keep=2)
def test_of_a_changed_source_nothing_is_used_that_was_compiled_before(checkout: Path, changed: str) -> None:
    assert python("-c", SENDER, root=checkout).stdout.split()[0] == "compiled"
    with (checkout / changed).open("a", encoding="utf-8") as file:
        file.write("# another\n")
    assert python("-c", SENDER, root=checkout).stdout.split() == ["Python", str(checkout / "hosts/mrc/sender.py")]


INTERRUPTED = """
import signal
from mrc_testbed.hosts.common.prng import Prng

class Stop(KeyboardInterrupt):
    pass

def stop(number, frame):
    raise Stop(signal.Signals(number).name)

def work():
    while True:
        Prng(0xFFFFFFFF)

signal.signal(signal.SIGALRM, stop)
names = []
for _ in range(500):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        work()
    except Stop as stopped:
        names.append(str(stopped))
print(len(names), *set(names))
"""


@needs_it
def test_a_signal_while_large_numbers_are_multiplied_is_heard_and_ends_nothing_else() -> None:
    """Ctrl-C in a run in virtual time ended one process of four by SIGABRT: "fatal: out of memory"."""
    ended = python("-c", INTERRUPTED)
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (0, ["500", "SIGALRM"], "")


def made_of(content: bytes, sums: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In a process that has loaded nothing yet: machine code of the present sources."""
    place = tmp_path / Path(compiled.folder()).name
    place.mkdir()
    (place / (compiled.LIBRARY + compiled.SUFFIX)).write_bytes(content)
    if sums is not None:
        (place / compiled.SUMS).write_text(sums or compiled.sums(str(place)))
    monkeypatch.setattr(compiled, "CACHE", str(tmp_path))
    monkeypatch.setattr(compiled, "_unusable", [])
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if not isinstance(each, compiled._Finder)])
    monkeypatch.delitem(sys.modules, compiled.LIBRARY, raising=False)
    monkeypatch.delenv(compiled.SWITCH, raising=False)
    return place


@pytest.mark.parametrize(
    ("sums", "said"),
    [
        ("a 1 0", "{} is damaged; `make setup` makes it again"),
        (None, "{} is damaged; `make setup` makes it again"),
        ("", "{} cannot be loaded: "),
    ],
    ids=["torn", "half copied", "of another system"],
)
def test_what_is_damaged_is_not_loaded_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sums: str | None, said: str
) -> None:
    """A torn file ended each run by SIGSEGV or SIGBUS, without a word, and `doctor` said `compiled`."""
    said = said.format(made_of(b"no machine code", sums, tmp_path, monkeypatch))
    compiled.use_what_fits()
    assert compiled.in_use() == "Python"
    assert compiled.described().startswith(f"Python ({said}")
    monkeypatch.setattr(sys, "argv", ["mrc-testbed", "--version"])
    with pytest.raises(SystemExit):
        cli.main()
    assert f"warning: the compiled core is not used, runs are slower: {said}" in capsys.readouterr().err


ADVICE = "from mrc_testbed.hosts import compiled; print(compiled.advice())"


def test_a_checkout_without_machine_code_says_what_makes_it(checkout: Path) -> None:
    with (checkout / "hosts/loops.py").open("a", encoding="utf-8") as file:
        file.write("# never compiled\n")
    assert "`make setup`" in python("-c", ADVICE, root=checkout).stdout
    without_headers = f"import sysconfig; sysconfig.get_paths = lambda: {{'include': 'nowhere'}}; {ADVICE}"
    said = python("-c", without_headers, root=checkout).stdout
    assert "; `apt-get install libpython3-dev`, then `make setup`, compiles it" in said
    assert python("-c", ADVICE, root=checkout, core="python").stdout == "\n"  # as was asked for
    (checkout / "tools/compile_core.py").unlink()
    assert python("-c", ADVICE, root=checkout).stdout == "\n"  # a wheel has nothing to compile


@needs_it
def test_with_machine_code_there_is_no_advice() -> None:
    assert python("-c", ADVICE).stdout == "\n"


@pytest.mark.parametrize("advice", ["", "it is slow"])
def test_a_run_ends_with_the_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], advice: str
) -> None:
    monkeypatch.setattr(compiled, "advice", lambda: advice)
    monkeypatch.setattr(sys, "argv", ["mrc-testbed", "run", str(SMALL), "--virtual", "-q", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    assert capsys.readouterr().err == (f"note: {advice}\n" if advice else "")


@needs_it
def test_what_was_made_is_whole_and_a_torn_copy_is_not(tmp_path: Path) -> None:
    copy = shutil.copytree(compiled.folder(), tmp_path / "core")
    assert compiled.is_whole(str(copy))
    library = copy / (compiled.LIBRARY + compiled.SUFFIX)
    os.truncate(library, library.stat().st_size // 2)
    assert not compiled.is_whole(str(copy))


@pytest.mark.parametrize(
    ("without", "reason"),
    [
        ("c.shutil.which = lambda name: None", "clang is missing (apt-get install clang libc6-dev)"),
        ("c.HEADERS = 'nowhere'", "Python's headers are missing (apt-get install libpython3-dev)"),
        ("c.FLAGS = ('-no-such-flag',)", "clang: "),
    ],
)
@pytest.mark.nightly(keep=2)
def test_where_it_cannot_be_compiled_setup_goes_on_and_says_so(checkout: Path, without: str, reason: str) -> None:
    # Sources that mypyc is done with at once.
    shutil.rmtree(checkout / "testbed/virtual")
    shutil.rmtree(checkout / "testbed/switching")
    shutil.rmtree(checkout / "hosts")
    (checkout / "hosts").mkdir()
    for name in ("__init__.py", "compiled.py"):
        shutil.copy(ROOT / "hosts" / name, checkout / "hosts")
    (checkout / "hosts/loops.py").write_text("A = 1\n", encoding="utf-8")
    done = python("-c", COMPILE.format(without), root=checkout)
    assert done.returncode == 1
    assert done.stderr.startswith(f"setup: the core stays Python: {reason}")
    assert not Path(python("-c", PLACE, root=checkout).stdout.strip()).exists()


def test_nothing_is_compiled_that_would_be_left_alone(checkout: Path) -> None:
    done = python("-c", COMPILE.format("c.recipe = None"), root=checkout, core="python")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_it
@pytest.mark.parametrize("core", ["compiled", "python"])
@pytest.mark.nightly(keep=1)
def test_a_virtual_run_has_the_same_figures_on_both(tmp_path: Path, core: str) -> None:
    done = python("-c", PYTHON, "run", str(SMALL), "--virtual", "-q", "--out", str(tmp_path), core=core)
    assert done.returncode == 0, done.stderr
    assert figures_of((tmp_path / "latest").resolve()) == FIGURES


LOSSY = """
name: small
transport: roce
roce: {recovery: selective}
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 40ms}
workload: [{write: {from: h0, to: h1, bytes: 4MiB}}]
faults: [{plane-loss: p0, at: 100ms, for: 2s, loss: 5%}]
"""


LOSSLESS = """
name: small
transport: roce
roce: {buffers: pfc, congestion_control: none}
fabric: {planes: 1, t0_groups: 2, t1: 2, hosts_per_t0: 3, port_rate: 25mbit, rtt: 40ms}
workload: [{incast: {from: [h1, h2, h3, h4], to: h0, bytes: 1MiB}}]
expect: [pauses > 0]
"""


def test_no_type_of_what_is_compiled_is_overruled() -> None:
    # mypy passes over such a line, and machine code ends at it.
    names = python("-c", COMPILE.replace("c.main()", "print(*c.compiled_files())").format("pass")).stdout.split()
    assert "testbed/virtual/lossless.py" in names
    assert not [name for name in names if "type: ignore" in (ROOT / name).read_text(encoding="utf-8")]


def declared(of: ast.ClassDef) -> set[str]:
    """The attributes to which a class gives a type."""
    targets = [each.target for each in ast.walk(of) if isinstance(each, ast.AnnAssign)]
    own = {each.target.id for each in of.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)}
    return own | {
        each.attr for each in targets if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "self"
    }


def test_no_compiled_class_declares_what_its_base_declares() -> None:
    """Such an attribute is visited twice by the garbage collector, which then takes what it holds for used: an endpoint
    with all its QPs was never freed."""
    names = python("-c", COMPILE.replace("c.main()", "print(*c.compiled_files())").format("pass")).stdout.split()
    trees = [ast.parse((ROOT / name).read_text(encoding="utf-8")) for name in names]
    classes = {each.name: each for tree in trees for each in ast.walk(tree) if isinstance(each, ast.ClassDef)}

    def bases(of: ast.ClassDef) -> Iterator[ast.ClassDef]:
        for base in (classes[name] for each in of.bases if (name := ast.unparse(each).split("[")[0]) in classes):
            yield base
            yield from bases(base)

    assert len(list(bases(classes["Endpoint"]))) == 1
    twice = {
        f"{each.name}.{name}": base.name
        for each in classes.values()
        for base in bases(each)
        for name in declared(each) & declared(base)
    }
    assert not twice


HELD = """
import gc, sys
from mrc_testbed.testbed import cli
try:
    cli.main()
except SystemExit as ended:
    assert not ended.code, ended.code
gc.collect()
print([name for each in gc.get_objects() if (name := type(each).__name__) in ("Endpoint", "RcEndpoint", "Qp", "RcQp")])
"""


@needs_it
@pytest.mark.parametrize("transport", ["mrc", "roce"])
def test_what_a_run_held_is_free_after_it(tmp_path: Path, transport: str) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(
        f"name: small\ntransport: {transport}\n"
        "fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 40ms}\n"
        "workload: [{write: {from: h0, to: h1, bytes: 64KiB}}]\n",
        encoding="utf-8",
    )
    done = python("-c", HELD, "run", str(scenario), "--virtual", "-q", "--out", str(tmp_path / "results"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


@needs_it
@pytest.mark.parametrize("text", [LOSSY, LOSSLESS], ids=["lossy", "lossless"])
@pytest.mark.nightly(keep=1)
def test_another_transport_counts_with_it_as_without(tmp_path: Path, text: str) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(text, encoding="utf-8")
    counters = []
    for core in ("compiled", "python"):
        done = python("-c", PYTHON, "run", str(scenario), "--virtual", "-q", "--out", str(tmp_path / core), core=core)
        assert done.returncode == 0, done.stdout + done.stderr
        counters.append((tmp_path / core / "latest" / "counters.json").read_text(encoding="utf-8"))
    assert counters[0] == counters[1]


REFUSES = """
from mrc_testbed.hosts.rc.counters import RcCounters, RcIgnored
counters = RcCounters()
counters.refuse(RcIgnored.OLD_NAK)
print(counters.as_dict()["refused_old_nak"])
"""


@needs_it
def test_another_transport_refuses_packets_with_it() -> None:
    assert python("-c", REFUSES).stdout == "1\n"


HIDDEN = """
import importlib, pkgutil, types
from mrc_testbed import hosts
WITHIN = "mrc_testbed.hosts."
names = [each.name for each in pkgutil.walk_packages(hosts.__path__, WITHIN) if not each.name.endswith("__main__")]
found = {each for name in names for each in vars(importlib.import_module(name)).values() if isinstance(each, type)}
for each in found:
    for base in each.__mro__[1:-1]:
        for name in each.__dict__.keys() & base.__dict__.keys() - {"__dict__"}:
            of = each.__dict__[name], base.__dict__[name]
            if [type(one) for one in of] == [types.MemberDescriptorType, types.GetSetDescriptorType]:
                print(each.__name__, base.__name__, name)
"""


@needs_it
def test_no_slot_of_a_python_class_hides_an_attribute_of_its_compiled_base() -> None:
    assert python("-c", HIDDEN).stdout == ""


@needs_it
@pytest.mark.slow
@pytest.mark.nightly
def test_the_simulations_have_the_same_results() -> None:
    done = python("-m", "tests.sim.results")
    assert done.stdout == (ROOT / "tests/sim/results.txt").read_text(encoding="utf-8"), done.stderr


INHERITS = """
from mrc_testbed.hosts.mrc.cc import Nscc
class Mine(Nscc):
    def __init__(self, timing):
        super().__init__(timing)
        self.seen = 0
    def on_sack(self, *heard):
        self.seen += 1
        super().on_sack(*heard)
"""
FLOAT = """
class Mine:
    def __init__(self, timing):
        self.window = 2.5 * timing.packet_bytes
    def begin(self, *heard):
        pass
    on_sack = on_trim = on_loss = on_penalty = begin
"""


@needs_it
@pytest.mark.parametrize("source", [INHERITS, FLOAT], ids=["inherits from ours", "has a window of type float"])
@pytest.mark.nightly(keep=1)
def test_plugins_work_with_it(tmp_path: Path, source: str) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(f"{source}PLUGIN = {{'congestion_control': {{'mine': Mine}}}}\n", encoding="utf-8")
    scenario = tmp_path / "small.yaml"
    scenario.write_text(
        f"name: small\nplugins: [{ROOT / 'docs/examples/random_spray.py'}, {plugin}]\n"
        "endpoint: {congestion_control: mine, ev_selection: random-spray}\n"
        "fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 40ms}\n"
        "workload: [{train: {hosts: all, steps: 1, compute: 20ms, allreduce: 64KiB}}]\n",
        encoding="utf-8",
    )
    done = python("-c", PYTHON, "run", str(scenario), "--virtual", "-q", "--out", str(tmp_path / "results"))
    assert done.returncode == 0, done.stdout + done.stderr
