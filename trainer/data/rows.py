"""Choosing the class of rows for a training. A row is an example, or several that are packed together."""

from bertdata.dataset.reader import OpenedDataset
from trainer.config.settings import Config
from trainer.data.dynamic_masks import MaskingAtLoad
from trainer.data.examples import Rows
from trainer.data.load_packing import make_rows
from trainer.data.packs import PackRows
from trainer.plugins import find


def find_rows(config: Config, data: OpenedDataset) -> Rows:
    """Return the rows of a dataset for the loader, as configured. SettingsError if the dataset does not allow
    them.

    A row may be a single example or several packed examples. Examples may be drawn from bins of similar
    length.
    """
    masking = config.masking_at_load
    rows = Rows(data)
    if masking is not None:
        kind: MaskingAtLoad = find("masking", masking)
        rows = kind.rows(config, data)
    if config.loading.bins or config.loading.pack_on_load:
        rows = make_rows(config.loading, rows)
    elif data.layout.packing is not None:
        rows = PackRows(data, rows.masks)
    return rows
