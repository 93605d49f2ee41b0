"""The rows that are made when examples are loaded: packed, or from length bins."""

from trainer.config.loading import LoadingSection
from trainer.data.dealing import Rows
from trainer.extensions.loading.bins import RowsFromBins
from trainer.extensions.loading.load_packing import RowsPackedAtLoad


def make_rows(keys: LoadingSection, rows: Rows) -> Rows:
    """The configured rows of the data and the masks of others. SettingsError where these cannot be had."""
    if keys.bins is not None:
        return RowsFromBins(rows.data, rows.masks, bins=keys.bins)
    return RowsPackedAtLoad(
        rows.data, rows.masks, window=keys.pack_window, sequences_per_row=keys.sequences_per_row
    )
