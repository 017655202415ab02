"""A TUN device of this network namespace: its frames, addresses and flags, by ioctl.

Source: Linux Documentation/networking/tuntap.rst, netdevice(7), include/uapi/linux/if_tun.h.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from contextlib import closing
from struct import calcsize, pack, unpack

PATH = "/dev/net/tun"
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
_IFF_UP = 0x1
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_TUN_F_CSUM, _TUN_F_TSO4, _TUN_F_TSO6 = 1, 2, 4
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFADDR = 0x8913, 0x8914, 0x8916
_SIOCSIFNETMASK, _SIOCSIFMTU, _SIOCGIFINDEX = 0x891C, 0x8922, 0x8933
_DOWN = (errno.EFAULT, errno.EIO)
"""What reading gives while somebody has taken the device down."""


class Tun:
    """Up, with an IPv4 and an IPv6 address. Raises OSError for what the kernel refuses."""

    def __init__(self, name: str, ipv4: str, ipv6: str, mtu: int) -> None:
        self._fd = os.open(PATH, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(self._fd, _TUNSETIFF, _request(name, "H", _IFF_TUN | _IFF_NO_PI | _IFF_VNET_HDR))
        fcntl.ioctl(self._fd, _TUNSETOFFLOAD, _TUN_F_CSUM | _TUN_F_TSO4 | _TUN_F_TSO6)
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as inet:
            fcntl.ioctl(inet, _SIOCSIFMTU, _request(name, "i", mtu))
            fcntl.ioctl(inet, _SIOCSIFADDR, _inet_request(name, ipv4))
            fcntl.ioctl(inet, _SIOCSIFNETMASK, _inet_request(name, "255.255.0.0"))
            (flags,) = unpack("16xH", fcntl.ioctl(inet, _SIOCGIFFLAGS, _request(name, "H", 0))[:18])
            fcntl.ioctl(inet, _SIOCSIFFLAGS, _request(name, "H", flags | _IFF_UP))
            (index,) = unpack("16xi", fcntl.ioctl(inet, _SIOCGIFINDEX, _request(name, "i", 0))[:20])
        with closing(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)) as inet6:
            address = socket.inet_pton(socket.AF_INET6, ipv6)
            fcntl.ioctl(inet6, _SIOCSIFADDR, pack("16sIi", address, 64, index))

    def read(self, buffer: memoryview) -> int:
        """Put the next frame into `buffer`; its length, 0 if there is none."""
        try:
            return os.readv(self._fd, [buffer])
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno in _DOWN:
                return 0
            raise

    def write(self, frame: memoryview) -> bool:
        """Hand a frame to the kernel; False if it refuses it."""
        try:
            os.write(self._fd, frame)
        except OSError:
            return False
        return True

    def fileno(self) -> int:
        """Readable when there are frames."""
        return self._fd


def _request(name: str, form: str, value: int) -> bytes:
    """A struct ifreq: a name, and what is asked about it."""
    return pack(f"16s{form}{24 - calcsize(form)}x", name.encode(), value)


def _inet_request(name: str, address: str) -> bytes:
    return pack("16sHH4s16x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address))
