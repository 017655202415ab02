"""Random valid scenarios, and what must hold of every run of one, whatever it says.

`python -m tests.generated --seeds 1000` runs as many. Keys, kinds and words come from the models of the language, so
that a new one without a way to draw it fails test_generated.py.
"""
