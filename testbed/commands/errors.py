"""Error output: one clear line on standard error, a traceback only with --debug."""

from __future__ import annotations

import errno
import os
import traceback

from mrc_testbed.testbed.errors import ExitCode, ScenarioError, TestbedError, lack_of
from mrc_testbed.testbed.terminal import say

_OF_THE_PATH = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP),
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
}
"""Errors of the system that say that a path which somebody named cannot be used."""
_PATHS = (str, bytes, os.PathLike)


class GlobalOptions:
    """Set by the options before the command."""

    debug = False


def show(error: Exception) -> ExitCode:
    """Print an error, and return its exit status."""
    if GlobalOptions.debug:
        say("".join(traceback.format_exception(error)), err=True, end="")
    if isinstance(error, ScenarioError):
        from mrc_testbed.testbed.scenario import render_problems

        say(render_problems(error), err=True)
    elif isinstance(error, TestbedError):
        say(f"mrc-testbed: {error}", err=True)
    elif isinstance(error, OSError) and isinstance(error.filename, _PATHS) and error.errno in _OF_THE_PATH:
        say(f"mrc-testbed: {os.fsdecode(error.filename)}: {error.strerror}", err=True)
        return ExitCode.USAGE
    elif lack := lack_of(error):
        say(f"mrc-testbed: {lack}", err=True)
    else:
        say(f"mrc-testbed: internal error: {type(error).__name__}: {error} (more with --debug)", err=True)
    return error.exit_code if isinstance(error, TestbedError) else ExitCode.INCONCLUSIVE
