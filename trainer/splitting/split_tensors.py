"""Checkpoints of split models: each worker reads and writes only the rows that it holds.

A checkpoint has a file of weights and a file of moments for each worker. Each file contains whole tensors,
even if several workers write the rows of a tensor. Training can therefore continue with a different split, or
without a split.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from hashlib import md5
from pathlib import Path
from typing import IO, Any

from torch import Tensor

from bertdata.errors import BertDataError, SettingsError, StorageError
from bertdata.io.file_check import compute_file_md5
from trainer.checkpoints.any_checkpoint import Checkpoint, Stored
from trainer.checkpoints.checkpoint import (
    MOMENTS,
    WEIGHTS,
    CheckpointWriter,
    State,
    get_checkpoint_path,
    open_checkpoint_directory,
    prune_checkpoints,
    write_state,
)
from trainer.checkpoints.damage import add_remedy_to_errors
from trainer.checkpoints.filling import match_moments, match_weights
from trainer.checkpoints.opening import open_start
from trainer.checkpoints.reading import check_file, list_tensor_files
from trainer.checkpoints.safetensors_files import (
    INDEX,
    TensorPlace,
    create_empty,
    format_index,
    lay_out_tensors,
    read_places,
    read_rows,
    write_rows,
)
from trainer.checkpoints.source import open_checkpoint
from trainer.config.model import ModelConfig
from trainer.errors import CheckpointError
from trainer.splitting.held import WeightPart
from trainer.splitting.split_strategy import SplitInference, SplitStrategy
from trainer.update.worker import Runtime

Shapes = Mapping[str, tuple[int, ...]]


class SplitTensors:
    """The weights and moments of a split model. Methods read them from checkpoints and save them."""

    def __init__(self, runtime: Runtime, shape: ModelConfig, strategy: SplitStrategy) -> None:
        self._runtime, self._shape, self._strategy = runtime, shape, strategy

    def read_weights(self, path: str) -> None:
        """Fill the weights of all workers from a checkpoint of this trainer or of another program."""
        run_on_all_workers(self._runtime, path, lambda: self._read_foreign(path))

    def _read_foreign(self, path: str) -> None:
        """Fill this worker's weights from a checkpoint of this trainer or of another program.

        The optimiser's moments are read too if the configuration asks for it.
        """
        with_moments = self._runtime.config.start.start_moments
        checkpoint = open_start(self._runtime, self._shape, path)
        fill_parts(self._runtime, self._shape, self._strategy.weight_parts(), checkpoint)
        if with_moments:
            own = self._runtime.empty_model(self._shape).state_dict()
            moments = match_moments(own, self._shape, checkpoint)
            if not moments:
                raise CheckpointError(f"{path}: holds no moments of an optimiser; leave out start_moments")
            _fill_stored_parts(self._strategy.moment_parts(), moments)
            self._strategy.set_applied(self._runtime.config.start.count_moment_updates(checkpoint.updates))

    def read(self, path: Path, saved: State, applied: int) -> None:
        """Read weights and moments from a checkpoint of this trainer, after checking the checkpoint's files.

        path: directory of the checkpoint.
        saved: state that was read from the checkpoint.
        applied: number of updates made so far.
        """
        parts = {WEIGHTS: self._strategy.weight_parts(), MOMENTS: self._strategy.moment_parts()}
        files = [
            file for name, some in parts.items() if some for file in list_tensor_files(saved, name) or [name]
        ]
        workers = self._runtime.collective
        mine = files[workers.rank :: workers.size]
        every = [part for some in parts.values() for part in some]

        def check() -> None:
            with add_remedy_to_errors(path, saved):
                for file in mine:
                    check_file(path, saved, file)

        run_on_all_workers(self._runtime, path, check)
        run_on_all_workers(self._runtime, path, lambda: self._read_parts(path, files, every))
        self._strategy.set_applied(applied)

    def broadcast(self) -> None:
        """Do nothing.

        A whole model's weights are broadcast here. In a split model, all workers that hold a weight have
        already drawn or read the same values.
        """

    def held(self) -> tuple[str, list[Tensor]]:
        """Return the rows that this worker holds, after a digest of their names, positions and shapes.

        Workers compare digests before they compare the rows.
        """
        parts = [part for part in self._strategy.weight_parts() if part.rows.numel()]
        names = [f"{part.name} {part.start} {list(part.rows.shape)}" for part in parts]
        return md5("\n".join(names).encode(), usedforsecurity=False).hexdigest(), [
            part.rows for part in parts
        ]

    def are_finite(self) -> bool:
        """Return True if all weights on all workers are finite."""
        parts = self._strategy.weight_parts()
        found = all(bool(part.rows.detach().norm().isfinite()) for part in parts if part.rows.numel())
        return all(self._runtime.collective.gather(found))

    def save(self, state: State, writer: CheckpointWriter) -> None:
        """Save a checkpoint at once.

        A copy of the tensors, to be written later in the background, would need as much memory as the model.
        """
        runtime, output_dir = self._runtime, str(self._runtime.config.run.output_dir)
        path = get_checkpoint_path(output_dir, state)
        parts = {WEIGHTS: self._strategy.weight_parts(), MOMENTS: self._strategy.moment_parts()}
        files = {name: self._divide_into_files(name, one) for name, one in parts.items()}
        every = {file: shapes for one in files.values() for file, shapes in one.items()}
        mine = sorted(every)[runtime.collective.rank :: runtime.collective.size]
        every_worker = partial(run_on_all_workers, runtime, path)
        with ExitStack() as stack:
            # Rank 0 creates the files, every worker writes its rows and computes the md5 of some files, and
            # rank 0 renames the directory.
            folder = Path(every_worker(lambda: self._create_files(stack, path, every))[0])
            every_worker(lambda: self._write(folder, every, parts.values()))
            sums = every_worker(lambda: {file: compute_file_md5(str(folder / file)) for file in mine})
            md5s = {file: md5 for some in sums for file, md5 in some.items()}
            every_worker(lambda: self._finish_checkpoint(stack, folder, replace(state, files=md5s), files))
        if runtime.collective.rank == 0:
            prune_checkpoints(output_dir, state, runtime.config.run.keep_checkpoints)

    def _create_files(self, stack: ExitStack, path: Path, files: Mapping[str, Shapes]) -> str | None:
        """Create, on rank 0, the checkpoint's directory with files of the final size, and return its path.

        The workers write the values into these files later.
        """
        if self._runtime.collective.rank:
            return None
        growing = stack.enter_context(open_checkpoint_directory(path))
        for file, shapes in files.items():
            create_empty(str(growing / file), shapes)
        return str(growing)

    def _finish_checkpoint(
        self, stack: ExitStack, folder: Path, state: State, files: Mapping[str, Mapping[str, Shapes]]
    ) -> None:
        """Write, on rank 0, the indexes and the state, and rename the directory to its final name.

        stack: closing it renames the directory.
        """
        if self._runtime.collective.rank:
            return
        md5s = dict(state.files)
        for name, one in files.items():
            if one:
                index = folder / f"{name}{INDEX}"
                index.write_text(format_index(one), encoding="utf-8")
                md5s[index.name] = compute_file_md5(str(index))
        write_state(folder, replace(state, files=md5s))
        stack.close()

    def _divide_into_files(self, name: str, parts: Sequence[WeightPart]) -> dict[str, Shapes]:
        """Return the checkpoint's files for weights or moments, each with the shapes of its tensors.

        There are as many files as workers. The tensors of a stage are divided among as many files as the
        stage has copies, and these files are of nearly equal size.
        name: name of the file that a whole model's tensors would have.
        """
        division, workers = self._runtime.model_share, self._runtime.collective
        mine = [[part.name, list(part.shape)] for part in parts if part.writes]
        gathered = workers.gather(mine)
        stem, _, ending = name.partition(".")
        files: dict[str, Shapes] = {}
        for stage in range(division.stages):
            of_stage = gathered[stage * division.copies : (stage + 1) * division.copies]
            shapes = {part: tuple(shape) for one in of_stage for part, shape in one}
            for number, some in enumerate(
                _split_evenly(shapes, division.copies), 1 + stage * division.copies
            ):
                if some:
                    files[f"{stem}-{number:05d}-of-{workers.size:05d}.{ending}"] = some
        return files

    def _write(
        self, folder: Path, files: Mapping[str, Shapes], parts: Iterable[Sequence[WeightPart]]
    ) -> None:
        """Write this worker's rows into the files that rank 0 has created."""
        if not folder.is_dir():
            raise SettingsError(
                f"{folder}: rank {self._runtime.collective.rank} does not see it; workers of a split model "
                "need one output_dir for all"
            )
        own = {part.name: part for some in parts for part in some if part.writes}
        for file, shapes in files.items():
            if written := [own[name] for name in shapes if name in own]:
                places = lay_out_tensors(shapes)[1]
                with open(folder / file, "r+b") as opened:
                    for part in written:
                        rows = self._runtime.device.to_host(part.rows)
                        write_rows(opened.fileno(), places[part.name], part.start, rows)

    def _read_parts(self, folder: Path, files: Sequence[str], parts: Sequence[WeightPart]) -> None:
        """Read the rows that this worker holds from the checkpoint's files.

        Raises CheckpointError if a tensor is missing or has a different shape.
        """
        with ExitStack() as stack:
            where = dict[str, tuple[IO[bytes], TensorPlace]]()
            for file in files:
                opened: IO[bytes] = stack.enter_context(open(folder / file, "rb"))
                places = read_places(str(folder / file))
                where |= {name: (opened, place) for name, place in places.items()}
            for part in parts:
                if part.name not in where:
                    raise CheckpointError(f"{folder}: lacks {part.name}")
                opened, place = where[part.name]
                if place.shape != part.shape:
                    raise CheckpointError(
                        f"{opened.name}: {part.name} has shape {list(place.shape)}, "
                        f"expected {list(part.shape)}"
                    )
                host = self._runtime.device.to_host(part.rows)  # no copy if it is already in host memory
                read_rows(opened.fileno(), place, part.start, host)
                part.rows.copy_(host)


