"""Fabrics on paper: what a network of a given size takes, costs in watts and loses with a part.

Arithmetic alone: nothing is built or measured, and no file is read but the list of parts that lies beside the code.
`question.py` turns options into designs, `design.py` works one out from `clos.py` (counts), `parts.py` (what a switch
or a transceiver takes) and `effects.py` (what a lost part takes away); `balls.py` is about hashed flows. `failures.py`
says what befalls a job on a design, by the formulas of `reliability.py`, for each way of recovery (`recoveries.py`);
`chance.py` simulates it and `curves.py` sweeps it.
`bridge.py` prices what emulated runs measured; `small.py` makes a plan small enough to be run, `ratios.py` says what is
kept of it, and `small_text.py` writes it as a scenario.
"""
