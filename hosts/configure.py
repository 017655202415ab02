"""What `configure` makes of its fields: the network of a daemon, by a function of its protocol."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from mrc_testbed.hosts.control import CommandError, Request
from mrc_testbed.hosts.fields import delay_of, speed_of, swift_of
from mrc_testbed.hosts.network import DatagramNetwork, Network
from mrc_testbed.hosts.plugins import LoadedPlugins
from mrc_testbed.hosts.protocols import PROTOCOLS, USUAL
from mrc_testbed.hosts.wiring import Wiring

Make = Callable[[Request, LoadedPlugins, Wiring], Network]
"""Raises CommandError or CoreError for fields that cannot be, OSError for sockets that cannot be made."""


def configured(request: Request, plugins: LoadedPlugins, wiring: Wiring) -> Network:
    """The network that `configure` asks for. Raises what the protocol's own function raises.

    Clock and delay are the world's, so they are set here, whatever the protocol's function says of them."""
    (delay_ns, stamped), speed, swift = delay_of(request), speed_of(request), swift_of(request)
    wiring.delay_arrivals(delay_ns, stamped)
    network = _make(request, plugins)(request, plugins, wiring)
    network.speed, network.swift = speed, swift
    if isinstance(network, DatagramNetwork):
        network.delay_ns, network.stamped = delay_ns, stamped
    return network


def _make(request: Request, plugins: LoadedPlugins) -> Make:
    name = request.text("transport") if request.has("transport") else USUAL
    own = plugins.transports.get(name)
    if own is not None:
        return cast(Make, own)
    if name not in PROTOCOLS:
        raise CommandError(f"transport must be one of {', '.join(PROTOCOLS)}, not {name!r}")
    module = import_module(f"mrc_testbed.hosts.{PROTOCOLS[name]}")
    return cast(Make, getattr(module, name.replace("-", "_")))
