"""An IterableDataset of Hugging Face's ``datasets`` whose masks depend on its epoch.

This module imports ``datasets``.
"""

from typing import Any

from datasets import IterableDataset

from bertdata.dataset.views.epochs import SharedEpoch


class EpochDataset(IterableDataset):  # type: ignore[misc]
    """The IterableDataset that ``.datasets()`` returns.

    Datasets derived from it with ``map`` or ``filter`` follow its epoch.
    """

    shared_epoch: SharedEpoch

    @classmethod
    def of(cls, view: Any, epoch: SharedEpoch) -> "EpochDataset":
        """Make an EpochDataset with the examples of an IterableDataset ``view`` and a shared epoch."""
        found = cls(view._ex_iterable, info=view._info)
        found.shared_epoch = epoch
        return found

    def set_epoch(self, epoch: int) -> None:
        """Use the masks and the shard order of this epoch from the next iteration on."""
        super().set_epoch(epoch)
        self.shared_epoch.set(epoch)
