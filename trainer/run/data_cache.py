"""The cache of remote training data: who shares it, whether it is large enough, and what the log says."""

import math
from collections.abc import Sequence
from itertools import accumulate
from tempfile import gettempdir
from typing import NamedTuple

from bertdata.errors import SettingsError, StorageError
from trainer.data.cache.folder import find_free_bytes
from trainer.data.cache.forecast import AtOnce, Forecast
from trainer.data.cache.shard_cache import ShardCache, format_bytes
from trainer.update.worker import Runtime


class MachineReads(NamedTuple):
    """What the workers of a machine read in the first epoch.

    files: number of the dataset's files that they need.
    bytes: bytes of these files.
    """

    files: int
    bytes: int


def find_machine_copies(runtime: Runtime) -> list[int]:
    """Return the numbers of the copies of the model that this machine trains. All workers call this."""
    return sorted({copy for (copy,) in _gather_on_machine(runtime, [runtime.model_share.copy])})


def sum_over_machine(runtime: Runtime, values: Sequence[int]) -> list[int]:
    """Return the sums of some numbers over the workers of this machine. All workers call this."""
    return [sum(column) for column in zip(*_gather_on_machine(runtime, values), strict=True)]


def _gather_on_machine(runtime: Runtime, values: Sequence[int]) -> list[list[int]]:
    """Return the values of each worker of this machine. All workers call this.

    The workers of a machine have consecutive ranks.
    """
    found = runtime.collective.gather([runtime.collective.local_rank, *values])
    machines = list(accumulate(int(local_rank == 0) for local_rank, *_ in found))
    here = machines[runtime.collective.rank]
    return [own for machine, (_, *own) in zip(machines, found, strict=True) if machine == here]


def check_temporary_room(at_once: AtOnce, advice: str) -> None:
    """Raise StorageError if the temporary directory has less room than the remote files that are open at the
    same time.

    at_once: the copies of all workers of this machine.
    advice: end of the error, another remedy.
    """
    place = gettempdir()
    free, needed = find_free_bytes(place), format_bytes(at_once.bytes)
    if at_once.bytes > free:
        raise StorageError(
            f"{place}: the disk has room for {format_bytes(free)}, but the {at_once.files} files that the "
            f"workers of this machine need at the same time have {needed}; set TMPDIR to a directory on a "
            f"larger disk, or give --cache-dir, with which the workers share their files{advice}"
        )


def check_cache_size(cache: ShardCache, at_once: AtOnce, advice: str = "") -> None:
    """Raise SettingsError if the cache is smaller than what the workers need at the same time.

    Raises StorageError if the disk is smaller. If the disk is smaller than the configured size, the disk is
    the limit.
    advice: end of the error, another remedy.
    """
    size = round_up_gigabytes(at_once.bytes)
    root, files, needed = cache.folder.root, at_once.files, format_bytes(at_once.bytes)
    if at_once.bytes > cache.room:
        raise StorageError(
            f"{root}: the disk has room for {format_bytes(cache.room)}, but the {files} files that this "
            f"machine needs at the same time have {needed}; give --cache-dir on a larger disk{advice}"
        )
    if at_once.bytes > cache.limit:
        raise SettingsError(
            f"cache_size is {format_bytes(cache.limit)}, but the {files} files that this machine needs at "
            f"the same time have {needed}; give --cache-size {size} or more{advice}"
        )
    cache.limit = min(cache.limit, cache.room)


def round_up_gigabytes(count: int) -> str:
    """Return a number of bytes in GB, rounded up to three digits, as a user would type it."""
    step = 10 ** max(0, len(str(count)) - 3)
    return f"{math.ceil(count / step) * step / 1e9:.12f}".rstrip("0").rstrip(".")


def measure_reads(cache: ShardCache, forecast: Forecast, epoch: int) -> MachineReads:
    """Return what the workers of this machine read from the store in an epoch."""
    needed = forecast.find_needed(epoch) & (cache.sizes > 0)
    return MachineReads(files=int(needed.sum()), bytes=int(cache.sizes[needed].sum()))


def describe_reads(cache: ShardCache, reads: Sequence[MachineReads]) -> str:
    """Return a line for the log about what each machine reads, and about the cache.

    reads: what the workers of each machine read.
    """
    total = int((cache.sizes > 0).sum())
    where = f"cache {cache.folder.root}, up to {format_bytes(cache.limit)}"
    if len(reads) == 1:
        files, of_files = reads[0].files, format_bytes(reads[0].bytes)
        return f"this machine reads {files} of {total} files in an epoch, {of_files}; {where}"
    least, most_files = min(one.files for one in reads), max(one.files for one in reads)
    number = str(least) if least == most_files else f"{least} to {most_files}"
    most = format_bytes(max(one.bytes for one in reads))
    return (
        f"each of {len(reads)} machines reads {number} of {total} files in an epoch, at most {most}; {where}"
    )
