"""Sorting of the CUDA kernels in a profile into types such as matrix products, by the kernels' names."""

import re
from collections.abc import Iterable

PRODUCTS, ATTENTION, OPTIMISER = "matrix products", "attention", "optimiser"
COPIES, ELEMENTWISE, OTHER = "copies", "elementwise and Triton", "other"
KINDS = (PRODUCTS, ATTENTION, OPTIMISER, COPIES, ELEMENTWISE, OTHER)

_PATTERNS = (
    # The name of a Triton kernel lists all operations that are fused in the kernel. So only the beginning of
    # the name says which type it is.
    (r"^triton_tem", PRODUCTS),
    (r"^triton_for", OPTIMISER),  # kernels that work on lists of tensors
    (r"^triton_", ELEMENTWISE),
    (r"flash|fmha|attention|sdpa", ATTENTION),
    (r"multi_tensor|adam|lpnorm|addcmul|lamb", OPTIMISER),
    (r"gemm|gemv|cutlass|cublas|nvjet|xmma|wgmma|splitk", PRODUCTS),
    (r"memcpy|memset|copy|catarray", COPIES),
    (r"elementwise|layer_?norm|reduce_kernel|softmax|dropout|embedding|grad_weight", ELEMENTWISE),
    (r"index|gather|scatter|fill|loss|gelu|sort|scan", ELEMENTWISE),
)
"""Patterns for names of kernels in lower case, each with a type. The first pattern that matches decides."""


def classify_kernel(kernel: str) -> str:
    """Return the type of the kernel with this name."""
    name = kernel.lower()
    return next((kind for pattern, kind in _PATTERNS if re.search(pattern, name)), OTHER)


def sum_times_by_type(kernels: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Add up the kernels' times for each type. The types are always in the same order.

    kernels: pairs of a kernel's name and its time.
    """
    sums = dict.fromkeys(KINDS, 0.0)
    for name, time in kernels:
        sums[classify_kernel(name)] += time
    return sums
