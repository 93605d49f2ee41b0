"""Limits of the device: bandwidth of a copy, and speed of the model's matrix products in bf16 and fp8."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.gpu.clock import time_repeated_calls
from benchmarks.gpu.figures import NOT_HERE, Figures
from benchmarks.gpu.sizes import Sizes

Product = Callable[[Tensor, Tensor, Tensor], object]
"""A matrix product of inputs x (T, I), weights w (O, I) and the outputs' gradient g (T, O)."""

FORWARD: Product = lambda x, w, g: x @ w.T  # noqa: E731
BACKWARD: dict[str, Product] = {"to inputs": lambda x, w, g: g @ w, "to weights": lambda x, w, g: g.T @ x}


def bandwidth(figures: Figures, sizes: Sizes) -> None:
    """Measure the bandwidth of a copy within the device's memory, in GB read and written per second."""
    source = torch.ones(sizes.copy_bytes, dtype=torch.uint8, device=sizes.device)
    target = torch.empty_like(source)
    seconds = time_repeated_calls(lambda: target.copy_(source), sizes.device, sizes.seconds)
    figures.add("copy", 2 * sizes.copy_bytes / seconds / 1e9, "GB/s")


def products(figures: Figures, sizes: Sizes) -> None:
    """Measure the TFLOP/s of each shape of product, forward and backward, and of all products together."""
    operations, total = 0.0, 0.0
    for name, shape, times in _list_shapes(sizes):
        x, w, g = _make_operands(shape, sizes.device)
        once = 2.0 * shape[0] * shape[1] * shape[2]
        seconds = time_repeated_calls(lambda: FORWARD(x, w, g), sizes.device, sizes.seconds)  # noqa: B023
        figures.add(f"{name} forward", once / seconds / 1e12, "TFLOP/s")
        back = sum(
            time_repeated_calls(lambda: each(x, w, g), sizes.device, sizes.seconds)  # noqa: B023
            for each in BACKWARD.values()
        )
        figures.add(f"{name} backward", 2 * once / back / 1e12, "TFLOP/s")
        operations += times * 3 * once
        total += times * (seconds + back)
    figures.add("ceiling", operations / total / 1e12, "TFLOP/s")


def eight_bits(figures: Figures, sizes: Sizes) -> None:
    """Measure the TFLOP/s of the forward products in fp8 and in bf16. Operands are converted beforehand."""
    for name, shape, _ in _list_shapes(sizes)[:-1]:
        if sizes.device == "cpu":
            figures.absent(f"{name} fp8", NOT_HERE)
            continue
        x, w, g = _make_operands(shape, sizes.device)
        once = 2.0 * shape[0] * shape[1] * shape[2]
        plain = time_repeated_calls(lambda: FORWARD(x, w, g), sizes.device, sizes.seconds)  # noqa: B023
        eights = [each.to(torch.float8_e4m3fn) for each in (x, w)]
        one = torch.ones((), device=sizes.device)

        def multiply(x: Tensor, w: Tensor, one: Tensor = one) -> Tensor:
            product: Tensor = torch._scaled_mm(
                x, w.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
            )
            return product

        seconds = time_repeated_calls(lambda: multiply(*eights), sizes.device, sizes.seconds)  # noqa: B023
        figures.add(f"{name} fp8", once / seconds / 1e12, "TFLOP/s", times_as_fast_as_bf16=plain / seconds)


def _list_shapes(sizes: Sizes) -> list[tuple[str, tuple[int, int, int], int]]:
    """Return for each product its name, its (rows, inputs, outputs) and its number per pass. The vocabulary
    is last.
    """
    layer = [
        (f"{inputs} to {outputs}", (sizes.tokens, inputs, outputs), sizes.layers)
        for inputs, outputs in sizes.products
    ]
    return [*layer, ("vocabulary", (sizes.masks, *sizes.head), 1)]


def _make_operands(shape: tuple[int, int, int], device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return random bf16 operands x, w and g of a product."""
    rows, inputs, outputs = shape
    made = [
        torch.randn(*size, device=device) for size in ((rows, inputs), (outputs, inputs), (rows, outputs))
    ]
    x, w, g = (each.to(torch.bfloat16) for each in made)
    return x, w, g
