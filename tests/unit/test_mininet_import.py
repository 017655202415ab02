"""Mininet 2.3.0.dev6 asks for distutils, which Python 3.12 has only through setuptools: keep it importable."""

from __future__ import annotations

import importlib


def test_mininet_nodes_can_be_imported() -> None:
    node = importlib.import_module("mininet.node")
    assert callable(node.Node)


def test_distutils_is_there_for_mininet() -> None:
    assert importlib.import_module("distutils.version").StrictVersion