def read_split_weights(
    runtime: Runtime, shape: ModelConfig, inference: SplitInference, path: str, read: Callable[..., Any]
) -> bool:
    """Fill the weights of a split model on all workers, for evaluation.

    Returns False if the checkpoint no longer exists.
    read: function that calls its argument and returns the result, or None if the checkpoint no longer exists.
    Raises DataError if the checkpoint lacks the task's head.
    """

    def fill() -> bool:
        model_config = runtime.config.model.model_config
        checkpoint = open_checkpoint(path, model_config=model_config, with_moments=False)
        missing = fill_parts(runtime, shape, inference.weight_parts(), checkpoint)
        runtime.task.check_head(missing, path)
        return True

    return None not in run_on_all_workers(runtime, path, partial(read, fill))


def fill_parts(
    runtime: Runtime, shape: ModelConfig, parts: Sequence[WeightPart], checkpoint: Checkpoint
) -> list[str]:
    """Fill a worker's weights from a checkpoint of this trainer or of another program.

    Return the names of weights that the checkpoint lacks.
    """
    weights, missing = match_weights(runtime.empty_model(shape).state_dict(), shape, checkpoint)
    _fill_stored_parts(parts, weights)
    return missing


def run_on_all_workers(runtime: Runtime, path: str | Path, work: Callable[[], Any]) -> list[Any]:
    """Call a function on every worker and return the results, ordered by rank.

    An error on one worker ends all workers.
    path: the checkpoint that the function reads or writes. If an error of the operating system names no file,
        the message names this path.
    """
    result, failure = None, None
    try:
        result = work()
    except BertDataError as error:
        failure = error
    except OSError as error:
        where, reason = error.filename or path, error.strerror or error
        failure = StorageError(f"{where}: rank {runtime.collective.rank}: {reason}")
    gathered = runtime.collective.gather([failure and str(failure), result])
    messages = [message for message, _ in gathered if message is not None]
    if messages:
        runtime.stop_all(failure or CheckpointError(messages[0]))
    return [value for _, value in gathered]


def _split_evenly(shapes: Shapes, count: int) -> list[Shapes]:
    """Divide the tensors, in their order, into ``count`` groups of nearly equal size."""
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    total, seen = max(1, sum(sizes.values())), 0
    groups: list[dict[str, tuple[int, ...]]] = [{} for _ in range(count)]
    # A tensor goes to the group in which its middle lies. For example, tensors of sizes [4, 2, 2, 8] make the
    # two groups [4, 2, 2] and [8].
    for name, size in sizes.items():
        groups[min(count - 1, (seen + size // 2) * count // total)][name] = shapes[name]
        seen += size
    return list(groups)


def _fill_stored_parts(parts: Sequence[WeightPart], stored: Stored) -> None:
    """Copy stored tensors into the weights of the same names. Other weights stay unchanged."""
    for part in parts:
        if part.name in stored and part.rows.numel():
            part.fill(stored[part.name].read())
