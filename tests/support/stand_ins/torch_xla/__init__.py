"""A CPU stand-in for torch_xla 2.9.0, with the public functions in its API guide that the trainer needs.

The use of any other function is an error with its name. The device "xla" is registered with PyTorch as far as
needed: tensors and modules moved there stay on the CPU, and autocast works as on the CPU.
"""

from typing import Any, NoReturn

import torch
from recording import call

from torch_xla import runtime

__version__ = "2.9.0"
__all__ = ["device", "manual_seed", "runtime", "sync"]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"torch_xla.{name} is not in the interface, or its stand-in does not know it")


def device(index: int | None = None) -> torch.device:
    call("torch_xla.device", *([] if index is None else [index]))
    runtime.open_hardware()
    return torch.device(f"xla:{index or 0}")


def sync(wait: bool = False, reset_scope: bool = True) -> None:
    options = {"wait": wait} if wait else {}
    call("torch_xla.sync", **options if reset_scope else {**options, "reset_scope": False})
    runtime.open_hardware()


def manual_seed(seed: int, device: torch.device | None = None) -> None:
    """Seed the CPU's generator, from which this stand-in draws."""
    call("torch_xla.manual_seed", seed, *([] if device is None else [device]))
    runtime.open_hardware()
    torch.manual_seed(seed)


# Teaching PyTorch

tensor_to, module_to, init_autocast = torch.Tensor.to, torch.nn.Module.to, torch.autocast.__init__


def move_tensor(self: torch.Tensor, *values: Any, **options: Any) -> torch.Tensor:
    if not values or not is_xla(values[0]):
        return tensor_to(self, *values, **options)
    call("tensor.to", str(values[0]), of=self)
    return tensor_to(self, "cpu", *values[1:], **options).clone()


def move_module(self: torch.nn.Module, *values: Any, **options: Any) -> torch.nn.Module:
    if not values or not is_xla(values[0]):
        return module_to(self, *values, **options)
    call("module.to", str(values[0]), of=self)
    return module_to(self, "cpu", *values[1:], **options)


def autocast(self: torch.autocast, device_type: str, dtype: Any = None, enabled: bool = True) -> None:
    if device_type == "xla":
        call("torch.autocast", "xla", dtype, enabled=enabled)
        if enabled and dtype != torch.bfloat16:
            raise TypeError(f"torch.autocast on xla: {dtype} is not supported, torch.bfloat16 is")
        device_type = "cpu"
    init_autocast(self, device_type, dtype, enabled)


def is_xla(place: Any) -> bool:
    return isinstance(place, str | torch.device) and str(place).partition(":")[0] == "xla"


torch.Tensor.to = move_tensor  # type: ignore[method-assign,assignment]
torch.nn.Module.to = move_module  # type: ignore[method-assign,assignment]
torch.autocast.__init__ = autocast  # type: ignore[method-assign,assignment]
