"""Habana's run_pretraining.py: one phase of pre-training on Gaudi, in the workers of a launcher.

demo_bert.py runs this program, and has its rules.
"""

import os
from typing import Any

from bertdata.build.packs.metadata import metadata_path
from bertdata.cli.common.program_flags import SWITCH, Flag, Given
from bertdata.config.value_check import read_object
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.collectives.launchers import find_rank
from trainer.extensions.like.checkpoints import start_of_phase
from trainer.extensions.like.constants import APEX_DECAY_SKIPS, NVLAMB, micro_batch
from trainer.extensions.like.machine import count_gpus
from trainer.extensions.like.nvidia.run_pretraining import LARGEST_SCALE
from trainer.extensions.like.program import Meaning, Program, phase_keys


def true(text: str) -> bool:
    """The program's reading of some values: true in any case is true, all else false."""
    return text.lower() == "true"


_COMMON = [
    Flag("--input_dir", required=True, key="train_data", meaning="directory of .hdf5 files"),
    Flag("--config_file", required=True, key="model_config", meaning="bert_config.json of the model"),
    Flag("--bert_model", default="bert-large-uncased", idle=True, meaning="--config_file is the model"),
    Flag("--output_dir", required=True, key="output_dir", meaning="directory for checkpoints"),
    Flag("--init_checkpoint", meaning="with --resume_from_checkpoint: weights and moments to start from"),
    Flag("--max_seq_length", int, 512, "ids of an example", key="max_seq_length"),
    Flag("--max_predictions_per_seq", int, 80, "largest number of masked ids", key="max_predictions_per_seq"),
    Flag("--train_batch_size", int, 32, "examples of an update of one card"),
    Flag("--learning_rate", float, 5e-5, "learning rate", key="base_learning_rate"),
    Flag("--num_train_epochs", float, 3.0, idle=True, meaning="the program counts updates"),
    Flag("--max_steps", float, 1000, "updates"),
    Flag("--warmup_proportion", float, 0.01, "warm-up as a share of the updates", key="warmup"),
    Flag("--local_rank", int, idle=True, meaning="the launcher's variables tell it"),
    Flag("--seed", int, 42, "seed; the program adds a worker's number, -1 when alone. Here it seeds one "
         "stream for all workers", key="seed"),
    Flag("--gradient_accumulation_steps", int, 1, "micro-batches of an update; divides train_batch_size"),
    Flag("--fp16", SWITCH, meaning="16 bits by apex, on CUDA"),
    Flag("--amp", SWITCH, meaning="as --fp16"),
    Flag("--loss_scale", float, 0.0, "loss scale of fp16; 0: adjusted", key="loss_scaling"),
    Flag("--init_loss_scale", int, 2**20, "initial value of an adjusted loss scale", key="init_loss_scale"),
    Flag("--log_freq", float, 1.0, "updates between two log lines"),
    Flag("--checkpoint_activations", SWITCH, idle=True, meaning="saves memory, changes no result"),
    Flag("--resume_from_checkpoint", SWITCH, meaning="continue from output_dir, or from --init_checkpoint"),
    Flag("--resume_step", int, -1, "checkpoint to continue, counted over both phases; -1: the last"),
    Flag("--num_steps_per_checkpoint", int, 100, "updates between two checkpoints", key="checkpoint_every"),
    Flag("--skip_checkpoint", SWITCH, meaning="no checkpoints; here one, at the end"),
    Flag("--phase2", SWITCH, meaning="with --resume_from_checkpoint: continue phase 1, or phase 2 where it "
         "has begun"),
    Flag("--phase1_end_step", int, 7038, "the last checkpoint of phase 1"),
    Flag("--allreduce_post_accumulation", SWITCH, idle=True, meaning="it is done anyway"),
    Flag("--allreduce_post_accumulation_fp16", SWITCH, idle=True, meaning="on hpu the program sums in fp32"),
    Flag("--do_train", SWITCH, meaning="train; must be given"),
    Flag("--json-summary", default="results/dllogger.json", key="json_summary",
         meaning="file of dllogger's lines"),
    Flag("--use_env", SWITCH, idle=True, meaning="the launcher's variables are read anyway"),
    Flag("--disable_progress_bar", SWITCH, meaning="plain lines even on a terminal", key="no_progress_bar"),
    Flag("--steps_this_run", int, -1, "stop at this update of the phase; -1: at max_steps"),
    Flag("--no_cuda", SWITCH, meaning="train on a processor"),
    Flag("--use_habana", SWITCH, meaning="train on Gaudi"),
    Flag("--use_fused_lamb", SWITCH, meaning="the vendor's LAMB in place of PyTorch operations"),
]  # fmt: skip

_FIRST = [
    *_COMMON,
    Flag("--tqdm_smoothing", float, idle=True),
    Flag("--use_jit_trace", SWITCH, meaning="graph mode"),
    Flag("--use_lazy_mode", SWITCH, meaning="lazy mode; without it and --use_jit_trace: eager"),
    Flag("--hmp", SWITCH, meaning="bf16"),
    Flag("--hmp_bf16", default="", idle=True, meaning="the device chooses the operations in bf16"),
    Flag("--hmp_fp32", default="", idle=True, meaning="the device chooses the operations in fp32"),
    Flag("--hmp_opt_level", default="O1", idle=True),
    Flag("--hmp_verbose", SWITCH, idle=True),
]  # fmt: skip
"""Version 0.15.4."""

