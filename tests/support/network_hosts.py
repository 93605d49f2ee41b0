"""Two hosts on this machine, each with a network of its own, joined by a virtual cable."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

ADDRESSES = {"first": "10.87.0.1", "second": "10.87.0.2"}


@dataclass(frozen=True)
class Host:
    """A network namespace, with its address on the cable."""

    namespace: str
    address: str

    @property
    def prefix(self) -> list[str]:
        """The words before a command that is to run on this host."""
        return [str(shutil.which("ip")), "netns", "exec", self.namespace]

    def kill_all(self) -> None:
        """Kill every process of this host, as if the machine had lost its power."""
        found = subprocess.run(
            [str(shutil.which("ip")), "netns", "pids", self.namespace],
            capture_output=True,
            text=True,
            check=True,
        )
        for word in found.stdout.split():
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(int(word), signal.SIGKILL)


@contextmanager
def join_hosts() -> Iterator[dict[str, Host]]:
    """Yield the hosts by the names of ADDRESSES. Where no network namespaces are allowed, skip the test."""
    ip = shutil.which("ip")
    if ip is None:
        pytest.skip("no ip command")
    hosts = {name: Host(f"bertdata-{os.getpid()}-{name}", address) for name, address in ADDRESSES.items()}
    made = list[str]()

    def run(line: str) -> None:
        done = subprocess.run([ip, *line.split()], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"this machine allows no network namespaces: {done.stderr.strip()}")

    try:
        for host in hosts.values():
            run(f"netns add {host.namespace}")
            made.append(host.namespace)
        first, second = (host.namespace for host in hosts.values())
        run(f"link add cable netns {first} type veth peer name cable netns {second}")
        for host in hosts.values():
            run(f"-n {host.namespace} addr add {host.address}/24 dev cable")
            run(f"-n {host.namespace} link set cable up")
            run(f"-n {host.namespace} link set lo up")
        yield hosts
    finally:
        for name in made:
            subprocess.run([ip, "netns", "del", name], check=False)
