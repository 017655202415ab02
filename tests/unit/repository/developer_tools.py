"""Loads the programs of tools/, which have no suffix and are in no package."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

TOOLS = Path(__file__).resolve().parents[3] / "tools"


def loaded(name: str) -> ModuleType:
    """A program of tools/ as a module. It finds the modules beside it as when it is run."""
    loader = importlib.machinery.SourceFileLoader(f"tool_{name}".replace("-", "_"), str(TOOLS / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses look their module up
    with patch.object(sys, "path", [str(TOOLS), *sys.path]):
        loader.exec_module(module)
    return module
