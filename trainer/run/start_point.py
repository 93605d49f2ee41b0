"""The start point of a run, and the loading of weights, moments and state from it.

There are four kinds of start points. "new" starts at update 0 with random weights. "weights" starts at update
0 with the weights of a checkpoint. "phase 2" starts phase 2 with weights and moments from the end of phase 1.
"resumed" continues a phase exactly where its checkpoint was saved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertdata.dataset.reader import OpenedDataset
from bertdata.errors import DatasetError, MissingInputError, SettingsError
from trainer.checkpoints.checkpoint import MOMENTS, State, find_checkpoints, get_checkpoints_folder
from trainer.checkpoints.damage import add_remedy_to_errors
from trainer.checkpoints.filling import fill_model, match_moments
from trainer.checkpoints.opening import open_start
from trainer.checkpoints.reading import choose_checkpoint, read_state, read_tensors
from trainer.checkpoints.resume_check import (
    check_fits,
    check_position,
    check_steps,
    describe_changed_settings,
)
from trainer.checkpoints.source import find_trained_length, find_trainer_checkpoint, open_checkpoint
from trainer.checkpoints.unchecked_files import list_unchecked_warnings
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.data.order import Position
from trainer.data.trained_length import choose_longer
from trainer.errors import CheckpointError
from trainer.run.best_checkpoint import describe_changed_evaluation
from trainer.run.configured_shape import override_stored_settings
from trainer.run.path_check import check_output_is_free, find_run_files
from trainer.run.runtime import find_model_config
from trainer.run.training_state import Training
from trainer.splitting.split_tensors import SplitTensors
from trainer.update.worker import Runtime


def find_start_point(config: Config, fresh: State) -> tuple[str, str]:
    """Return the start point ("new", "weights", "phase 2" or "resumed") and the path of its checkpoint.

    The path is "" for "new". Nothing is changed. Raises an error if the settings do not fit the checkpoints
    in the output directory.
    fresh: the state that this run would have at update 0. It is compared with the checkpoint's state.
    """
    output_dir, start = str(config.run.output_dir), config.start
    there = find_checkpoints(output_dir)
    if start.start_moments and not start.start_from_ckpt:
        raise SettingsError("start_moments is given, but no start_from_ckpt to take them from")
    resuming = start.resume or start.resume_step is not None
    # Resume: the checkpoint must have been trained with the same data, order and seed. If batch size,
    # accumulation and the other hyperparameters are also the same, the run continues with the same bits.
    # Those may change, and the log names the changes.
    if (path := find_resumed_checkpoint(config)) is not None:
        state = read_state(path)
        if state.phase == fresh.phase:
            # With open_files auto, files are read as before, unless the rows have another order.
            reading = () if config.data.open_files == "auto" else ("open_files", "chunk_rows")
            check_fits(path, state, fresh, "data", *reading, "order", "seed", "optimiser")
            check_position(path, state, config)
            check_steps(path, state, config)
            return "resumed", str(path)
        if state.phase > fresh.phase:
            raise SettingsError(f"{path}: is a checkpoint of phase 2; give --phase2 to resume it")
    # Phase 2 starts for the first time: take weights and moments from the end of phase 1.
    if start.phase2 and start.start_from_ckpt is None:
        try:
            path = choose_checkpoint(output_dir, start.phase1_end_step)
        except MissingInputError as error:
            raise MissingInputError(f"--phase2 continues from phase 1: {error}") from None
        state = read_state(path)
        if state.phase != 1:
            raise DatasetError(f"{path}: is in use: phase 2 has begun; give --resume to continue it")
        check_fits(path, state, fresh, "optimiser")
        return "phase 2", str(path)
    # Phase 2 starts with the weights of another model, in a directory that already has a phase 1.
    follows = bool(start.phase2 and there) and read_state(there[max(there)]).phase == 1
    if follows and start.start_from_ckpt:
        return "weights", start.start_from_ckpt
    if (there or not resuming) and not config.run.overwrite_output_dir:
        check_output_is_free(output_dir)
    return ("weights", start.start_from_ckpt) if start.start_from_ckpt else ("new", "")


def find_resumed_checkpoint(config: Config) -> Path | None:
    """Return the checkpoint to resume from, or None if the run does not resume.

    It is a checkpoint in the output directory or, if there is none yet, the one from which the run branches
    off (resume_from).
    """
    run, output_dir = config.start, str(config.run.output_dir)
    if run.resume_step is not None or (run.resume and find_checkpoints(output_dir)):
        return choose_checkpoint(output_dir, run.resume_step)
    if run.resume_from is None or find_run_files(output_dir):
        return None
    if (found := find_trainer_checkpoint(run.resume_from, newest=True)) is None:
        raise CheckpointError(f"{run.resume_from}: holds no checkpoint of this trainer to resume from")
    return found


def load_start_point(training: Training, update_examples: int) -> int | None:
    """Find the start point and load it on all workers.

    update_examples: number of examples per update of this run, over all workers.
    Returns the number of the checkpoint that the run continues from, or None. The caller removes checkpoints
    with larger numbers.
    """
    runtime, fresh = training.runtime, training.state
    kind, path = runtime.on_rank_0(lambda: find_start_point(runtime.config, fresh))
    training.start_kind, training.start_path = kind, path
    if kind == "new":
        return None
    training.state, later_than = load_start_from(kind, path, training, update_examples)
    training.saved_step = training.state.step
    return later_than


def load_start_from(
    kind: str, path: str, training: Training, update_examples: int
) -> tuple[State, int | None]:
    """Load weights, moments and state from a checkpoint on all workers.

    kind: the start point, "weights", "phase 2" or "resumed".
    path: path of the checkpoint.
    update_examples: number of examples per update of this run, over all workers.
    Returns the state to continue with, and the number of the checkpoint after which later ones are removed.
    """
    runtime, fresh, config = training.runtime, training.state, training.runtime.config
    tensors = training.tensors
    reader = tensors if isinstance(tensors, SplitTensors) else WholeModelReader(training)
    runtime.log(f"reading {path}")
    # "weights": counts begin at 0, and the position is the start of the data.
    if kind == "weights":
        reader.read_weights(path)
        # If this directory has a phase 1, the numbers of phase 2's checkpoints continue from its end.
        there = runtime.on_rank_0(lambda: max(find_checkpoints(str(config.run.output_dir)), default=0))
        known = runtime.on_rank_0(lambda: find_trained_length(path))
        return replace(fresh, phase_start=there, longest=choose_longer(known, fresh.longest)), None
    saved = State(**runtime.on_rank_0(lambda: asdict(read_state(Path(path)))))
    # "phase 2": take weights and moments. Counts and position begin again, because phase 2 has other data.
    if kind == "phase 2":
        for warning in list_unchecked_warnings(Path(path), saved):
            runtime.log(f"warning: {warning}")
        longest = choose_longer(saved.longest, fresh.longest)
        state = replace(fresh, phase_start=saved.number, longest=longest)
        reader.read(Path(path), saved, state.applied)
        return state, None
    # "resumed": everything continues, that is, counts, position in the data, loss scale, weights and moments.
    position = Position(*saved.position)
    recorded = runtime.record_config()
    # The run goes on with its own reading, so a rebuild must begin with it.
    if recorded["open_files"] == "auto":
        recorded["open_files"] = saved.config.get("open_files", saved.open_files)
    state = replace(saved, task=fresh.task, position=position, config=recorded)
    # The best evaluation counts only for the same result, and only while its checkpoint is in this directory.
    is_here = Path(path).parent == get_checkpoints_folder(str(config.run.output_dir))
    if not is_here or saved.best.get("metric") != config.evaluation.keep_best:
        state = replace(state, best={})
    for difference in describe_changed_evaluation(config, state.best, saved.config):
        runtime.log(f"warning: {difference}")
    training.strategy.optimiser_step.scale.load_state_dict(saved.loss_scale)
    for difference in describe_changed_settings(saved, config, update_examples):
        runtime.log(f"warning: {difference}")
    reader.read(Path(path), saved, state.applied)
    return state, saved.number


class WholeModelReader:
    """Object that loads checkpoints into a model that is not divided: rank 0 reads, and sends the moments to
    all workers.

    Afterwards only rank 0 has the weights. ``load_start`` then sends them to the other workers.
    """

    def __init__(self, training: Training) -> None:
        self._runtime, self._model, self._strategy = training.runtime, training.model, training.strategy

    def read_weights(self, path: str) -> None:
        """Load weights from the checkpoint of any program. If start_moments is set, load its moments too."""
        moments: dict[str, Tensor] = {}
        with_moments = self._runtime.config.start.start_moments

        def read_any_checkpoint() -> tuple[list[str], int]:
            checkpoint = open_start(self._runtime, self._model.config, path)
            fill_model(self._model, checkpoint)
            if with_moments:
                weights = dict(self._model.named_parameters())
                found = match_moments(weights, self._model.config, checkpoint)
                moments.update({key: moment.read() for key, moment in found.items()})
                if not moments:
                    raise CheckpointError(
                        f"{path}: holds no moments of an optimiser; leave out start_moments"
                    )
            start = self._runtime.config.start
            return list(moments), start.count_moment_updates(checkpoint.updates)

        names, updates = self._runtime.on_rank_0(read_any_checkpoint)
        if with_moments:
            self._load_moments(names, moments, updates)

    def read(self, path: Path, saved: State, applied: int) -> None:
        """Load weights and moments from a checkpoint of this trainer.

        saved: the checkpoint's state.
        applied: number of updates that the optimiser has made, for its bias correction.
        """
        moments: dict[str, Tensor] = {}

        def read_own_checkpoint() -> list[str]:
            with add_remedy_to_errors(path, saved):
                self._model.load_state_dict(read_tensors(path, saved))
                moments.update(read_tensors(path, saved, MOMENTS))
            return list(moments)

        self._load_moments(self._runtime.on_rank_0(read_own_checkpoint), moments, applied)

    def _load_moments(self, names: Sequence[str], moments: Mapping[str, Tensor], applied: int) -> None:
        """Send the moments from rank 0 to all workers, and give them to the optimiser.

        names: names of the moments, such as "exp_avg/bert.embeddings...".
        moments: the moments on rank 0, by name.
        applied: number of updates from which the moments come.
        """
        weights = dict(self._model.named_parameters())
        moved = dict[str, Tensor]()
        for key in names:
            like = weights[key.partition("/")[2]]
            moved[key] = torch.zeros_like(like, dtype=torch.float32, requires_grad=False)
            moved[key].copy_(moments.get(key, torch.zeros(())))
        self._runtime.collective.broadcast(moved.values())
        self._strategy.load_moments(moved, applied)


def find_continued_shape(runtime: Runtime, data: OpenedDataset) -> ModelConfig:
    """Return the configuration of the model. Settings that are not configured come from the start
    checkpoint.
    """
    config, start = runtime.config, runtime.on_rank_0(lambda: find_start_shape(runtime.config))
    known = dict(start or {})
    if data.vocabulary_size is not None and "vocab_size" in known:
        known["vocab_size"] = max(known["vocab_size"], data.vocabulary_size)
    shape = find_model_config(config, data, override_stored_settings(config, known))
    if start and start["hidden_act"] != shape.hidden_act:
        runtime.log(
            f"warning: hidden_act is {shape.hidden_act}, the checkpoint's {start['hidden_act']}; its "
            "weights know the latter"
        )
    return shape


def find_start_shape(config: Config) -> dict[str, Any] | None:
    """Return the model's settings in the checkpoint that the run starts from, or None if it starts from none.

    A run that started from another model's weights and is now resumed reads its own newest checkpoint,
    because the other model may no longer exist.
    """
    run, output_dir = config.start, str(config.run.output_dir)
    if run.resume_from and (branched := find_resumed_checkpoint(config)):
        return read_state(branched).model
    there = find_checkpoints(output_dir) if run.resume or run.phase2 or run.resume_step else {}
    # Checkpoints after resume_step will be removed and may be damaged, so do not read them.
    if run.resume_step is not None:
        there = {number: path for number, path in there.items() if number <= run.resume_step}
    if there and not (run.phase2 and run.start_from_ckpt):
        first, last = (read_state(there[number]) for number in (min(there), max(there)))
        began_elsewhere = any(state.config.get("start_from_ckpt") for state in (first, last))
        return last.model if began_elsewhere else None
    if run.start_from_ckpt is None:
        return None
    model_config = config.model.model_config
    found = open_checkpoint(run.start_from_ckpt, model_config=model_config, with_moments=False).config
    return found.as_json() if found else None


def is_phase_over(config: Config) -> bool:
    """Return True if the checkpoint to resume from belongs to a later phase than this configuration."""
    path = find_resumed_checkpoint(config)
    return path is not None and read_state(path).phase > config.phase


def find_progress(config: Config) -> tuple[int, int]:
    """Return (updates, examples) that the run to resume has made in this phase, or (0, 0)."""
    path = find_resumed_checkpoint(config)
    state = None if path is None else read_state(path)
    return (state.step, state.trained) if state and state.phase == config.phase else (0, 0)
