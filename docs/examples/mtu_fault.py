"""A fault kind as a plugin, packets above `mtu` are lost: `{at: 6s, link-mtu: p0-t0-0:p0-t1-2, mtu: 2000, for: 4s}`."""

from pydantic import Field

from mrc_testbed.api import MTU, Drawing, Effect, FaultParameters, Lasting, State, Target, Targets, Unplanned


class LinkMtu(Lasting):
    kind, target, effect, drawing = "link-mtu", Target.LINK, Effect.OWN, Drawing(State.LOSSY)
    aims: Targets = Field(alias="link-mtu", description="the link or links", examples=["p0-t0-0:p0-t1-2"])
    mtu: int = Field(ge=1280, lt=MTU, strict=True, description="bytes of the largest packet", examples=[2000])

    @property
    def parameters(self):
        return FaultParameters(words=f"at {self.mtu} bytes", values={"mtu": self.mtu})

    @staticmethod
    def inject(system, occurrence):
        mtu = occurrence.parameters.values["mtu"]
        system.limits("mtu").take(occurrence.key, dict.fromkeys(occurrence.targets, mtu))
        set_mtu(system, occurrence.targets)

    @staticmethod
    def heal(system, occurrence):
        system.limits("mtu").release(occurrence.key)
        set_mtu(system, occurrence.targets)

    @staticmethod
    def unplanned(occurrence, plan):
        return [Unplanned(end, "mtu") for name in occurrence.targets for end in plan.link_by_name[name].ends]


def set_mtu(system, links):
    for link, end in ((name, end) for name in links for end in system.plan.link_by_name[name].ends):
        system.ip({end.node: [f"link set dev {end.name} mtu {system.limits('mtu').of(link) or MTU}"]})


PLUGIN = {"fault": {"link-mtu": LinkMtu}}
