"""The world in virtual time: a network that is computed instead of built, and what drives it."""

import mrc_testbed.hosts  # noqa: F401 (which finds the machine code of this package before its first module is loaded)
