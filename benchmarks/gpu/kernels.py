"""CUDA kernels of a profile by kind, told by their names."""

import re
from collections.abc import Iterable

OTHER = "other"
KINDS: dict[str, str] = {
    "attention": r"flash|fmha|attention|sdpa",
    "optimiser": r"multi_tensor|adam|lpnorm|addcmul|lamb",
    "matrix products": r"gemm|gemv|cutlass|cublas|nvjet|xmma|wgmma|splitk|triton_tem|s\d*16816|_mm_",
    "copies": r"memcpy|memset|copy|catarray",
    "elementwise and Triton": r"triton|elementwise|layer_?norm|reduce|softmax|dropout|embedding|index|gather"
    r"|scatter|fill|loss|gelu|cumsum|sort|scan",
}
"""Patterns in lower-case names by kind; the first kind that fits is a kernel's."""


def kind_of(kernel: str) -> str:
    """The kind of the kernel of that name."""
    name = kernel.lower()
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, name)), OTHER)


def times_by_kind(kernels: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The sum of the times of (name, time) by kind, all kinds in a fixed order."""
    sums = dict.fromkeys(sorted([*KINDS, OTHER]), 0.0)
    for name, time in kernels:
        sums[kind_of(name)] += time
    return sums
