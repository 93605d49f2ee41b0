"""Checkpoints of this trainer. Each is a directory, written atomically, with an md5 for every file.

    output_dir/checkpoints/step-00000100/
        model.safetensors       weights by name
        optimizer.safetensors   the optimiser's moments, with names like exp_avg/bert.pooler.dense.bias
        state.json              everything else, and the md5s of the other files

A split run divides the tensors among several files, named model-00001-of-00004.safetensors and so on. Then
model.safetensors.index.json says which file has which tensor, as in Hugging Face's format.

The number in the directory's name counts the steps of phase 1 and phase 2 together. Nothing is pickled. No
random state is stored, because each micro-batch has its own seed. So dropout is the same after a resume and
for any number of workers.
"""

import filecmp
import json
import math
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import torch
from safetensors import SafetensorError
from torch import Tensor

from bertdata import __version__
from bertdata.errors import StorageError
from bertdata.io.file_check import compute_file_md5
from bertdata.io.whole_directory import open_directory, remove_at_once, sweep_directories
from bertdata.lineages.exported_model import LINEAGE_NAME
from bertdata.lineages.run_state import CHECKPOINTS, STATE_FORMAT, STATE_NAME, compute_state_md5
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.device import HOST
from trainer.update.strategy import Strategy, UpdateNumber
from trainer.update.worker import Worker

if TYPE_CHECKING:
    from trainer.checkpoints.any_checkpoint import StoredTensor


FORMAT, STATE = STATE_FORMAT, STATE_NAME
WEIGHTS, MOMENTS = "model.safetensors", "optimizer.safetensors"


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """Everything except tensors that a run needs to resume."""

    phase: int = 1
    phase_start: int = 0  # number of the checkpoint that this phase started from
    step: int = 0  # number of updates in this phase
    # number of updates in this phase that changed the weights. Updates whose fp16 gradients overflowed are
    # skipped and not counted.
    applied: int = 0
    trained: int = 0  # examples that this phase has trained on
    # where to continue in the training data (trainer.data.order.Position)
    position: tuple[int, ...] = (0, 0, 0)
    # what the position counts, in words: for example stored examples, or rows with several packed examples
    order: str = "as stored"
    data: str | None = None  # digest of the dataset that position refers to
    seed: int
    open_files: int
    # rows of the chunks in which files are read, or 0 if they are read whole (trainer.data.streams)
    chunk_rows: int = 0
    # names of the data files whose rows were used, but which were not compared with their md5s yet
    unchecked_files: list[str] = field(default_factory=list)
    optimiser: str
    task: str = ""  # name of the learned task. "" if unknown, in converted or older checkpoints
    # token ids in the longest sequence that the model was trained on, or None if unknown
    longest: int | None = None
    loss_scale: dict[str, float] = field(default_factory=dict)
    # the best evaluation of this phase so far (trainer.run.best_checkpoint), {} without keep_best
    best: dict[str, Any] = field(default_factory=dict)
    # loss, metrics and times since the last row of the logs (trainer.logs.unfinished_row); {} after a whole
    # row
    unfinished_row: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any]
    config: dict[str, Any]
    versions: tuple[str, ...] = (f"bertdata {__version__}", f"torch {torch.__version__}")
    workers: int = 0  # number of workers, or 0 if unknown, in older checkpoints
    threads: int = 0  # number of threads of a processor, or 0 on an accelerator or if unknown
    # how this phase began: new, weights or phase 2 (bertdata.lineages.run_state); "" in older checkpoints
    started: str = ""
    # md5s of the records of the phase's datasets and start, by the keys of bertdata.lineages.run_state. The
    # run's directory keeps copies of them. None in older checkpoints
    sources: dict[str, list[str]] | None = None
    # what --vocab and --model-config named for another program's weights, which this phase started from
    # (bertdata.lineages.flag_files); [] in older checkpoints
    inputs: list[dict[str, Any]] = field(default_factory=list)
    # earlier parts of this phase that were trained with other settings or versions: for each the values that
    # differ from the next part, and in "until" its last update
    history: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # md5 of each file except state.json, by file name

    @property
    def steps_of_update(self) -> int:
        """Number of steps that an update adds to the checkpoint's number. It is 1, or with MLPerf's way of
        counting the number of micro-batches.
        """
        return int(self.config.get("steps_per_update") or 1)

    @property
    def logged_step(self) -> int:
        """Steps of this phase, as logs and names of checkpoints count them."""
        return self.step * self.steps_of_update

    @property
    def number(self) -> int:
        """Steps over both phases, the number in the checkpoint's name."""
        return self.phase_start + self.logged_step

    @property
    def update_number(self) -> UpdateNumber:
        """Number of the next update in this phase, with the offset for its seed."""
        return UpdateNumber(self.phase, self.step, self.phase_start + self.step)


