"""Small files that other programs want beside the shards: LDDL's counts, MDS's index, ``datasets``' card."""

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
    """Return the files by name: a function of the dataset's settings and shards. See mds_index."""
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
"""Maker of the further files of a dataset, by container. Other containers have none."""


def num_samples(shards: Iterable[ShardEntry]) -> bytes:
    """Return LDDL's file of the number of examples of each shard, which its loader needs."""
    counts = {shard.name: shard.examples for shard in shards}
    return dump_json({name: counts[name] for name in sorted(counts)})


def mds_index(directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]) -> bytes:
    """Return ``index.json``, which Mosaic's loader reads first. Hashed or compressed shards are read for it.

    A shard without examples, as a part without text has, is left out: loaders expect some in each.
    """
    load_numpy()
    from bertdata.shards.mds.directory import describe_shard
    from bertdata.shards.mds.index import IndexEntry, StoredFile, dump_index

    form = form_of(settings)
    used = sorted((shard for shard in shards if shard.examples), key=lambda shard: shard.name)
    if form.hashes or form.compression:
        paths = {storage.join(directory, shard.name): shard for shard in used}
        entries = storage.each(list(paths), lambda path: describe_shard(path, form, paths[path].examples))
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
    """Return the form of MDS shards, as wide as the vocabulary needs."""
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
    """Return README.md, by which ``datasets.load_dataset(DIR)`` finds the shards among the other files.

    Without it, ``datasets`` takes all files of the directory for data: lengths, manifests, the vocabulary.
    The card names the shards by a pattern, so it is the same for any number of them. None where ``datasets``
    does not read the shards, and for Arrow files: ``load_dataset`` refuses each directory that
    ``load_from_disk`` reads. title: of the dataset.
    """
    container = settings.container
    # LDDL's files of bins end in .parquet_0 and so on, of which load_dataset(DIR) knows no reader.
    is_read = container["format"] == "parquet" or (
        container["format"] == LDDL and "bin_size" not in container
    )
    return _CARD.format(title=title).encode() if is_read else None
