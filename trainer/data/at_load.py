"""Seams of what may be made of the examples when they are loaded: packed rows, and masks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples.columns import Array
from bertdata.records import ShardLayout
from trainer.data.compact import GatheredExamples, Piece
from trainer.data.order import FileRows, Order
from trainer.data.shares import Shares


class Packing(Protocol):
    """Packing of the examples into rows at load."""

    def layout(self, data: OpenedDataset) -> ShardLayout:
        """The layout of the rows; SettingsError where the dataset's rows are packed already."""
        ...

    def rows_of(self, lengths: Array, longest: int) -> Array:
        """The row of each of some examples of so many tokens; longest: tokens of a row."""
        ...

    def shares(
        self,
        data: OpenedDataset,
        order: Order,
        *,
        offsets: Array,
        update_rows: int,
        lengths: Callable[[int], Array],
        seed: int,
        rows_at_once: int,
        ahead: int,
    ) -> Shares:
        """A worker's shares of the rows."""
        ...


class Masks(Protocol):
    """The masks of the examples that a worker gathers."""

    def draw(
        self, gathered: GatheredExamples, parts: Sequence[FileRows], pieces: Sequence[Piece]
    ) -> GatheredExamples:
        """The gathered examples with masks; parts: the rows of each piece, with its file and epoch."""
        ...


class MaskedAtLoad(OpenedDataset, ABC):
    """A dataset whose masks are drawn by the loader, others for each epoch."""

    __slots__ = ()

    @property
    @abstractmethod
    def mask_counts_vary(self) -> bool:
        """True if an example may have more masks than the rate says."""

    @abstractmethod
    def sample(self) -> OpenedDataset:
        """The same examples with as many masks as are ever drawn."""

    @abstractmethod
    def masks(self, *, update_rows: int, first_update: int) -> Masks:
        """The drawing of masks for a loader.

        update_rows: rows of one update in what is gathered. first_update: number of the first one, for a
        rate that changes.
        """