_LATER = [
    *_COMMON,
    Flag("--autocast", SWITCH, meaning="bf16"),
    Flag("--use_torch_compile", SWITCH, meaning="compile the model: graph mode"),
    Flag("--use_lazy_mode", true, True, idle=True, meaning="PT_HPU_LAZY_MODE decides it"),
    Flag("--enable_packed_data_mode", true, True, "the data are packed rows of several sequences; "
         "their mean number, of DIR_metadata.json beside the data, divides the accumulation"),
    Flag("--use_zero_optimizer", true, False, idle=True, meaning="it saves memory only"),
    Flag("--profile", bool, False, "record a profile; any value is true", key="profile"),
    Flag("--profile_steps", default="0", idle=True, meaning="the profile is of four updates"),
    Flag("--tensorboard_logdir", default="", idle=True, meaning="it is written to output_dir"),
    Flag("--use-hpu-graphs", bool, False, idle=True),
    Flag("--no_compiled_autograd", SWITCH, idle=True),
    Flag("--log_memory_usage", default=False, idle=True),
    Flag("--enable-tensorboard-logging", SWITCH, meaning="TensorBoard's files", key="tensorboard"),
]  # fmt: skip
"""Version 1.23."""


ALWAYS: dict[str, Any] = NVLAMB | {
    "decay_skips": APEX_DECAY_SKIPS,
    "gelu": "exact",
    "keep_checkpoints": 3,
    "unverified": True,
}
"""Keys that no flag changes.

FusedLamb is a binary that is given the rate and two groups, of decay 0.01 and 0.0. Its betas, epsilon,
clipping and trust ratio are taken from NVLAMB, the program's optimiser without --use_fused_lamb.
"""

_USUAL_MEANS = {128: 1.2, 512: 2.0}
"""Sequences of a pack by length, where the packer's metadata file is missing."""


def resolve(given: Given) -> Meaning:
    """The phase that the command line asks for."""
    keys = ALWAYS | phase_keys(given, PROGRAM.flags(version=given.version).table)
    count = given["gradient_accumulation_steps"]
    keys |= _device(given)
    keys |= {"batch_size": micro_batch(given["train_batch_size"], count), "accumulation": count}
    if given.values.get("enable_packed_data_mode"):
        mean = _read_mean(given)
        keys |= {"accumulation": count_packs(given, count, mean), "packed_accumulation": "rows"}
    if not given["do_train"]:
        raise UsageError(f"{PROGRAM.name}: `do_train` must be True")
    keys |= start_of_phase(given)
    is_bf16 = given.values.get("hmp") or given.values.get("autocast")
    keys |= {
        "steps": _whole(given, "max_steps"),
        "log_every": _whole(given, "log_freq"),
        "precision": "fp16" if given["fp16"] or given["amp"] else "bf16" if is_bf16 else "fp32",
        "max_loss_scale": max(LARGEST_SCALE, float(given["init_loss_scale"])),
    }
    if keys["precision"] != "fp16":
        of_fp16 = ("loss_scaling", "init_loss_scale", "max_loss_scale")
        keys = {name: value for name, value in keys.items() if name not in of_fp16}
    if given["skip_checkpoint"]:
        keys["checkpoint_every"] = 0
        given.warn("skip_checkpoint: the last update has a checkpoint here")
    return Meaning(what=f"phase {2 if keys['phase2'] else 1}", phases=[keys])


def _device(given: Given) -> dict[str, Any]:
    """The device and the workers. Without a flag the program takes CUDA if available, else a processor."""
    keys: dict[str, Any] = {"device": "cpu", "world_size": find_rank()[1], "dist": False}
    if given["use_habana"]:
        options: dict[str, Any] = {"mode": _mode(given)}
        if not given["use_fused_lamb"]:
            options["use_fused_lamb"] = False
        return keys | {"device": "hpu", "device_options": options}
    gpus = 0 if given["no_cuda"] else count_gpus()
    if not gpus:
        return keys
    if gpus > 1 and keys["world_size"] == 1:
        given.warn(f"the program alone trains on all {gpus} GPUs, each with this batch; here on one")
    return keys | {"device": "cuda"}


def _mode(given: Given) -> str:
    is_lazy, is_graph = given["use_lazy_mode"], given.values.get("use_jit_trace")
    if given.version:  # torch.compile goes before lazy mode
        is_graph = given["use_torch_compile"]
        is_lazy = not is_graph and os.environ.get("PT_HPU_LAZY_MODE", "1") == "1"
    if is_lazy:
        return "lazy"
    return "graph" if is_graph else "eager"


def _whole(given: Given, name: str) -> int:
    """The value of a flag that takes a fraction, as the number of updates after which it is reached."""
    return max(1, -int(-given[name] // 1))


def count_packs(given: Given, count: int, mean: float) -> int:
    """Micro-batches of packed rows in place of those of single sequences. mean: sequences of a row."""
    packed = round(count / mean)
    if packed < 1:
        found = f"{count} micro-batches / {mean:g} sequences a pack"
        given.warn(f"{found} rounds to 0, which ends the program; here 1")
    return max(1, packed)


def _read_mean(given: Given) -> float:
    """Sequences of a pack on average: the packer's number, else the program's for data of that length."""
    path, length = metadata_path(given["input_dir"]), given["max_seq_length"]
    if storage.exists(path):
        found = read_object(path).get("avg_seq_per_sample")
        if not isinstance(found, int | float) or found <= 0:
            raise UsageError(f"Key avg_seq_per_sample not present in packed dataset metadata file: {path}")
        return float(found)
    if length not in _USUAL_MEANS:
        known = " or ".join(map(str, _USUAL_MEANS))
        raise UsageError(
            f"{path}: is missing, and max_seq_length is {length}, expected {known} to do without"
        )
    mean: float = _USUAL_MEANS[length]
    given.warn(f"{path}: is missing; {mean:g} sequences a pack are assumed, as by the program")
    return mean


PROGRAM = Program("habana/run_pretraining.py", {"": _FIRST}, resolve, versions={"1.23": {"": _LATER}})
