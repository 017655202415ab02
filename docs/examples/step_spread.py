"""A metric as a plugin: how long after the first rank the last one ends a step.

A scenario asks for it as for ours: `step_spread.max <= 50ms during cut`.
"""

from mrc_testbed.api import Dimension, Job, Metric, Windows, rank_steps, steps_in


def spreads(record, window):
    """In ns, of each step of the window; `steps_in` says that nothing is known where there is none."""
    ends = {step.index: [] for step in steps_in(record, window)}
    for steps in rank_steps(record).values():
        for step in steps:
            ends.get(step.index, []).append(step.end_ns)
    return [max(each) - min(each) for each in ends.values()]


ABOUT = "from the first to the last rank that ends a step"
STEP_SPREAD = Metric(
    *("step_spread", Dimension.TIME, ABOUT, Windows.ANY, ("median", "p99", "max")), job=Job.TRAIN, compute=spreads
)

PLUGIN = {"metric": {"step_spread": STEP_SPREAD}}
