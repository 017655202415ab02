"""Mininet 2.3.0.dev6 asks for distutils, which Python 3.12 has only through setuptools: keep it importable."""

from __future__ import annotations

import importlib
import subprocess
import sys

PROGRAM = """
import sys
from mrc_testbed.testbed.fabric import nodes
assert not {"setuptools", "distutils"} & sys.modules.keys()
from mininet.node import StrictVersion
assert StrictVersion("1.9") < StrictVersion("1.10")
"""


def test_mininet_nodes_can_be_imported() -> None:
    node = importlib.import_module("mininet.node")
    assert callable(node.Node)


def test_distutils_is_there_for_mininet() -> None:
    assert importlib.import_module("distutils.version").StrictVersion


def test_a_run_loads_no_setuptools_and_mininet_can_still_compare_versions() -> None:
    """In a process of its own, because tests of this one load what they like."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
