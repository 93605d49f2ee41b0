"""gloo is told an interface where its own choice, the address of this machine's name, cannot be reached."""

import os
import socket

import pytest

from trainer.workers import network

NAMES = {
    "rank0": "10.1.2.3",
    "named-loopback": "127.0.1.1",
    "named-well": "10.1.2.4",
    "rank0-here": "127.0.0.1",
}


def test_the_interface_of_an_address_is_the_systems():
    assert network.find_interface("127.0.0.1") == "lo"
    assert network.find_interface("no address") is None


@pytest.mark.parametrize(
    ("own_name", "address", "given", "chosen"),
    [
        ("named-loopback", "rank0", None, "eth7"),
        ("named-well", "rank0", None, None),
        ("named-loopback", "rank0-here", None, None),
        ("named-loopback", "rank0", "ib0", "ib0"),
        ("without-address", "rank0", None, None),
    ],
)
def test_an_interface_is_chosen_only_where_the_machines_name_is_a_loopback_address(
    monkeypatch, own_name, address, given, chosen
):
    def look_up(name: str) -> str:
        if name not in NAMES:
            raise socket.gaierror(-2, "Name or service not known")
        return NAMES[name]

    monkeypatch.setattr(socket, "gethostbyname", look_up)
    monkeypatch.setattr(socket, "gethostname", lambda: own_name)
    monkeypatch.setattr(network, "find_interface", lambda name: "eth7")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", given or "")
    network.set_gloo_interface(address)
    assert (os.environ["GLOO_SOCKET_IFNAME"] or None) == chosen
