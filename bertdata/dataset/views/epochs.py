"""The current epoch, which decides the masks, shared by a dataset and its worker processes."""

from importlib.util import find_spec
from typing import Any

from bertdata.dataset.reader import OpenedDataset


class SharedEpoch:
    """The current epoch of a dataset. It can be pickled.

    If torch is installed, DataLoader workers that are already running see changes of the epoch.
    """

    def __init__(self, data: OpenedDataset) -> None:
        self._data = data
        self._epoch: Any = [-1]  # -1 means that no epoch was set, so that the dataset keeps its own epoch
        if find_spec("torch") is not None:
            import torch

            self._epoch = torch.tensor([-1])
            self._epoch.share_memory_()

    def set(self, epoch: int) -> None:
        """Set the epoch, also for workers that are already running."""
        self._epoch[0] = epoch

    @property
    def number(self) -> int:
        """The epoch that was set last. It is -1 if none was set."""
        return int(self._epoch[0])

    def data(self) -> OpenedDataset:
        """Return the dataset with the masks of the epoch that was set last."""
        return self._data if self.number < 0 else self._data.at_epoch(self.number)
