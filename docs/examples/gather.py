"""A collective as a plugin: every rank sends its data to one of them, the root.

The root checks what came and tells its sender, who ends the step only with that: so one slot is enough.
"""

from dataclasses import dataclass

from mrc_testbed.api import Collective, Hop, Part, answer_ns, transfer_ns


class Gather(Collective):
    @dataclass(frozen=True)
    class Keys:
        root: int = 0

    slots = 1
    chunk_bytes = sent_bytes = property(lambda self: self.terms.size_bytes)

    def hops(self):
        root = self.terms.own.root % self.group.size
        return (Hop(member, root) for member in range(self.group.size) if member != root)

    def operations(self, member, step):
        all_of_it = Part(0, self.terms.size_bytes)
        for hop in self.hops():
            if member == hop.src:
                yield from self.put(hop, all_of_it, 0, step, 0)
                yield self.wait_for_signal(hop, step)
                yield from self.drain(hop)
            elif member == hop.dst:
                yield from self.wait(hop, all_of_it, step, 0)
                yield from self.check(hop, all_of_it, 0, step, (self.group.ranks[hop.src],))
                yield self.signal(hop, step)

    def clean_ns(self, shape):
        return transfer_ns(shape, (self.group.size - 1) * self.terms.size_bytes) + answer_ns(shape)


PLUGIN = {"workload": {"gather": Gather}}
