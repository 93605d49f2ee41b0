"""A pretended H100, for which torch's compiler generates kernels on a machine without a GPU.

The kernels are never run. PyTorch may be a build for processors, if Triton and a C++ compiler are installed.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map_only


class Properties:
    """Properties of an H100 that Inductor, the code generator of torch's compiler, asks for."""

    name = "NVIDIA H100 80GB HBM3"
    major, minor = 9, 0
    total_memory = 80 * 2**30
    multi_processor_count = 132
    max_threads_per_multi_processor = 2048
    max_threads_per_block = 1024
    regs_per_multiprocessor = 65536
    shared_memory_per_block = 49152
    shared_memory_per_block_optin = 232448
    L2_cache_size = 50 * 2**20
    warp_size = 32
    gcnArchName = ""


class Driver:
    """Driver of the pretended GPU, with the methods that Triton calls."""

    def get_current_target(self) -> Any:
        """Return the architecture that Triton generates code for."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self) -> torch.device:
        """Return the pretended GPU."""
        return torch.device("cuda", 0)


class Generated(Exception):
    """Exception that ends compiling when Inductor has generated its code, because the code cannot be loaded
    here.
    """


_DEVICE_GUARD = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
C10_REGISTER_GUARD_IMPL(CUDA, c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA>)
"""
"""C++ code of a device guard, the object by which PyTorch chooses the current GPU. This one does nothing."""


@cache
def load_device_guard() -> None:
    """Let a build of PyTorch for processors accept tensors without memory on a GPU.

    A build for CUDA has a device guard for GPUs already.
    """
    if torch.version.cuda is not None:
        return
    from torch.utils.cpp_extension import include_paths, library_paths

    with TemporaryDirectory() as place:
        source, library = Path(place, "guard.cpp"), Path(place, "guard.so")
        source.write_text(_DEVICE_GUARD, encoding="ascii")
        folders = [f"-I{path}" for path in include_paths()] + [f"-L{path}" for path in library_paths()]
        command = [os.environ.get("CXX", "c++"), "-std=c++20", "-shared", "-fPIC", str(source), *folders]
        subprocess.run([*command, "-lc10", "-o", str(library)], check=True)
        torch.ops.load_library(library)


@contextmanager
def pretend_card(keep: Callable[[Any], None]) -> Iterator[None]:
    """Context manager in which torch's code generator Inductor works for the pretended GPU.

    keep: function that is called with Inductor's graph after the code is generated. The code is not loaded.
    """
    import triton

    load_device_guard()
    from torch._dynamo.device_interface import CudaInterface
    from torch._inductor.graph import GraphLowering
    from torch.utils._triton import has_triton

    def generate(graph: Any) -> None:
        """Generate the code of a graph, and stop before it is loaded."""
        graph.freeze_runtime_asserts()
        graph.codegen()
        keep(graph)
        raise Generated

    answers: dict[Any, dict[str, Any]] = {
        torch.cuda: {
            "get_device_properties": lambda *_: Properties,
            "_get_device_properties": lambda *_: Properties,
            "get_device_capability": lambda *_: (9, 0),
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "_lazy_init": lambda: None,
        },
        CudaInterface: {
            "is_available": staticmethod(lambda: True),
            "is_bf16_supported": staticmethod(lambda *_, **__: True),
            "is_triton_capable": staticmethod(lambda *_, **__: True),
            "raise_if_triton_unavailable": staticmethod(lambda *_, **__: None),
            "get_compute_capability": staticmethod(lambda *_, **__: 90),
        },
        CudaInterface.Worker: {"get_device_properties": staticmethod(lambda *_, **__: Properties)},
        GraphLowering: {"compile_to_module": generate},
    }
    patches = [patch.multiple(owner, create=True, **given) for owner, given in answers.items()]
    triton.runtime.driver.set_active(Driver())
    for one in patches:
        one.start()
    # PyTorch remembers the answer, and some packages have asked already when they were imported.
    has_triton.cache_clear()
    try:
        yield
    finally:
        for one in patches:
            one.stop()
        has_triton.cache_clear()


def move_to_card(graph: torch.fx.GraphModule) -> None:
    """Move a traced graph and its tensors, which have no memory, from the processor to the pretended GPU."""
    values = [leaf for node in graph.graph.nodes for leaf in tree_leaves(node.meta.get("val"))]
    mode = next(value.fake_mode for value in values if isinstance(value, FakeTensor))

    def move_tensor(tensor: Tensor) -> Tensor:
        """Return a tensor of the same shape on the pretended GPU."""
        with mode:
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda")

    card = partial(tree_map_only, torch.device, lambda _: torch.device("cuda", 0))
    for node in graph.graph.nodes:
        if "val" in node.meta:
            node.meta["val"] = tree_map_only(FakeTensor, move_tensor, node.meta["val"])
        node.meta.pop("tensor_meta", None)
        node.args, node.kwargs = card(node.args), card(dict(node.kwargs))
    graph.recompile()


def compile_for_card(
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda run: run,
) -> Any:
    """Backend for torch.compile that lets Inductor generate code for the pretended GPU.

    The function that it returns computes nothing. It returns tensors of the right shapes.
    wrap: function that gets the function of each pass directly after its code has been generated, and returns
        the function to call in its place.
    """
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    def compile_pass(graph: torch.fx.GraphModule, _: Sequence[Any], **settings: Any) -> Any:
        """Generate the code of one pass, and return a function that computes nothing."""
        outputs = next(node for node in graph.graph.nodes if node.op == "output").args[0]
        kept = [one.meta["val"] if isinstance(one, torch.fx.Node) else one for one in outputs]
        move_to_card(graph)
        given = [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]
        try:
            compile_fx_inner(graph, given, **settings)
        except Exception as error:
            if not _is_generated(error):
                raise

        def run(_: Sequence[Any]) -> list[Any]:
            """Return empty tensors with the shapes of the outputs."""
            return tree_map_only(Tensor, lambda one: one.new_empty_strided(one.shape, one.stride()), kept)

        wrapped = wrap(run)
        wrapped._boxed_call = True  # type: ignore[attr-defined]
        return wrapped

    return compile_fx(graph, inputs, inner_compile=compile_pass)


def _is_generated(error: BaseException | None) -> bool:
    """Return True if the exception Generated is the error or one of its causes."""
    while error is not None and not isinstance(error, Generated):
        error = error.__cause__ or error.__context__
    return error is not None


def native_dropout(rows: Tensor, rate: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Apply dropout to the rows. As on a GPU, the mask of kept values has one byte per value."""
    return torch.native_dropout(rows, rate, True)[0] if training and rate else rows
