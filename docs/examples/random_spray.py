"""An EV selection as a plugin: every packet takes an EV drawn at random, whatever became of the packets before.

The Protocol is `EvSelection` in hosts/mrc/evselect/base.py.
"""

from mrc_testbed.api import NO_PLANE, EvSelection


class RandomSpray(EvSelection):
    """Draws one EV ahead, because the core must know the plane of the next packet."""

    def __init__(self, evs):
        self.evs = evs
        self.changed()

    def changed(self):
        """The EV that was drawn may be gone: draw again."""
        paths = self.evs.paths
        self.drawn = self.one_of(paths) if paths else None
        self.turn = self.drawn.plane if paths else NO_PLANE

    def take(self, avoid=None):
        path = self.drawn
        if path is avoid:
            others = [other for other in self.evs.paths if other.plane == path.plane and other is not avoid]
            path = self.one_of(others or [path])
        self.changed()
        return path

    def one_of(self, paths):
        return paths[self.evs.prng.below(len(paths))]


PLUGIN = {"ev_selection": {"random-spray": RandomSpray}}
