"""Checkpoints: one directory each, written atomically, every byte under an md5.

    output_dir/checkpoints/step-00000100/
        model.safetensors       weights by name
        optimizer.safetensors   moments as KIND/NAME; absent where only weights were converted
        state.json              everything else, and the md5s of the others

A split run writes several files of each, named model-00001-of-00004.safetensors and so on, which share the
tensors among them, and model.safetensors.index.json, which tells where each is, as Hugging Face has it.

The number counts updates over both phases. Nothing is pickled. No random state is kept: the strategy
seeds each micro-batch, so that dropout too is the same after a resume and for any number of workers.
"""

import json
import math
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import md5
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import torch
from safetensors import SafetensorError
from torch import Tensor

from bertdata import __version__
from bertdata.errors import StorageError
from bertdata.io.file_check import file_md5
from bertdata.io.whole_directory import open_directory, remove_at_once, sweep_directories
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.devices.device import HOST
from trainer.update.strategy import Strategy, UpdateNumber
from trainer.update.worker import Worker

if TYPE_CHECKING:
    from trainer.checkpoints.any_checkpoint import StoredTensor


FORMAT = "bertdata checkpoint 1"
STATE, WEIGHTS, MOMENTS = "state.json", "model.safetensors", "optimizer.safetensors"


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """Everything but tensors that a run needs to resume."""

    phase: int = 1
    phase_start: int = 0  # number of the checkpoint that the phase began with
    step: int = 0  # updates of this phase
    applied: int = 0  # updates of this phase without those skipped because of an overflow
    trained: int = 0  # examples of this phase
    position: tuple[int, ...] = (0, 0, 0)  # trainer.data.order.Position
    order: str = "as stored"  # the rows that it counts
    data: str | None = None  # digest of the dataset that the position refers to
    seed: int
    open_files: int
    optimiser: str
    task: str = ""  # "": not known, in a converted checkpoint or an older one
    longest: int | None = None  # ids of the longest sequence that the model was trained on; None: not known
    loss_scale: dict[str, float] = field(default_factory=dict)
    model: dict[str, Any]
    config: dict[str, Any]
    versions: tuple[str, ...] = (f"bertdata {__version__}", f"torch {torch.__version__}")
    files: dict[str, str] = field(default_factory=dict)  # md5s by name

    @property
    def steps_of_update(self) -> int:
        """Steps that the numbers of checkpoints count for an update."""
        return int(self.config.get("steps_per_update") or 1)

    @property
    def told_step(self) -> int:
        """Steps of this phase as logs and the names of checkpoints count them."""
        return self.step * self.steps_of_update

    @property
    def number(self) -> int:
        """Steps of both phases. The checkpoint is named after it."""
        return self.phase_start + self.told_step

    @property
    def update_number(self) -> UpdateNumber:
        """The place of the next update."""
        return UpdateNumber(self.phase, self.step, self.phase_start + self.step)


def new_state(
    config: Config,
    model: ModelConfig,
    data: str | None = None,
    order: str = "as stored",
    task: str = "",
    longest: int | None = None,
) -> State:
    """The state before the first update. order: as ``Rows.describe`` says it. longest: as in ``State``."""
    return State(
        phase=config.phase,
        data=data,
        order=order,
        task=task,
        longest=longest,
        seed=config.data.seed,
        open_files=config.data.open_files,
        optimiser=config.update.optimiser,
        model=model.as_json(),
        config=config.as_json(),
    )


def checkpoint_path(output_dir: str, state: State) -> Path:
    """The directory of the state's checkpoint in a run."""
    return checkpoints_folder(output_dir) / f"step-{state.number:08d}"


def find_checkpoints(output_dir: str) -> dict[int, Path]:
    """The checkpoints of a run by number, in order, unchecked."""
    paths = sorted(checkpoints_folder(output_dir).glob("step-*"))
    return {int(path.name[5:]): path for path in paths if path.name[5:].isdecimal()}


def checkpoints_folder(output_dir: str) -> Path:
    """The directory of a run's checkpoints."""
    return Path(output_dir.removeprefix("file://")) / "checkpoints"


