"""The fault kinds, each declared by its class. A new kind is a class in one of these files, or in a new one."""

from importlib import import_module
from pkgutil import iter_modules

# By name of the file: messages list the kinds in the order in which they are declared.
for _module in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")
