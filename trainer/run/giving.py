"""Directories that one worker gives to the machines of others: a checkpoint, the features of a task."""

from contextlib import ExitStack, nullcontext
from pathlib import Path

import torch

from bertdata.io import storage
from bertdata.io.manifest_file import MANIFEST_NAME
from bertdata.io.whole_directory import open_directory
from trainer.update.worker import Runtime

_PIECE_BYTES = 1 << 24  # of a file, in one exchange


def give_features(runtime: Runtime, made: str | None) -> str | None:
    """The features that rank 0 has made, where they are on this worker's machine: below its own output_dir.

    made: their path on rank 0, below its output_dir. Machines that lack them are given them.
    """
    if made is None or runtime.workers.size == 1:
        return made
    output_dir = str(runtime.config.run.output_dir)
    name = runtime.workers.broadcast_object(made.removeprefix(output_dir).strip("/"))
    here = storage.join(output_dir, name)
    is_first = runtime.workers.local_rank == 0
    lacks = is_first and not storage.exists(storage.join(here, MANIFEST_NAME))
    if any(runtime.workers.gather(lacks)):
        target = Path(here.removeprefix("file://")) if lacks else None
        path = Path(made.removeprefix("file://")) if runtime.workers.rank == 0 else None
        give_directory(runtime, 0, path, target)
    return here


def give_directory(runtime: Runtime, source: int, path: Path | None, target: Path | None) -> None:
    """Copy a directory's files from the worker of rank ``source`` to others, a piece at a time.

    path: where it is, on that worker alone. target: where it appears whole, on each worker that lacks it.
    Every worker calls this. The files hold md5s of each other, which are compared when they are read.
    """

    def make_folder() -> None:
        if target is not None:
            storage.make_directory(str(target.parent))

    runtime.on_every_worker(make_folder)
    runtime.on_every_worker(lambda: _give_files(runtime, source, path, target))


def _give_files(runtime: Runtime, source: int, path: Path | None, target: Path | None) -> None:
    sizes = None
    if path is not None:
        files = [file for file in sorted(path.rglob("*")) if file.is_file()]
        sizes = {str(file.relative_to(path)): file.stat().st_size for file in files}
    sizes = runtime.workers.gather(sizes)[source]
    with nullcontext() if target is None else open_directory(target, _never_same) as growing:
        for name, size in sizes.items():
            if growing is not None:
                (growing / name).parent.mkdir(parents=True, exist_ok=True)
            _give_file(runtime, source, path and path / name, growing and growing / name, size)


def _never_same(one: Path, other: Path) -> bool:
    """What is there already is damaged, or a part: it is replaced."""
    return False


def _give_file(runtime: Runtime, source: int, path: Path | None, target: Path | None, size: int) -> None:
    """Copy a file. An error in writing is raised when all pieces have come: every worker takes each."""
    failure = None
    with ExitStack() as files:
        read = path and files.enter_context(path.open("rb"))
        written = target and files.enter_context(target.open("wb"))
        for start in range(0, size, _PIECE_BYTES):
            count = min(_PIECE_BYTES, size - start)
            words = -(-count // 4)  # of 32 bits, which every collective adds
            piece = torch.zeros(words, dtype=torch.int32)
            if read:
                padded = bytearray(read.read(count)).ljust(4 * words, b"\0")
                piece = torch.frombuffer(padded, dtype=torch.int32)
            piece = piece.to(runtime.device.torch_device)
            runtime.workers.broadcast([piece], source)
            if written and failure is None:
                try:
                    written.write(runtime.device.to_host(piece).numpy().tobytes()[:count])
                except OSError as error:
                    failure = error
    if failure is not None:
        raise failure
