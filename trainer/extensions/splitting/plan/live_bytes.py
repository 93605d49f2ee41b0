"""Count of the bytes that tensors take while a function runs, and of those that its operations move."""

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Within this mode: bytes of the tensors that it saw made and that are still there, real or fake.

    now, peak: bytes, and their maximum; peak may be set. moved: bytes that operations read and wrote. The
    temporary memory of a kernel is not seen. byte_masks: dropout keeps a byte an element, as accelerators'
    kernels do, instead of a factor.
    """

    def __init__(self, byte_masks: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = self.moved = 0
        self._byte_masks = byte_masks
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        results = function(*args, **(kwargs or {}))
        read = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        made = [one for one in tree_leaves(results) if isinstance(one, Tensor)]
        older = {tensor.untyped_storage()._cdata for tensor in read}
        new = [one for one in made if one.untyped_storage()._cdata not in older]
        for tensor in new:
            self._add(tensor)
        if new or function._schema.is_mutable:
            self.moved += sum(tensor.numel() * tensor.element_size() for tensor in (*read, *made))
        if self._byte_masks and function is torch.ops.aten.bernoulli_.float:
            self._resize(made[0], made[0].numel())
        return results

    def _add(self, tensor: Tensor) -> None:
        """Count the tensor's storage, once."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._sizes:
            return
        self._sizes[key] = storage.nbytes()
        self.now += storage.nbytes()
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._drop, key)

    def _resize(self, tensor: Tensor, size: int) -> None:
        key = tensor.untyped_storage()._cdata
        if key in self._sizes:
            self.now += size - self._sizes[key]
            self._sizes[key] = size

    def _drop(self, key: int) -> None:
        self.now -= self._sizes.pop(key)
