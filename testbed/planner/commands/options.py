"""Options of `mrc-testbed plan`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber

Gpus = Annotated[str, typer.Option(metavar="N,...", help="GPUs, each with one NIC; 131072 or 10k.")]
Nic = Annotated[str, typer.Option(metavar="RATE", help="Rate of a NIC over all its planes.")]
Planes = Annotated[str, typer.Option(metavar="N,...", help="Planes that a NIC is split over, as in 1,4,8.")]
Switch = Annotated[str, typer.Option(metavar="RATE,...", help="Bandwidth of a switch, by which --parts knows it.")]
Ports = Annotated[
    str,
    typer.Option(metavar="N,...", help="Logical ports of a switch, if its bandwidth allows more.", show_default=False),
]
Tiers = Annotated[
    str,
    typer.Option(metavar="N,...", help="1 to 4. Without: the fewest, and one plane beside them.", show_default=False),
]
Transceiver = Annotated[str, typer.Option(metavar="NAME", help="Kind of optics: dsp, lpo, or one of --parts.")]
Cable = Annotated[str, typer.Option("--nic-cable", metavar="optics|dac", help="NIC to T0: fibre or copper.")]
PartsFile = Annotated[
    Path | None, typer.Option("--parts", metavar="FILE", help="Parts, rates of failures and their sources (TOML).")
]
PricesFile = Annotated[
    Path | None, typer.Option("--prices", metavar="FILE", help="What they cost (TOML); there are no default prices.")
]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write everything as JSON; - for standard output.")
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with drawings and curves.")]
Measured = Annotated[
    list[Path] | None,
    typer.Option(metavar="RUN", help="Also recovery as measured by this run or comparison. Repeatable."),
]
ScenarioOut = Annotated[
    Path | None, typer.Option("--scenario", metavar="FILE", help="Write the plan, made small, as a scenario to run.")
]
Balls = Annotated[bool, typer.Option("--balls", help="Instead: how evenly --flows load --links, hashed or sprayed.")]
Flows = Annotated[str, typer.Option(metavar="N,...", help="With --balls: flows.")]
Links = Annotated[str, typer.Option(metavar="N,...", help="With --balls: links that they may take.")]
Seed = Annotated[int, typer.Option(min=0, help="With --balls or --monte-carlo: of the simulation.")]

_FAILURES = "Failures"
_LEAST_CAMPAIGNS, _MOST_CAMPAIGNS = 20, 1_000_000
"""5 and 95 % of fewer say nothing."""
_MOST_DAYS = 3650
JobSize = Annotated[
    str,
    typer.Option("--job", metavar="N", help="GPUs of the job. Without: all.", rich_help_panel=_FAILURES),
]
Flaps = Annotated[
    str,
    typer.Option(metavar="N/TIME", help="T0-T1 flaps under the job: 14/min, 800/h.", rich_help_panel=_FAILURES),
]
Rtt = Annotated[str, typer.Option(metavar="TIME", help="Round trip between far NICs: 10us.", rich_help_panel=_FAILURES)]
Exposed = Annotated[
    str, typer.Option(metavar="0-1", help="Share of a step that waits for the network.", rich_help_panel=_FAILURES)
]
Checkpoint = Annotated[
    str, typer.Option(metavar="TIME", help="What writing a checkpoint costs: 10s.", rich_help_panel=_FAILURES)
]
Restart = Annotated[
    str,
    typer.Option(metavar="TIME", help="From a failure until the job runs again: 5min.", rich_help_panel=_FAILURES),
]
Repair = Annotated[
    str, typer.Option(metavar="TIME", help="Until a NIC's port is back: 30min.", rich_help_panel=_FAILURES)
]
MonteCarlo = Annotated[
    str,
    typer.Option("--monte-carlo", metavar="N", help="Also simulate N campaigns.", rich_help_panel=_FAILURES),
]
Days = Annotated[str, typer.Option(metavar="N", help="Days of a simulated campaign.", rich_help_panel=_FAILURES)]
Step = Annotated[
    str,
    typer.Option(metavar="TIME", help="With --scenario: what a step of the job takes, 6s.", rich_help_panel=_FAILURES),
]


@dataclass(frozen=True, slots=True)
class FailureOptions:
    """As written; empty where not given."""

    job: str
    flaps: str
    rtt: str
    exposed: str
    checkpoint: str
    restart: str
    repair: str
    monte_carlo: str
    days: str
    seed: int
    step: str

    def numbers(self, listed: Mapping[str, MarkedNumber]) -> dict[str, MarkedNumber]:
        """Those of the parts list, with what the user says over them. Raises UsageError."""
        from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, Provenance
        from mrc_testbed.testbed.planner.arithmetic.parts import LEAST_CHECKPOINT_S
        from mrc_testbed.testbed.planner.arithmetic.quantities import duration_s, duration_words, share

        waits = {name: getattr(self, name) for name in ("checkpoint", "restart", "repair", "step")}
        found: dict[str, tuple[float, str]] = {
            name: (duration_s(text, f"--{name}"), "s") for name, text in waits.items() if text
        }
        if found.get("checkpoint", (LEAST_CHECKPOINT_S, ""))[0] < LEAST_CHECKPOINT_S:
            raise UsageError(f"--checkpoint {self.checkpoint}: {duration_words(LEAST_CHECKPOINT_S)} at least")
        if self.rtt:
            found["rtt"] = (duration_s(self.rtt, "--rtt") * 1e6, "us")
        if self.exposed:
            found["exposed"] = (share(self.exposed, "--exposed"), "of a step")
        given = {
            name: MarkedNumber(value, unit, Provenance.GIVEN, f"--{name}", value, value)
            for name, (value, unit) in found.items()
        }
        return {**listed, **given}

    def flaps_given(self) -> MarkedNumber | None:
        """In the job; None where the parts list says. Raises UsageError."""
        from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, Provenance
        from mrc_testbed.testbed.planner.arithmetic.quantities import a_minute

        if not self.flaps:
            return None
        value = a_minute(self.flaps, "--flaps")
        return MarkedNumber(value, "a minute", Provenance.GIVEN, "--flaps", value, value)

    def job_gpus(self, gpus: int) -> int:
        """Of a job on a design of `gpus` GPUs. Raises UsageError."""
        from mrc_testbed.testbed.planner.arithmetic.quantities import whole

        size = whole(self.job, "--job", 2) if self.job else gpus
        if size > gpus:
            raise UsageError(f"--job {self.job}: more than the {gpus:,} GPUs of --gpus; at most as many")
        return size

    def campaigns(self) -> tuple[int, int] | None:
        """How many and of how many days; None if none are asked for. Raises UsageError."""
        from mrc_testbed.testbed.planner.arithmetic.quantities import whole

        days = whole(self.days, "--days", 1, _MOST_DAYS)
        return (
            (whole(self.monte_carlo, "--monte-carlo", _LEAST_CAMPAIGNS, _MOST_CAMPAIGNS), days)
            if self.monte_carlo
            else None
        )
