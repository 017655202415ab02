"""`mrc-testbed decode`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.terminal import say


def decode(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="Capture: pcap or pcapng, also gzipped; - for standard input.", show_default=False
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=0, help="Packets to print; 0 prints only the summary.", show_default=False),
    ] = None,
    psn: Annotated[
        str | None, typer.Option(metavar="N or N-M", help="Only packets that concern these PSNs.", show_default=False)
    ] = None,
    ev: Annotated[
        str | None,
        typer.Option(metavar="PLANE/UPLINK", help="Only packets on or about this path.", show_default=False),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Print a JSON object per packet, then one for the summary.")
    ] = False,
    fields: Annotated[
        bool, typer.Option("--fields", help="Print every field of every header below each packet.")
    ] = False,
    dissector: Annotated[
        bool, typer.Option("--dissector", help="Print the path of the Wireshark dissector and its use.")
    ] = False,
) -> None:
    """Show the MRC packets of a capture, one per line, and count them by type and path.

    Scenarios with `capture` leave such files in pcap/ of their run, with comments, which are shown behind #; tcpdump on
    any port of the fabric makes them too. docs/wireshark.md explains the lines. Exit status: 3 if the file is damaged,
    else 0; the packets before the damage are shown.
    """
    from mrc_testbed.testbed.wireview.decode import decode as show
    from mrc_testbed.testbed.wireview.decode import dissector_help
    from mrc_testbed.testbed.wireview.select import selection

    if dissector:
        say(dissector_help())
    elif file is None:
        raise typer.BadParameter("name a capture file, or use --dissector")
    elif show(file, selection(psn, ev), limit, json_, fields):
        raise typer.Exit(ExitCode.INCONCLUSIVE)
