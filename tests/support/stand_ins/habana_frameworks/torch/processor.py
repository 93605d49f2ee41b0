"""The device "hpu", emulated on the CPU with every call recorded. Not part of the vendor's interface."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from recording import record, spelt
from torch.overrides import TorchFunctionMode

from habana_frameworks.torch.utils.internal import is_lazy

BACKENDS = {"eager", "hpu_backend"}
_within = 0  # calls under way whose inner calls are their own affair


class Processor(TorchFunctionMode):
    """A function mode that places everything requested on "hpu" on the CPU."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is torch.Tensor.to and asks_for_card(*args[1:], **kwargs):
            say(f"Tensor.to({_spelt_options(args[1:], kwargs)}) of {spelt(args[0])}")
            args, kwargs = on_processor(args, kwargs)
        elif asks_for_card(**kwargs):
            say(f"torch.{function.__name__}({_spelt_options((), kwargs)})")
            args, kwargs = on_processor(args, kwargs)
        elif function is torch.Tensor.cpu or (function is torch.Tensor.to and "cpu" in map(str, args[1:2])):
            say(f"Tensor.cpu() of {spelt(args[0])}")
        elif function is torch.Tensor.backward:
            say("Tensor.backward()")
        return function(*args, **kwargs)


def asks_for_card(*values: Any, device: Any = None, **_: Any) -> bool:
    return any(
        isinstance(value, str | torch.device) and str(value)[:3] == "hpu" for value in (*values, device)
    )


def on_processor(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the call's arguments with the card replaced by the CPU."""
    args = [torch.device("cpu") if asks_for_card(value) else value for value in args]
    return args, {key: "cpu" if key == "device" else value for key, value in kwargs.items()}


def say(line: str) -> None:
    if not _within:
        record(line)


def _spelt_options(args: Any, kwargs: Any) -> str:
    values = [f'"{value}"' if isinstance(value, torch.device) else spelt(value) for value in args]
    return ", ".join([*values, *(f"{key}={_spelt_options([value], {})}" for key, value in kwargs.items())])


class Autocast(torch.autocast):
    """``torch.autocast``, which supports two types for "hpu"."""

    def __init__(
        self,
        device_type: str,
        dtype: torch.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self._line = ""
        if device_type == "hpu":
            dtype = dtype or torch.bfloat16
            if dtype not in (torch.bfloat16, torch.float16):
                raise RuntimeError(f'torch.autocast("hpu"): dtype is {dtype}, expected bfloat16 or float16')
            self._line = f'torch.autocast("hpu", {dtype}{"" if enabled else ", enabled=False"})'
            device_type = "cpu"
        super().__init__(device_type, dtype, enabled, cache_enabled)

    def __enter__(self) -> Any:
        if self._line:
            record(f"with {self._line}")
        return super().__enter__()

    def __exit__(self, *error: Any) -> Any:
        if self._line:
            record("end of autocast")
        return super().__exit__(*error)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """``torch.compile`` with the bridge's backend.

    It records each new signature for which a graph is compiled.
    """
    if backend not in BACKENDS:
        raise RuntimeError(f"torch.compile: backend is {backend!r}, Gaudi has {', '.join(sorted(BACKENDS))}")
    if is_lazy():
        raise RuntimeError("torch.compile: not in lazy mode, and PT_HPU_LAZY_MODE is 1")
    if mode or options:
        raise RuntimeError("torch.compile: this backend is told nothing by mode and options")
    owner = getattr(model, "__self__", model)
    given = {"fullgraph": fullgraph, "dynamic": dynamic, "disable": disable}
    more = "".join(f", {key}={value}" for key, value in given.items() if value)
    record(f'torch.compile({spelt(owner)}, backend="{backend}"{more})')
    seen = set()

    @wraps(model)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        state = "training" if torch.is_grad_enabled() and getattr(owner, "training", False) else "inference"
        signature = f"{state}, {_shapes([*args, *kwargs.values()])}"
        if signature not in seen:
            seen.add(signature)
            record(f"{backend} compiles {spelt(owner)} for {signature}")
        return model(*args, **kwargs)

    return compiled


def _shapes(values: Any) -> str:
    """Return the shapes of the tensors among the values and the values' attributes, as text."""
    found = []
    for value in values:
        parts = [value] if isinstance(value, torch.Tensor) else _attributes(value)
        found += [spelt(part) for part in parts if isinstance(part, torch.Tensor)]
    return ", ".join(found)


def _attributes(value: Any) -> list[Any]:
    return [getattr(value, name) for name in getattr(value, "__dataclass_fields__", ())]


def module_to(to_as_it_is: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(to_as_it_is)
    def to(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        global _within
        if not asks_for_card(*args, **kwargs):
            return to_as_it_is(self, *args, **kwargs)
        say(f"Module.to({_spelt_options(args, kwargs)}) of {spelt(self)}")
        _within += 1
        try:
            return to_as_it_is(self, *args, **kwargs)
        finally:
            _within -= 1

    return to


def take_the_place_of_the_card() -> None:
    """Emulate the card in this thread from now on.

    As on the card, Module.to creates new parameters, even for tied weights.
    """
    Processor().__enter__()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    torch.autocast = torch.amp.autocast = torch.amp.autocast_mode.autocast = Autocast
    torch.compile = compile
    torch.nn.Module.to = module_to(torch.nn.Module.to)
