"""Where this program's own Python code comes from: never from the folder that a command runs in.

A folder that somebody sent may hold a `socket.py`, and Python looks into the current folder first for `python -m` and
`python -c`. So each Python that this program starts is isolated (`-I`), and finds modules where this one does.

Loaded before anything else by `mrc_testbed.__main__`: it imports what Python has loaded by then, and nothing more. So
it has no `from __future__` either, which is a module, too.
"""

import os
import sys

import mrc_testbed

PLACE = os.path.dirname(os.path.dirname(os.path.realpath(mrc_testbed.__file__)))
"""The folder that contains `mrc_testbed`: `src` of the checkout, or the folder of installed packages."""
_START = """\
import sys
ours = {path!r}
sys.path[:] = ours + [each for each in sys.path if each not in ours]
import runpy
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""
"""The child's own path may have more: an editable package whose folder is the current one."""


def leave_out_the_current_folder() -> None:
    """From now on this process, and what it starts, looks for modules and programs in folders with absolute names.

    What `PYTHONPATH` names by an absolute path is the user's own word, and stays. So does the folder that contains
    `mrc_testbed`, if it is the current one.
    """
    left_out = [each for each in _listed("PYTHONPATH") if not os.path.isabs(each)]
    here = {os.path.abspath(each) for each in left_out}
    if sys.path and sys.path[0] == _current_folder():
        here.add(sys.path[0])
        del sys.path[0]  # that `python -m` has put there
    sys.path[:] = [each for each in sys.path if os.path.isabs(each) and (each not in here or _is_ours(each))]
    sys.path[:] = _with_ours(sys.path)
    for name in ("PYTHONPATH", "PATH"):
        if name in os.environ:
            os.environ[name] = os.pathsep.join(each for each in _listed(name) if os.path.isabs(each))
    os.environ["PYTHONSAFEPATH"] = "1"  # for what multiprocessing starts


def python_command(module: str, *arguments: str, place: str = PLACE) -> list[str]:
    """The command that runs a module of ours in a Python of its own, as `python -m` does. It reads no variable of the
    environment that begins with PYTHON, and imports nothing from the current folder. `place`: the folder that contains
    the module's package."""
    path = _path_of_children() if place == PLACE else [place, *_path_of_children()]
    return [*isolated_python(), _START.format(path=path, module=module), *arguments]


def isolated_python() -> tuple[str, ...]:
    """What comes before the text of a program."""
    return sys.executable, "-I", "-c"


def _path_of_children() -> list[str]:
    here = _current_folder()
    return _with_ours([each for each in sys.path if os.path.isabs(each) and each != here])


def _with_ours(path: list[str]) -> list[str]:
    return path if any(map(_is_ours, path)) else [PLACE, *path]


def _listed(name: str) -> list[str]:
    text = os.environ.get(name, "")
    return text.split(os.pathsep) if text else []


def _is_ours(folder: str) -> bool:
    return os.path.realpath(folder) == PLACE


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""
