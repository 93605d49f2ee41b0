"""The operations of PyTorch that a test's code calls."""

from collections import Counter

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Operations(TorchDispatchMode):
    """Counts operations by name, and copies from one device to another."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter[str]()
        self.copies = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.counts[function.overloadpacket.__name__] += 1
        result = function(*args, **kwargs or {})
        if isinstance(result, Tensor) and args and isinstance(args[0], Tensor):
            self.copies += result.device != args[0].device
        return result
