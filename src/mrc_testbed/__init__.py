"""The one package of mrc-testbed, which holds all of its Python code. In a checkout its rooms lie two folders up; in a
wheel they lie here.

It imports what Python has loaded by then, and nothing more: another module could come from the current folder. So it
has no `from __future__` either.
"""

import os

_HERE = os.path.dirname(os.path.realpath(__file__))

if not os.path.isdir(os.path.join(_HERE, "testbed")):
    __path__.append(os.path.dirname(os.path.dirname(_HERE)))
