"""Incidents drawn by seed: who sees only what an operator sees is to say whether something is broken, where and what.

`draw.py` makes a case of a seed, `blind.py` says what of its run an observer may see, `case.py` has the folders.
"""
