"""The choice of the rows that a training reads."""

from bertdata.dataset.reader import OpenedDataset
from trainer.config.settings import Config
from trainer.data.dynamic_masks import MaskingAtLoad
from trainer.data.examples import Rows
from trainer.data.load_packing import make_rows
from trainer.data.packs import PackRows
from trainer.plugins import find


def find_rows(config: Config, data: OpenedDataset) -> Rows:
    """The configured rows of a dataset. SettingsError where it cannot have them."""
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
