"""CUDA kernels of a profile by kind, told by their names."""

import re
from collections.abc import Iterable

PRODUCTS, ATTENTION, OPTIMISER = "matrix products", "attention", "optimiser"
COPIES, ELEMENTWISE, OTHER = "copies", "elementwise and Triton", "other"
KINDS = (PRODUCTS, ATTENTION, OPTIMISER, COPIES, ELEMENTWISE, OTHER)

_PATTERNS = (
    # Triton's kernels bear the names of all operations that are fused in them, so their prefix decides.
    (r"^triton_tem", PRODUCTS),
    (r"^triton_for", OPTIMISER),  # kernels over lists of tensors
    (r"^triton_", ELEMENTWISE),
    (r"flash|fmha|attention|sdpa", ATTENTION),
    (r"multi_tensor|adam|lpnorm|addcmul|lamb", OPTIMISER),
    (r"gemm|gemv|cutlass|cublas|nvjet|xmma|wgmma|splitk", PRODUCTS),
    (r"memcpy|memset|copy|catarray", COPIES),
    (r"elementwise|layer_?norm|reduce_kernel|softmax|dropout|embedding|grad_weight", ELEMENTWISE),
    (r"index|gather|scatter|fill|loss|gelu|sort|scan", ELEMENTWISE),
)
"""Patterns in lower-case names; the first that is found tells the kind."""


def classify_kernel(kernel: str) -> str:
    """The kind of the kernel of that name."""
    name = kernel.lower()
    return next((kind for pattern, kind in _PATTERNS if re.search(pattern, name)), OTHER)


def sum_times_by_type(kernels: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The sum of the times of (name, time) by kind, all kinds in a fixed order."""
    sums = dict.fromkeys(KINDS, 0.0)
    for name, time in kernels:
        sums[classify_kernel(name)] += time
    return sums
