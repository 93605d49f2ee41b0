"""The step that converts a dataset to another program's layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertdata.io.outputs import refuse_input_as_output
from bertdata.steps.open_dataset import require_package
from bertdata.steps.progress import GivenProgress, StepProgress, choose_progress
from bertdata.steps.values import (
    AnyPath,
    check_positive_integer,
    convert_optional_path,
    convert_path,
    count_workers,
)

if TYPE_CHECKING:
    from bertdata.dataset.manifest import Manifest

STAGE = "converting"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvertedDataset:
    """A converted dataset: its directory and manifest."""

    directory: str
    manifest: Manifest


def convert(
    source: AnyPath,
    target: AnyPath,
    *,
    to: str,
    num_shards: int | None = None,
    shuffled: bool = False,
    bin_size: int | None = None,
    size_limit: int | None = None,
    compression: str | None = None,
    hashes: Sequence[str] = (),
    with_len: bool = False,
    unverified: bool = False,
    vocab: AnyPath | None = None,
    objective: str | None = None,
    workers: int | None = None,
    progress: GivenProgress = None,
) -> ConvertedDataset:
    """Convert the dataset in ``source`` to another layout in the directory ``target``.

    Does the same as ``bertdata convert --to``. Shards that an earlier run finished are kept.

    to: name of the layout, which is ``nvidia-mlperf``, ``lddl``, ``mds``, ``arrow`` or ``fairseq``.
    num_shards: number of shards, required for nvidia-mlperf.
    shuffled: for nvidia-mlperf, put the examples in NVIDIA's published order.
    bin_size: for lddl, width of the length bins (groups of examples of similar length) in ids. None: no bins.
    size_limit: for mds, most bytes of a shard. None: 2^26.
    compression: for mds, name and level of the compression, such as ``"zstd:9"``.
    hashes: for mds, names of the hashes to store for each shard, such as ``["sha1"]``.
    with_len: for mds, add a column ``len`` with the number of ids.
    unverified: accept files that another tool wrote, without a manifest.
    vocab: vocabulary of files without a manifest, or of a dataset that has lost its copy of the vocabulary.
    objective: name of a user-defined objective that the examples have.
    workers: number of processes. None: one per core.
    progress: function called with a StepProgress.
    """
    require_package("numpy", "numpy", "converting a dataset")
    from bertdata.build.conversion.run import convert_dataset
    from bertdata.build.conversion.settings import ConversionSettings

    settings = ConversionSettings(
        to=to,
        num_shards=None if num_shards is None else check_positive_integer("num_shards", num_shards),
        shuffled=shuffled,
        bin_size=0 if bin_size is None else check_positive_integer("bin_size", bin_size),
        size_limit=None if size_limit is None else check_positive_integer("size_limit", size_limit),
        compression=compression,
        hashes=tuple(hashes),
        with_len=with_len,
    )
    on_progress = choose_progress(progress)

    def report_progress(done: int, total: int, line: str) -> None:
        on_progress(StepProgress(stage=STAGE, done=done, total=total, unit="examples", finished=line))

    directory = convert_path(target)
    refuse_input_as_output(directory, [convert_path(source), convert_optional_path(vocab)])
    manifest = convert_dataset(
        convert_path(source),
        directory,
        settings,
        vocabulary=convert_optional_path(vocab),
        unverified=unverified,
        objective=objective,
        workers=count_workers(workers),
        on_progress=report_progress,
    )
    return ConvertedDataset(directory=directory, manifest=manifest)
