"""A stand-in for torch_xla.debug.profiler 2.9.0."""

from typing import NoReturn
from weakref import WeakSet

from recording import call


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"torch_xla.debug.profiler.{name} is not in the interface, or not in its stand-in")


class ProfilerServer:
    """A server that ends when it is garbage-collected.

    A second server at the same port is an error here. torch_xla would start it.
    """

    def __init__(self) -> None:
        if _LIVING:
            raise RuntimeError("a profiler's server is there already")
        _LIVING.add(self)


_LIVING: WeakSet[ProfilerServer] = WeakSet()


def start_server(port: int, only_on_master: bool = True) -> ProfilerServer:
    call("profiler.start_server", port, **{} if only_on_master else {"only_on_master": False})
    return ProfilerServer()