def make_initial_state(
    config: Config,
    model: ModelConfig,
    data: str | None = None,
    order: str = "as stored",
    task: str = "",
    longest: int | None = None,
    open_files: int = 8,
    chunk_rows: int = 0,
) -> State:
    """Return the state of a run before its first update.

    data: digest of the training data, or None if there is no dataset.
    order: text about the order of the training rows, from ``Rows.describe``.
    task: name of the task to learn.
    longest: token ids in the longest sequence of the training data, or None if unknown.
    open_files: number of files that are read at the same time.
    chunk_rows: rows of the chunks in which they are read, or 0 if they are read whole.
    """
    return State(
        phase=config.phase,
        data=data,
        order=order,
        task=task,
        longest=longest,
        seed=config.data.seed,
        open_files=open_files,
        chunk_rows=chunk_rows,
        optimiser=config.update.optimiser,
        model=model.as_json(),
        config=config.as_json(),
    )


def get_checkpoint_path(output_dir: str, state: State) -> Path:
    """Return the directory of the checkpoint for this state."""
    return get_checkpoints_folder(output_dir) / f"step-{state.number:08d}"


def find_checkpoints(output_dir: str) -> dict[int, Path]:
    """Return the checkpoints of a run by number, in ascending order. Their files are not checked."""
    paths = sorted(get_checkpoints_folder(output_dir).glob("step-*"))
    return {int(path.name[5:]): path for path in paths if path.name[5:].isdecimal()}


def get_checkpoints_folder(output_dir: str) -> Path:
    """Return the directory with a run's checkpoints."""
    return Path(output_dir.removeprefix("file://")) / CHECKPOINTS


def save_checkpoint(
    output_dir: str, state: State, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], keep: int
) -> Path:
    """Write a checkpoint, then delete old checkpoints of this phase. Return the path of the new checkpoint.

    keep: number of the newest checkpoints of this phase that are kept, including the new checkpoint. The
        checkpoint of the best evaluation so far is kept too.

    The tensors must be in host memory.
    """
    path = get_checkpoint_path(output_dir, state)
    write_checkpoint(path, state, weights, moments)
    prune_checkpoints(output_dir, state, keep)
    return path


def prune_checkpoints(output_dir: str, state: State, keep: int) -> None:
    """Remove the checkpoints of the state's phase except the newest ``keep``.

    The checkpoint of the best evaluation so far is not removed either.
    """
    found = find_checkpoints(output_dir)
    old = [number for number in found if number > state.phase_start][:-keep]
    _remove_checkpoints([found[number] for number in old if number != state.best.get("number")])


def write_checkpoint(
    path: Path,
    state: State,
    weights: "Mapping[str, Tensor | StoredTensor]",
    moments: "Mapping[str, Tensor | StoredTensor]",
    others: Mapping[str, bytes] | None = None,
    record: Callable[[str], bytes] | None = None,
) -> None:
    """Write a checkpoint atomically. If the path already has an equal checkpoint, keep it. Replace a
    different checkpoint.

    others: names and contents of further files to write, such as a tokeniser's.
    record: function that returns the contents of the file lineage.json, which is written last. Its argument
        is the directory with all other files. None writes no such file.
    """
    files = {}
    try:
        # The commit: all files go into a directory with a temporary name. state.json, with the md5s of the
        # others, is written last. When the block ends, the directory is flushed to disk and renamed. A crash
        # at any point leaves either no new checkpoint or a complete one, never a part of one.
        # Machines that share output_dir may write the same checkpoint at the same time. The first rename
        # wins, and the others find an equal checkpoint and leave it.
        with open_checkpoint_directory(path) as growing:
            for name, tensors in {WEIGHTS: weights, MOMENTS: moments}.items():
                if tensors:
                    with (growing / name).open("wb") as file:
                        write_safetensors(file, tensors)
                    files[name] = compute_file_md5(str(growing / name))
            for name, data in (others or {}).items():
                (growing / name).write_bytes(data)
            write_state(growing, replace(state, files=files))
            if record is not None:
                (growing / LINEAGE_NAME).write_bytes(record(str(growing)))
    except SafetensorError as error:
        raise StorageError(f"{path}: cannot be written: {error}") from None


def open_checkpoint_directory(path: Path) -> AbstractContextManager[Path]:
    """Return a context manager that yields a temporary directory for a checkpoint's files, then renames it.

    If an equal checkpoint already exists at the path, it is kept, and the new directory is deleted.
    """
    return open_directory(path, _is_same_checkpoint)


def write_state(folder: Path, state: State) -> None:
    """Write state.json into a checkpoint's directory."""
    values = {"format": FORMAT, **asdict(state)}
    text = json.dumps({**values, "md5": compute_state_md5(values)}, indent=1)
    (folder / STATE).write_text(f"{text}\n", encoding="utf-8")


