"""The epoch of a view whose masks are drawn when it is read, which may change between two readings."""

from importlib.util import find_spec
from typing import Any

from bertdata.dataset.reader import OpenedDataset


class SharedEpoch:
    """A dataset's epoch. Picklable. Where torch is installed, a DataLoader's workers see it change."""

    def __init__(self, data: OpenedDataset) -> None:
        self._data = data
        self._epoch: Any = [-1]  # below 0: the dataset's own
        if find_spec("torch") is not None:
            import torch

            self._epoch = torch.tensor([-1])
            self._epoch.share_memory_()

    def set(self, epoch: int) -> None:
        """Change the epoch, for workers that run already too."""
        self._epoch[0] = epoch

    @property
    def number(self) -> int:
        """The epoch that was set last, -1 before."""
        return int(self._epoch[0])

    def data(self) -> OpenedDataset:
        """The dataset of the epoch."""
        return self._data if self.number < 0 else self._data.at_epoch(self.number)
