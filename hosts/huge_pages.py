"""Python's objects in pages of 2 MiB: whether the extension for it (hosts/c/huge_pages.c) can be used.

The objects of a network in virtual time fill hundreds of MiB, and a packet touches many of them. In pages of 4 KiB the
processor looks up where they are again and again.
"""

from __future__ import annotations

from mrc_testbed.hosts import extensions

SWITCH = "MRC_TESTBED_PAGES"
"""Environment variable: `small` leaves the extension alone."""
EXTENSION = extensions.Extension("huge_pages", "objects in huge pages", SWITCH, "small")
SETTING = "/sys/kernel/mm/transparent_hugepage/enabled"
"""What the kernel allows: the word in brackets of `always madvise never`."""


def use() -> None:
    """Objects made from now on lie in huge pages, where this machine can. What it can do is asked each time."""
    if not _lack():
        extensions.found(EXTENSION)[0].use()


def described() -> str:
    """The pages that objects have in virtual time, and for small ones why that is."""
    lack = _lack()
    return f"small ({lack})" if lack else "huge in virtual time (2 MiB)"


def _lack() -> str:
    try:
        with open(SETTING, encoding="ascii") as file:
            if "[never]" in file.read():
                return f"{SETTING} is `never`"
    except (OSError, ValueError):
        return "this kernel has no transparent huge pages"
    return extensions.found(EXTENSION)[1]
