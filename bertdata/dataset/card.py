"""A dataset card: README.md, by which ``datasets.load_dataset(DIR)`` finds the shards among the other files.

Without it, ``datasets`` takes all files of the directory for data: lengths, manifests, the vocabulary. The
card names the shards by a pattern, so it is the same for any number of them. A directory of Arrow files has
none: ``load_dataset`` refuses each directory that ``load_from_disk`` reads.
"""

from bertdata.config.dataset_settings import DatasetSettings
from bertdata.shards.containers import LDDL

CARD_NAME = "README.md"
_CARD = """\
---
configs:
- config_name: default
  data_files:
  - split: train
    path: "*.parquet"
---

# {title}

Examples to pre-train on, made by bertdata. `manifest.json` says of which text, with which settings.

    datasets.load_dataset("path of this directory", split="train")

Other libraries take the shards by their pattern, `*.parquet`.
"""


def dataset_card(title: str, settings: DatasetSettings) -> bytes | None:
    """Return the card's bytes. None where ``datasets`` does not read the shards. title: of the dataset."""
    container = settings.container
    # LDDL's files of bins end in .parquet_0 and so on, of which load_dataset(DIR) knows no reader.
    is_read = container["format"] == "parquet" or (
        container["format"] == LDDL and "bin_size" not in container
    )
    return _CARD.format(title=title).encode() if is_read else None
