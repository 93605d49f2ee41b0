"""An IterableDataset of Hugging Face's ``datasets`` whose epoch decides its masks.

Needs ``datasets`` when it is imported.
"""

from typing import Any

from datasets import IterableDataset

from bertdata.dataset.views.epochs import SharedEpoch


class EpochDataset(IterableDataset):  # type: ignore[misc]
    """The view that ``.datasets()`` gives. What ``map`` or ``filter`` make of it follows this one's epoch."""

    shared_epoch: SharedEpoch

    @classmethod
    def of(cls, view: Any, epoch: SharedEpoch) -> "EpochDataset":
        """The view with this epoch."""
        found = cls(view._ex_iterable, info=view._info)
        found.shared_epoch = epoch
        return found

    def set_epoch(self, epoch: int) -> None:
        """Take the masks of that epoch from the next iteration on, and the order of shards that it has."""
        super().set_epoch(epoch)
        self.shared_epoch.set(epoch)
