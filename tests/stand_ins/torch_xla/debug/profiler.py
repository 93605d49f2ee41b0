"""A stand-in for torch_xla.debug.profiler 2.9.0."""

from typing import NoReturn

from recording import call


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"torch_xla.debug.profiler.{name} is not in the interface, or not in its stand-in")


def start_server(port: int, only_on_master: bool = True) -> object:
    call("profiler.start_server", port, **{} if only_on_master else {"only_on_master": False})
    return object()
