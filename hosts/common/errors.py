"""Misuse of the endpoint by its own application. What a peer does wrong is counted or ends the QP instead."""

from __future__ import annotations

from collections.abc import Iterable


class CoreError(Exception):
    """Root of what the core raises."""


class UnknownPeerError(CoreError):
    """The host number was never given to `add_peer`."""

    def __init__(self, peer: int) -> None:
        super().__init__(f"unknown peer {peer}: call add_peer() first")
        self.peer = peer


class UnknownPathError(CoreError):
    """The peer has no such path."""

    def __init__(self, peer: int, plane: int, uplink: int) -> None:
        super().__init__(f"peer {peer} has no path of plane {plane}, uplink {uplink}")
        self.peer = peer
        self.plane = plane
        self.uplink = uplink


class UnknownQpError(CoreError):
    """No QP of that number was opened here."""

    def __init__(self, qpn: int) -> None:
        super().__init__(f"unknown QP {qpn}: call open_qp() first")
        self.qpn = qpn


class QpStateError(CoreError):
    """The QP's state does not allow the step."""

    def __init__(self, qpn: int, state: str, step: str) -> None:
        super().__init__(f"QP {qpn} is in {state}: cannot {step}")
        self.qpn = qpn
        self.state = state
        self.step = step


class PeerAttributeError(CoreError):
    """A peer's attribute with which no QP can work."""

    def __init__(self, name: str, value: object, wanted: str) -> None:
        super().__init__(f"the peer's attribute {name} must be {wanted}, not {value!r}")
        self.name = name
        self.value = value


class UnknownChoiceError(CoreError):
    """No implementation has this name."""

    def __init__(self, setting: str, name: str, choices: Iterable[str]) -> None:
        super().__init__(f"{setting} must be one of {', '.join(choices)}, not {name!r}")
        self.setting = setting
        self.name = name


class PluginError(CoreError):
    """A plugin breaks the rules of its Protocol. An exception inside of a plugin is not wrapped."""

    def __init__(self, name: str, mistake: str) -> None:
        super().__init__(f"plugin {name}: {mistake}")
        self.name = name
        self.mistake = mistake
