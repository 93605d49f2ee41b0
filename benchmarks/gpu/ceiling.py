"""What the device itself can do: bandwidth of its memory, and speed of matrix products in bf16 and fp8.

The products have the shapes of the model's.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.gpu.clock import time_repeated_calls
from benchmarks.gpu.figures import NOT_HERE, Figures
from benchmarks.gpu.sizes import Sizes

Product = Callable[[Tensor, Tensor, Tensor], object]
"""Type of a function that computes the products of a linear layer.

Its arguments are the inputs x (T, I), the weights w (O, I) and the gradient g of the outputs (T, O).
"""

FORWARD: Product = lambda x, w, g: x @ w.T  # noqa: E731
BACKWARD: dict[str, Product] = {"to inputs": lambda x, w, g: g @ w, "to weights": lambda x, w, g: g.T @ x}


def measure_bandwidth(figures: Figures, sizes: Sizes) -> None:
    """Measure the bandwidth of the device's memory: GB that a copy within it reads and writes per second."""
    source = torch.ones(sizes.copy_bytes, dtype=torch.uint8, device=sizes.device)
    target = torch.empty_like(source)
    seconds = time_repeated_calls(lambda: target.copy_(source), sizes.device, sizes.seconds)
    figures.add("copy", 2 * sizes.copy_bytes / seconds / 1e9, "GB/s")


def measure_products(figures: Figures, sizes: Sizes) -> None:
    """Measure the speed of matrix products in TFLOP/s: for each shape in the model, and for all together.

    The products of the forward and of the backward pass are included.
    """
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


def measure_fp8_products(figures: Figures, sizes: Sizes) -> None:
    """Measure the speed of the forward pass's products in fp8 and in bf16, in TFLOP/s.

    The operands are converted before the measurement.
    """
    for name, shape, _ in _list_shapes(sizes)[:-1]:
        if sizes.device == "cpu":
            figures.add_absent(f"{name} fp8", NOT_HERE)
            continue
        x, w, g = _make_operands(shape, sizes.device)
        once = 2.0 * shape[0] * shape[1] * shape[2]
        plain = time_repeated_calls(lambda: FORWARD(x, w, g), sizes.device, sizes.seconds)  # noqa: B023
        eights = [each.to(torch.float8_e4m3fn) for each in (x, w)]
        one = torch.ones((), device=sizes.device)

        def multiply(x: Tensor, w: Tensor, one: Tensor = one) -> Tensor:
            """Multiply two fp8 matrices.

            one: the scale of both operands, which is 1.
            """
            product: Tensor = torch._scaled_mm(
                x, w.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
            )
            return product

        seconds = time_repeated_calls(lambda: multiply(*eights), sizes.device, sizes.seconds)  # noqa: B023
        figures.add(f"{name} fp8", once / seconds / 1e12, "TFLOP/s", times_as_fast_as_bf16=plain / seconds)


def _list_shapes(sizes: Sizes) -> list[tuple[str, tuple[int, int, int], int]]:
    """Return the model's matrix products: name, shape (rows, inputs, outputs), and number in a forward pass.

    The product with the vocabulary is the last.
    """
    layer = [
        (f"{inputs} to {outputs}", (sizes.tokens, inputs, outputs), sizes.layers)
        for inputs, outputs in sizes.products
    ]
    return [*layer, ("vocabulary", (sizes.masks, *sizes.head), 1)]


def _make_operands(shape: tuple[int, int, int], device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return random bf16 operands of a product: inputs x, weights w and the gradient g of the outputs."""
    rows, inputs, outputs = shape
    made = [
        torch.randn(*size, device=device) for size in ((rows, inputs), (outputs, inputs), (rows, outputs))
    ]
    x, w, g = (each.to(torch.bfloat16) for each in made)
    return x, w, g