def write_safetensors(file: BinaryIO, tensors: "Mapping[str, Tensor | StoredTensor]") -> None:
    """Write tensors as fp32 in safetensors format, reading one at a time."""
    file.write(make_safetensors_header({name: tuple(tensor.shape) for name, tensor in tensors.items()}))
    for tensor in tensors.values():
        values = tensor if isinstance(tensor, Tensor) else tensor.read()
        file.write(get_tensor_bytes(values.float()))


def make_safetensors_header(shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    """Return the beginning of a safetensors file of fp32 tensors: the header's length, then the header."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    # The values start at a multiple of 8 bytes, as the format recommends for mapping into memory.
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def get_tensor_bytes(tensor: Tensor) -> memoryview:
    """Return the bytes of a tensor in host memory without copying, unless it is not contiguous."""
    return tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data


def clean_up_checkpoints(output_dir: str, after: int | None = None) -> None:
    """Remove files that an interrupted save left behind, and checkpoints after a number.

    after: number of the last checkpoint to keep. None keeps all complete checkpoints.
    """
    sweep_directories(get_checkpoints_folder(output_dir))
    if after is not None:
        _remove_checkpoints(path for number, path in find_checkpoints(output_dir).items() if number > after)


def _is_same_checkpoint(one: Path, other: Path) -> bool:
    """Return whether both checkpoints are complete and equal.

    state.json has the md5s of the tensors, so that only their sizes are compared here. Of small files, such
    as a vocabulary, all bytes are compared.
    """
    sizes, others = ({path.name: path.stat().st_size for path in folder.iterdir()} for folder in (one, other))
    small = [name for name in sizes if not name.endswith(".safetensors")]
    return sizes == others and all(filecmp.cmp(one / name, other / name, shallow=False) for name in small)


def _remove_checkpoints(checkpoints: Iterable[Path]) -> None:
    """Remove checkpoints. Each is renamed first, so that no half-removed checkpoint can be found."""
    for path in checkpoints:
        with suppress(OSError):  # another machine that shares the directory may have removed it
            remove_at_once(path)


class CheckpointWriter:
    """Writer of checkpoints in a daemon thread, one at a time. The thread does not keep a process alive.

    If a write fails, the exception is stored until ``wait`` returns it. The thread also calls on_failure
    immediately.
    """

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self._on_failure = on_failure
        self._thread = threading.Thread()
        self._failures: list[Exception] = []

    def start(self, write: Callable[[], object]) -> None:
        """Start a write in the thread. Call ``wait`` first, so that the previous write has ended."""
        self._thread = threading.Thread(target=self._run, args=[write], daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> Exception | None:
        """Wait until the current write ends. Return its exception, or None if it succeeded.

        seconds: longest time to wait. None waits without a limit.
        """
        if self._thread.is_alive():
            self._thread.join(seconds)
        return self._failures.pop() if self._failures else None

    def _run(self, write: Callable[[], object]) -> None:
        """Run the write in the thread and store its failure."""
        try:
            write()
        except Exception as error:
            self._failures.append(error)
            self._on_failure()


class WholeTensors:
    """Object that saves, broadcasts and checks the tensors of a model of which every worker has a complete
    copy.

    Every worker must call each method. On each machine, a single worker then writes the checkpoint.
    """

    def __init__(self, worker: Worker, strategy: Strategy) -> None:
        self._worker, self._strategy = worker, strategy

    def broadcast(self) -> None:
        """Copy the weights of rank 0 to all other workers."""
        self._worker.collective.broadcast(self._worker.model.state_dict().values())

    def held(self) -> tuple[str, list[Tensor]]:
        """Return the weights in this worker's memory, and a name for the group of workers that have the same
        weights.
        """
        return "whole", list(self._worker.model.parameters())

    def are_finite(self) -> bool:
        """Return whether every weight of the whole model is finite."""
        norms = torch._foreach_norm(list(self._worker.model.parameters()))
        return bool(torch.stack(norms).isfinite().all())

    def save(self, state: State, writer: CheckpointWriter) -> None:
        """Start to save a checkpoint in the background. Only one worker of each machine writes it."""
        if self._worker.collective.local_rank == 0:
            weights = self._copy_to_host(self._worker.model.state_dict())
            moments = self._copy_to_host(self._strategy.moments())
            run = self._worker.config.run
            folder, keep = str(run.output_dir), run.keep_checkpoints
            writer.start(partial(save_checkpoint, folder, state, weights, moments, keep))

    def _copy_to_host(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return copies of the tensors in host memory, so that the next update cannot change them."""
        device = self._worker.device
        hosts = {name: device.to_host(tensor) for name, tensor in tensors.items()}
        return {name: host.clone() for name, host in hosts.items()} if device.torch_device == HOST else hosts
