"""Examples of a dataset to shards in another program's layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertdata.io.outputs import refuse_inputs
from bertdata.steps.open_dataset import need
from bertdata.steps.progress import OnProgress, StepProgress, silent
from bertdata.steps.values import AnyPath, optional_path, path_of, whole_number, workers_of

if TYPE_CHECKING:
    from bertdata.dataset.manifest import Manifest

STAGE = "converting"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvertedDataset:
    """A converted dataset: its directory and its manifest."""

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
    progress: OnProgress | None = None,
) -> ConvertedDataset:
    """Convert the dataset in ``source`` into the directory ``target``, as ``bertdata convert --to`` does.

    to: nvidia-mlperf, which needs num_shards and may be shuffled; lddl, which may have bins of bin_size ids;
    mds, of size_limit bytes a shard at most (2^26), with compression as ``"zstd:9"``, hashes as ``["sha1"]``
    and, with_len, the number of ids in a column len; arrow; fairseq. unverified: take files of any tool
    without a manifest; vocab: theirs, or that of a dataset which has lost it. objective: one of your own that
    the examples have. Shards that an earlier run finished are kept.
    """
    need("numpy", "numpy", "converting a dataset")
    from bertdata.build.conversion.run import convert_dataset
    from bertdata.build.conversion.settings import ConversionSettings

    settings = ConversionSettings(
        to=to,
        num_shards=None if num_shards is None else whole_number("num_shards", num_shards),
        shuffled=shuffled,
        bin_size=0 if bin_size is None else whole_number("bin_size", bin_size),
        size_limit=None if size_limit is None else whole_number("size_limit", size_limit),
        compression=compression,
        hashes=tuple(hashes),
        with_len=with_len,
    )
    tell = progress or silent

    def told(done: int, total: int, line: str) -> None:
        tell(StepProgress(stage=STAGE, done=done, total=total, unit="examples", finished=line))

    directory = path_of(target)
    refuse_inputs(directory, [path_of(source), optional_path(vocab)])
    manifest = convert_dataset(
        path_of(source),
        directory,
        settings,
        vocabulary=optional_path(vocab),
        unverified=unverified,
        objective=objective,
        workers=workers_of(workers),
        told=told,
    )
    return ConvertedDataset(directory=directory, manifest=manifest)