def md5_of_state(values: Mapping[str, Any]) -> str:
    """The md5 of a state's values, which its file holds beside them."""
    return md5(json.dumps(values, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def save_checkpoint(
    output_dir: str, state: State, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor], keep: int
) -> Path:
    """Write a checkpoint and return its path. Only the last ``keep`` of this phase are kept.

    The tensors must be on the host.
    """
    path = checkpoint_path(output_dir, state)
    write_checkpoint(path, state, weights, moments)
    prune(output_dir, state, keep)
    return path


def prune(output_dir: str, state: State, keep: int) -> None:
    """Remove all checkpoints of the state's phase but the last ``keep``."""
    found = find_checkpoints(output_dir)
    _remove([found[number] for number in found if number > state.phase_start][:-keep])


def write_checkpoint(
    path: Path,
    state: State,
    weights: "Mapping[str, Tensor | StoredTensor]",
    moments: "Mapping[str, Tensor | StoredTensor]",
    others: Mapping[str, bytes] | None = None,
) -> None:
    """Write a checkpoint at once. Another one at the path is replaced, the same one stays.

    others: contents of further files by name, a tokeniser's.
    """
    files = {}
    try:
        with open_checkpoint_directory(path) as growing:
            for name, tensors in {WEIGHTS: weights, MOMENTS: moments}.items():
                if tensors:
                    with (growing / name).open("wb") as file:
                        write_safetensors(file, tensors)
                    files[name] = file_md5(str(growing / name))
            for name, data in (others or {}).items():
                (growing / name).write_bytes(data)
            write_state(growing, replace(state, files=files))
    except SafetensorError as error:
        raise StorageError(f"{path}: cannot be written: {error}") from None


def open_checkpoint_directory(path: Path) -> AbstractContextManager[Path]:
    """A directory written under another name, then renamed. An equal checkpoint already there stays."""
    return open_directory(path, _is_same)


def write_state(folder: Path, state: State) -> None:
    """Write the state, with the md5s of the other files, into the directory of a checkpoint."""
    values = {"format": FORMAT, **asdict(state)}
    text = json.dumps({**values, "md5": md5_of_state(values)}, indent=1)
    (folder / STATE).write_text(f"{text}\n", encoding="utf-8")


def write_safetensors(file: BinaryIO, tensors: "Mapping[str, Tensor | StoredTensor]") -> None:
    """Write tensors in fp32, one at a time."""
    file.write(safetensors_header({name: tuple(tensor.shape) for name, tensor in tensors.items()}))
    for tensor in tensors.values():
        values = tensor if isinstance(tensor, Tensor) else tensor.read()
        file.write(bytes_of(values.float()))


def safetensors_header(shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    """The beginning of a file of fp32 tensors: the length of the header, and the header."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def bytes_of(tensor: Tensor) -> memoryview:
    """The memory of a tensor in host memory, or of a copy if the tensor is not contiguous."""
    return tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data


def clean_up(output_dir: str, after: int | None = None) -> None:
    """Remove the files of an interrupted save, and checkpoints later than number ``after``."""
    sweep_directories(checkpoints_folder(output_dir))
    if after is not None:
        _remove(path for number, path in find_checkpoints(output_dir).items() if number > after)


def _is_same(one: Path, other: Path) -> bool:
    """True if both checkpoints are complete and the same, by the md5s in their states."""
    sizes, others = ({path.name: path.stat().st_size for path in folder.iterdir()} for folder in (one, other))
    return sizes == others and (one / STATE).read_bytes() == (other / STATE).read_bytes()


def _remove(checkpoints: Iterable[Path]) -> None:
    for path in checkpoints:
        with suppress(OSError):  # another machine may have removed it
            remove_at_once(path)


class CheckpointWriter:
    """One write at a time, in a thread that does not keep an interrupted process alive.

    A failure is kept until ``wait`` returns it; on_failure is called at once, in the thread.
    """

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self._on_failure = on_failure
        self._thread = threading.Thread()
        self._failures: list[Exception] = []

    def start(self, write: Callable[[], object]) -> None:
        """Start a write. The one before must have ended (``wait``)."""
        self._thread = threading.Thread(target=self._run, args=[write], daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> Exception | None:
        """Wait at most so many seconds for the write under way to end. Returns its failure."""
        if self._thread.is_alive():
            self._thread.join(seconds)
        return self._failures.pop() if self._failures else None

    def _run(self, write: Callable[[], object]) -> None:
        try:
            write()
        except Exception as error:
            self._failures.append(error)
            self._on_failure()


class WholeTensors:
    """Tensors of a model that every worker holds whole. One worker of each machine writes them.

    Every worker makes each call.
    """

    def __init__(self, worker: Worker, strategy: Strategy) -> None:
        self._worker, self._strategy = worker, strategy

    def broadcast(self) -> None:
        """Give all workers that hold the same weights the same values."""
        self._worker.workers.broadcast(self._worker.model.state_dict().values())

    def held(self) -> tuple[str, list[Tensor]]:
        """The weights that this worker holds, and a name that is the same where others hold the same."""
        return "whole", list(self._worker.model.parameters())

    def are_finite(self) -> bool:
        """True if every weight of the whole model is a number."""
        norms = torch._foreach_norm(list(self._worker.model.parameters()))
        return bool(torch.stack(norms).isfinite().all())

    def save(self, state: State, writer: CheckpointWriter) -> None:
        """Start to save with the writer, which waits for nothing. Counts come from the state."""
        if self._worker.workers.local_rank == 0:
            weights = self._copied(self._worker.model.state_dict())
            moments = self._copied(self._strategy.moments())
            run = self._worker.config.run
            folder, keep = str(run.output_dir), run.keep_checkpoints
            writer.start(partial(save_checkpoint, folder, state, weights, moments, keep))

    def _copied(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Copies in host memory, which the next update does not change."""
        device = self._worker.device
        hosts = {name: device.to_host(tensor) for name, tensor in tensors.items()}
        return {name: host.clone() for name, host in hosts.items()} if device.torch_device == HOST else hosts
