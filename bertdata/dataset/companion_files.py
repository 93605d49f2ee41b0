"""Small files that other programs expect next to the shards: LDDL's counts, MDS's index, a dataset card."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bertdata.config.dataset_settings import DatasetSettings
from bertdata.dataset.manifest import ShardEntry
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.manifest_file import dump_json
from bertdata.shards.arrow_fields import arrow_fields, dataset_info, dataset_state
from bertdata.shards.containers import ARROW, LDDL, MDS
from bertdata.shards.mds.names import INDEX_NAME, load_numpy
from bertdata.sources.saved_datasets import INFO, STATE

if TYPE_CHECKING:
    from bertdata.shards.mds.index import ShardForm

NUM_SAMPLES = ".num_samples.json"

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


def companion_files(
    directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]
) -> dict[str, bytes]:
    """Return the contents of the companion files by name. They depend only on the settings and the shards."""
    make = _FILES.get(settings.container["format"])
    return {} if make is None else make(directory, settings, shards)


def _lddl_files(directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]) -> dict[str, bytes]:
    return {NUM_SAMPLES: num_samples(shards)}


def _arrow_files(directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]) -> dict[str, bytes]:
    objective = find_objective(settings.objective["name"])
    fields = arrow_fields(objective, has_masks=settings.objective.get("masks", True))
    contents = {shard.name: shard.content_md5 for shard in sorted(shards, key=lambda shard: shard.name)}
    return {STATE: dataset_state(contents), INFO: dataset_info(fields)}


def _mds_files(directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]) -> dict[str, bytes]:
    return {INDEX_NAME: mds_index(directory, settings, shards)}


_FILES = {LDDL: _lddl_files, ARROW: _arrow_files, MDS: _mds_files}
"""Function that makes the companion files of a container. Other containers have none."""


def num_samples(shards: Iterable[ShardEntry]) -> bytes:
    """Return the file with the number of examples of each shard, which LDDL's loader needs."""
    counts = {shard.name: shard.examples for shard in shards}
    return dump_json({name: counts[name] for name in sorted(counts)})


def mds_index(directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]) -> bytes:
    """Return ``index.json``, which Mosaic's loader reads first.

    Shards with hashes or compression are read for it. Empty shards are left out, because loaders expect at
    least one example in each.
    """
    load_numpy()
    from bertdata.shards.mds.directory import describe_shard
    from bertdata.shards.mds.index import IndexEntry, StoredFile, dump_index

    form = form_of(settings)
    used = sorted((shard for shard in shards if shard.examples), key=lambda shard: shard.name)
    if form.hashes or form.compression:
        paths = {storage.join(directory, shard.name): shard for shard in used}
        entries = storage.map_paths(
            list(paths), lambda path: describe_shard(path, form, paths[path].examples)
        )
    else:
        entries = [
            IndexEntry(
                form=form,
                samples=shard.examples,
                raw=StoredFile(basename=shard.name, bytes=shard.bytes, hashes={}),
            )
            for shard in used
        ]
    return dump_index(entries)


def form_of(settings: DatasetSettings) -> "ShardForm":
    """Return the form of MDS shards for these settings, with ids as wide as the vocabulary needs."""
    from bertdata.shards.mds.ids import id_form

    container, vocabulary = settings.container, settings.vocabulary
    return id_form(
        wide=vocabulary.get("size", vocabulary["tokens"]) > 1 << 16,
        with_len=container.get("len", False),
        compression=container.get("compression"),
        hashes=tuple(container.get("hashes", ())),
        size_limit=container.get("size_limit"),
    )


def dataset_card(title: str, settings: DatasetSettings) -> bytes | None:
    """Return README.md, which tells ``datasets.load_dataset(DIR)`` which files are shards.

    Without the card, ``datasets`` would take every file of the directory for data. The card names the shards
    by a pattern, so it does not depend on their number.
    title: the dataset's title.
    None if ``datasets`` cannot read the shards, and for Arrow files, because ``load_dataset`` refuses
    directories made for ``load_from_disk``.
    """
    container = settings.container
    # With length bins, LDDL's files end in .parquet_0 and so on, which load_dataset(DIR) cannot read.
    is_read = container["format"] == "parquet" or (
        container["format"] == LDDL and "bin_size" not in container
    )
    return _CARD.format(title=title).encode() if is_read else None
