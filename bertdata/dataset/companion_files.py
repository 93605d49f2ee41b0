"""Small files that other programs expect beside the shards, such as LDDL's counts, MDS's index and a dataset
card.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bertdata.config.dataset_settings import DatasetSettings
from bertdata.dataset.manifest import ShardEntry
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.manifest_file import dump_json
from bertdata.shards.arrow_fields import dump_dataset_info, dump_dataset_state, list_arrow_fields
from bertdata.shards.containers import ARROW, LDDL, MDS
from bertdata.shards.mds.names import INDEX_NAME, load_numpy
from bertdata.sources.saved_datasets import INFO, STATE

if TYPE_CHECKING:
    from bertdata.shards.mds.index import ShardForm

NUM_SAMPLES = ".num_samples.json"

CARD_NAME = "README.md"
SIGNATURE_NAME = "model.sig"
"""File name of a signature in the directory that it signs. It is model-signing's own default name."""
CROISSANT_NAME = "croissant.json"
FILES_BESIDE = (CARD_NAME, CROISSANT_NAME, SIGNATURE_NAME)
"""Files about a dataset that may lie in its directory although its manifest does not list them."""

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


def make_companion_files(
    directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]
) -> dict[str, bytes]:
    """Return the contents of the small files that other programs expect with the dataset's file format, by
    file name.
    """
    make = _FILES.get(settings.container["format"])
    return {} if make is None else make(directory, settings, shards)


def _make_lddl_files(
    directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]
) -> dict[str, bytes]:
    return {NUM_SAMPLES: dump_sample_counts(shards)}


def _make_arrow_files(
    directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]
) -> dict[str, bytes]:
    objective = find_objective(settings.objective["name"])
    fields = list_arrow_fields(objective, has_masks=settings.objective.get("masks", True))
    contents = {shard.name: shard.content_md5 for shard in sorted(shards, key=lambda shard: shard.name)}
    return {STATE: dump_dataset_state(contents), INFO: dump_dataset_info(fields)}


def _make_mds_files(
    directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]
) -> dict[str, bytes]:
    return {INDEX_NAME: make_mds_index(directory, settings, shards)}


_FILES = {LDDL: _make_lddl_files, ARROW: _make_arrow_files, MDS: _make_mds_files}
"""Functions that make the small files, by file format. Other formats need no such files."""


def dump_sample_counts(shards: Iterable[ShardEntry]) -> bytes:
    """Return the contents of the file from which LDDL's loader reads the number of examples of each shard."""
    counts = {shard.name: shard.examples for shard in shards}
    return dump_json({name: counts[name] for name in sorted(counts)})


def make_mds_index(directory: str, settings: DatasetSettings, shards: Iterable[ShardEntry]) -> bytes:
    """Return the contents of ``index.json``, which MosaicML's loader reads first.

    If the index must contain hashes or compressed sizes, the shards are read to compute them. Empty shards
    are left out, because loaders expect at least one example in each shard.
    """
    load_numpy()
    from bertdata.shards.mds.directory import describe_shard
    from bertdata.shards.mds.index import IndexEntry, StoredFile, dump_index

    form = make_shard_form(settings)
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


def make_shard_form(settings: DatasetSettings) -> "ShardForm":
    """Return the columns, the compression and the hashes of a dataset's MDS shards.

    Token ids have 16 bits if this is enough for the vocabulary, otherwise 32 bits.
    """
    from bertdata.shards.mds.ids import make_id_form

    container, vocabulary = settings.container, settings.vocabulary
    return make_id_form(
        wide=vocabulary.get("size", vocabulary["tokens"]) > 1 << 16,
        with_len=container.get("len", False),
        compression=container.get("compression"),
        hashes=tuple(container.get("hashes", ())),
        size_limit=container.get("size_limit"),
    )


def make_dataset_card(title: str, settings: DatasetSettings) -> bytes | None:
    """Return the contents of README.md, from which ``datasets.load_dataset(DIR)`` learns which files are
    shards.

    Without this file, ``datasets`` would read every file of the directory as data. It names the shards by a
    pattern, so its contents do not depend on the number of shards.

    Returns None if ``datasets`` cannot read the shards. Also returns None for Arrow files, because
    ``load_dataset`` refuses directories that are made for ``load_from_disk``.

    title: title of the dataset.
    """
    container = settings.container
    # With length bins, the names of LDDL's files end in .parquet_0 and so on, which load_dataset(DIR) cannot
    # read.
    is_read = container["format"] == "parquet" or (
        container["format"] == LDDL and "bin_size" not in container
    )
    return _CARD.format(title=title).encode() if is_read else None
