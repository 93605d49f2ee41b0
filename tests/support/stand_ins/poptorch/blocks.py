"""Blocks of a model.

A block reaches from the module where it begins to the module where the next block begins.
"""

from typing import Any

import torch
from recording import call, record


class _BlockHook:
    """A hook that records, while a model is traced, that the following modules belong to the block."""

    trace: list[tuple[str, int, list[str]]] | None = None  # blocks so far: name, IPU, modules that ran

    def __init__(self, user_id: str, ipu_id: int) -> None:
        self.user_id, self.ipu_id = user_id, ipu_id

    def __call__(self, module: torch.nn.Module, inputs: Any) -> None:
        if _BlockHook.trace is not None:
            _BlockHook.trace.append((self.user_id, self.ipu_id, []))


def BeginBlock(
    layer_to_call: torch.nn.Module, user_id: str | None = None, ipu_id: int | None = None
) -> torch.nn.Module:
    call("BeginBlock", layer_to_call, user_id=user_id, ipu_id=ipu_id)
    assert isinstance(layer_to_call, torch.nn.Module), "module is not an instance of torch.nn.Module"
    assert None not in (user_id, ipu_id), "the stand-in wants both named"
    if any(isinstance(hook, _BlockHook) for hook in layer_to_call._forward_pre_hooks.values()):
        raise RuntimeError("module has already been assigned to a block.")
    layer_to_call.register_forward_pre_hook(_BlockHook(user_id, ipu_id))
    return layer_to_call


def traced(name: str, *values: Any, **options: Any) -> None:
    """Record a call that a model makes, only while the model is traced, not when the compiled model runs."""
    if _BlockHook.trace is not None:
        call(f"  {name}", *values, **options)


def trace(model: torch.nn.Module, *inputs: torch.Tensor) -> list[int]:
    """Trace the model and record its blocks. Returns the IPU of each stage.

    Consecutive blocks on the same IPU form one stage.
    """
    _BlockHook.trace = [("none", 0, [])]
    hooks = [
        module.register_forward_pre_hook(lambda *_, name=name: _BlockHook.trace[-1][2].append(name))
        for name, module in model.named_modules()
        if not list(module.children())
    ]
    weights = {name: weight.float() for name, weight in model.named_parameters()}
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.func.functional_call(model, weights, inputs)
    blocks, _BlockHook.trace = _BlockHook.trace, None
    for hook in hooks:
        hook.remove()
    for name, ipu, modules in blocks:
        if modules:
            record(f"  {name} on IPU {ipu}: {modules[0]} ... {modules[-1]}")
    stages = [ipu for _, ipu, modules in blocks if modules]
    return [ipu for ipu, before in zip(stages, [None, *stages], strict=False) if ipu != before]
