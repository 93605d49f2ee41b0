"""An IterableDataset of Hugging Face's ``datasets`` whose masks depend on its epoch.

This module imports ``datasets``.
"""

from typing import Any

from datasets import IterableDataset

from bertdata.dataset.views.epochs import SharedEpoch


class EpochDataset(IterableDataset):  # type: ignore[misc]
    """The IterableDataset of Hugging Face that ``.datasets()`` returns. Its masks depend on the epoch.

    Datasets that are derived from it with ``map`` or ``filter`` use its epoch too.
    """

    shared_epoch: SharedEpoch

    @classmethod
    def from_iterable(cls, view: Any, epoch: SharedEpoch) -> "EpochDataset":
        """Return an EpochDataset with the examples of another IterableDataset.

        view: the other IterableDataset.
        epoch: the epoch, which the dataset shares with the code that draws the masks.
        """
        found = cls(view._ex_iterable, info=view._info)
        found.shared_epoch = epoch
        return found

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch. The masks and the order of shards follow it from the next iteration on."""
        super().set_epoch(epoch)
        self.shared_epoch.set(epoch)
