"""A mutant takes the place of what it was made from: in a running process, or where the module is imported."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType

from tests.mutants.operators import Place, mutated

ROOT = Path(__file__).parents[2]
PACKAGE = "mrc_testbed"


@functools.cache
def source_of(file: str) -> str:
    """A module of the checkout, by its path from the root: as it was when it was read first, edited since or not."""
    return (ROOT / file).read_text(encoding="utf-8")


def module_of(file: str) -> str:
    """The name by which it is imported."""
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.startswith("tests.") else f"{PACKAGE}.{name}"


def code_of(place: Place) -> CodeType:
    """The mutated module, compiled under the name of the real one."""
    file = place.mutant.file
    return compile(mutated(source_of(file), place.number), str(ROOT / file), "exec")


class Functions:
    """All functions that this process has loaded, wherever they are bound: a decorator has them, a table, a class."""

    def __init__(self) -> None:
        """Looks once; modules that are imported later are not seen."""
        gc.unfreeze()
        self._by_code: dict[tuple[str, str, int], list[FunctionType]] = {}
        self._caches = []
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                self._by_code.setdefault(_key(each.__code__), []).append(each)
            elif isinstance(each, functools._lru_cache_wrapper) and _is_ours(each):
                self._caches.append(each)
        gc.collect()
        gc.freeze()

    def exchange(self, place: Place) -> bool:
        """Let every function of the place's statement run the mutated code. False: no function here has it, since it is
        made in another one that is no more, or code of other variables cannot be put into it."""
        done = False
        for code in _codes_in(code_of(place)):
            if code.co_firstlineno <= place.lines.start and (found := self._by_code.get(_key(code))):
                for each in found:
                    if each.__code__ != code and len(each.__code__.co_freevars) == len(code.co_freevars):
                        each.__code__ = code
                        done = True
        return done

    def forget(self) -> None:
        """Clear the caches of our own functions and of the oracles: they hold what healthy code has found."""
        for cache in self._caches:
            cache.cache_clear()


def _is_ours(cache: functools._lru_cache_wrapper[object]) -> bool:
    return str(getattr(cache, "__module__", "")).startswith((PACKAGE, "tests.oracles"))


def _key(code: CodeType) -> tuple[str, str, int]:
    """Names alone do not tell: a property and its setter share one."""
    return _plain(code.co_filename), code.co_qualname, code.co_firstlineno


@functools.cache
def _plain(file: str) -> str:
    """The rooms are reached by a path with `..` in it."""
    return str(Path(file).resolve())


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_in(constant)


class MutantImport(MetaPathFinder):
    """Has one module import mutated, for mutations outside of functions, which run when it is imported."""

    def __init__(self, place: Place) -> None:
        self.name = module_of(place.mutant.file)
        self._code = code_of(place)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Of that module alone."""
        if name != self.name:
            return None
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        assert spec is not None
        spec.loader = _Loader(name, str(spec.origin), self._code)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code


def import_mutated(place: Place) -> None:
    """From now on. Raises RuntimeError if the module is imported already."""
    finder = MutantImport(place)
    if finder.name in sys.modules:
        raise RuntimeError(f"{finder.name} is imported already")
    sys.meta_path.insert(0, finder)
