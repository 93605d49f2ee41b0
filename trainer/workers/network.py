"""Choice of the network interface through which gloo (a backend of torch.distributed) connects several
machines.
"""

import fcntl
import ipaddress
import os
import socket
import struct

GLOO_INTERFACE = "GLOO_SOCKET_IFNAME"
"""Environment variable from which gloo reads the name of the interface. If the user has set it, it is not
changed.
"""

_SIOCGIFADDR = 0x8915
"""Number of Linux's ioctl request for the IPv4 address of an interface."""


def set_gloo_interface(address: str) -> None:
    """Set the interface that reaches rank 0's machine, if gloo would choose one that cannot work.

    gloo listens at the address to which this machine's own name resolves. On many systems /etc/hosts maps the
    name to 127.0.1.1, which no other machine can reach. Workers on several machines would then wait for each
    other until the timeout. If the name resolves to another address, gloo's choice is kept.
    address: name or address of rank 0's machine.
    """
    if os.environ.get(GLOO_INTERFACE) or _is_loopback(address) or not _is_loopback(socket.gethostname()):
        return
    if (name := find_interface(address)) is not None:
        os.environ[GLOO_INTERFACE] = name


def find_interface(address: str) -> str | None:
    """Return the name of the network interface through which this machine reaches ``address``.

    Returns None if the address cannot be reached over IPv4.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))  # this sends nothing and only asks the routing table
        except OSError:
            return None
        ours = probe.getsockname()[0]
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                reply = fcntl.ioctl(probe, _SIOCGIFADDR, request)
            except OSError:  # the interface has no IPv4 address
                continue
            if socket.inet_ntoa(reply[20:24]) == ours:
                return name
    return None


def _is_loopback(name: str) -> bool:
    """Return True if the host name resolves to an address that only this machine can reach."""
    try:
        return ipaddress.ip_address(socket.gethostbyname(name)).is_loopback
    except (OSError, UnicodeError, ValueError):
        return False
