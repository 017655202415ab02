"""Which plugins may be run: the one rule of all commands.

Plugins are code, and people send each other folders. Who calls a command that carries a scenario out or checks it
(`run`, `validate`) asks for the files beside it, and their hashes are noted. Every other command runs only what is
noted, and so does every command with the copies in the folder of a run or of a sweep. A source is judged by the bytes
that would be run: what becomes of its file meanwhile does not matter.
"""

from __future__ import annotations

from mrc_testbed.testbed.consent import TRUST, Consent, trusts
from mrc_testbed.testbed.scenario.model.offered import PluginMistake, PluginSource


def require_trust(source: PluginSource, is_copy: bool) -> None:
    """Raises PluginMistake for code that may not be run. `is_copy`: it came with the folder of a run or of a sweep.
    Packages were installed by somebody who may."""
    if source.module or (Consent.of_scenarios and not is_copy) or trusts(source.sha256):
        return
    known = f"{TRUST}=1 in the environment runs it" if is_copy else "`mrc-testbed validate` of its scenario runs it"
    raise PluginMistake(f"{source.file} is code that was never run on this machine; read it: {known}")
