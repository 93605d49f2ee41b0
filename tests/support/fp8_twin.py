"""A readable linear layer in FP8 with NumPy: scales, roundings and products as torchao describes them.

The two formats are those of the OCP 8-bit Floating Point Specification (2023).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]


class Format(NamedTuple):
    """An 8-bit floating-point format.

    fraction_bits: bits after the leading 1.
    least_exponent: exponent of the smallest normal number. Smaller numbers have the same distance.
    largest: the largest finite number.
    """

    fraction_bits: int
    least_exponent: int
    largest: float


E4M3 = Format(fraction_bits=3, least_exponent=-6, largest=448.0)
E5M2 = Format(fraction_bits=2, least_exponent=-14, largest=57344.0)


class Gradients(NamedTuple):
    """The output of a linear layer, and the gradients of its input, weight and bias."""

    output: Array
    rows: Array
    weight: Array
    bias: Array


def multiply(rows: Array, weight: Array, bias: Array, gradient: Array, recipe: str) -> Gradients:
    """Return what a linear layer computes in FP8.

    rows: input, shape (tokens, inputs).
    weight: shape (outputs, inputs).
    gradient: gradient of the output, shape (tokens, outputs).
    recipe: "tensorwise": one scale for each matrix, and E5M2 for gradients. "rowwise": one scale, a power of
    two, for each row of the left and each column of the right matrix of a product. "rowwise_with_gw_hp": the
    same, but one scale for the weight in the gradient of the input, and no rounding in that of the weight.
    """
    if recipe == "tensorwise":
        x, w, g = quantise(rows, E4M3), quantise(weight, E4M3), quantise(gradient, E5M2)
        return Gradients(x @ w.T + bias, g @ w, g.T @ x, gradient.sum(0))
    output = quantise(rows, E4M3, sums_over=1) @ quantise(weight, E4M3, sums_over=1).T + bias
    left = quantise(gradient, E4M3, sums_over=1)
    if recipe == "rowwise_with_gw_hp":
        one_scale = quantise(weight, E4M3, powers=True)
        return Gradients(output, left @ one_scale, gradient.T @ rows, gradient.sum(0))
    of_rows = left @ quantise(weight, E4M3, sums_over=0)
    of_weight = quantise(gradient, E4M3, sums_over=0).T @ quantise(rows, E4M3, sums_over=0)
    return Gradients(output, of_rows, of_weight, gradient.sum(0))


def quantise(values: Array, form: Format, sums_over: int | None = None, powers: bool = False) -> Array:
    """Return the values scaled, rounded to a format, and divided by their scales again.

    sums_over: axis over which the product sums. Values along it share a scale, which is a power of two.
    None: all values share a scale.
    powers: True if a scale of all values is a power of two.
    """
    amax = np.abs(values).max(axis=sums_over, keepdims=sums_over is not None)
    scale = (form.largest / np.maximum(np.float64(amax), 1e-12)).astype(np.float32)
    if powers or sums_over is not None:
        scale = np.exp2(np.floor(np.log2(np.float64(scale)))).astype(np.float32)
    return round_to(values * scale, form) / scale


def round_to(values: Array, form: Format) -> Array:
    """Return the nearest numbers of the format, the even one of two that are equally near."""
    cut = np.clip(values, -form.largest, form.largest)
    _, exponents = np.frexp(
        cut
    )  # cut = f * 2^exponent with f in [1/2, 1), so its leading 1 is 2^(exponent - 1)
    steps = np.exp2(np.maximum(exponents - 1, form.least_exponent) - form.fraction_bits)
    rounded: Array = (np.rint(cut / steps) * steps).astype(np.float32)
    return rounded
