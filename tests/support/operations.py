"""A counter of the PyTorch operations that a piece of code performs."""

from collections import Counter

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Operations(TorchDispatchMode):
    """A dispatch mode that counts operations by name, and copies between devices."""

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
