"""Copying of a directory from one machine to the others: a checkpoint, or the features (token ids) of a
task.
"""

from contextlib import ExitStack, nullcontext
from pathlib import Path

import torch

from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.io.whole_directory import open_directory
from trainer.update.worker import Runtime

_PIECE_BYTES = 1 << 24  # number of bytes of a file that are sent in one exchange


def copy_features(runtime: Runtime, made: str | None) -> str | None:
    """Return the path of the features (a dataset of token ids) on this worker's machine, below its
    output_dir.

    Rank 0 sends a copy to the machines that do not have the features.
    made: path of the features on rank 0, below its output_dir. None if there are no features.
    """
    if made is None or runtime.collective.size == 1:
        return made
    output_dir = str(runtime.config.run.output_dir)
    name = runtime.collective.broadcast_object(made.removeprefix(output_dir).strip("/"))
    here = storage.join(output_dir, name)
    is_first = runtime.collective.local_rank == 0
    lacks = is_first and not storage.exists(storage.join(here, MANIFEST_NAME))
    if any(runtime.collective.gather(lacks)):
        target = Path(here.removeprefix("file://")) if lacks else None
        path = Path(made.removeprefix("file://")) if runtime.collective.rank == 0 else None
        copy_directory(runtime, 0, path, target)
    return here


def copy_directory(runtime: Runtime, source: int, path: Path | None, target: Path | None) -> None:
    """Copy the files of a directory from one worker to the workers that do not have it. All workers must call
    this.

    Checksums are not compared here, because whoever reads the directory compares them: one of its files
    contains the md5 of each other file.
    source: rank of the worker that has the directory.
    path: the directory on that worker, None on all other workers.
    target: path at which the complete copy appears on a worker that lacks the directory, None on all others.
    """

    def make_folder() -> None:
        if target is not None:
            storage.make_directory(str(target.parent))

    runtime.on_every_worker(make_folder)
    runtime.on_every_worker(lambda: _copy_files(runtime, source, path, target))


def _copy_files(runtime: Runtime, source: int, path: Path | None, target: Path | None) -> None:
    """Send the names and sizes of the directory's files, then the contents of one file after the other."""
    sizes = None
    if path is not None:
        files = [file for file in sorted(path.rglob("*")) if file.is_file()]
        sizes = {str(file.relative_to(path)): file.stat().st_size for file in files}
    sizes = runtime.collective.gather(sizes)[source]
    with nullcontext() if target is None else open_directory(target, _is_never_same) as growing:
        for name, size in sizes.items():
            if growing is not None:
                (growing / name).parent.mkdir(parents=True, exist_ok=True)
            _copy_file(runtime, source, path and path / name, growing and growing / name, size)


def _is_never_same(one: Path, other: Path) -> bool:
    """Return False: a directory that already exists at the target is damaged or incomplete, and must be
    replaced.
    """
    return False


def _copy_file(runtime: Runtime, source: int, path: Path | None, target: Path | None, size: int) -> None:
    """Copy one file, piece by piece.

    Every worker must take part in all exchanges. So an error while writing is raised only after the last
    piece.
    """
    failure = None
    with ExitStack() as files:
        read = path and files.enter_context(path.open("rb"))
        written = target and files.enter_context(target.open("wb"))
        for start in range(0, size, _PIECE_BYTES):
            count = min(_PIECE_BYTES, size - start)
            # Send the bytes as 32-bit integers, which every collective can exchange.
            words = -(-count // 4)
            piece = torch.zeros(words, dtype=torch.int32)
            if read:
                padded = bytearray(read.read(count)).ljust(4 * words, b"\0")
                piece = torch.frombuffer(padded, dtype=torch.int32)
            piece = piece.to(runtime.device.torch_device)
            runtime.collective.broadcast([piece], source)
            if written and failure is None:
                try:
                    written.write(runtime.device.to_host(piece).numpy().tobytes()[:count])
                except OSError as error:
                    failure = error
    if failure is not None:
        raise failure
