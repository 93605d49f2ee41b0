"""NVIDIA's run_pretraining.py for PyTorch: one phase of pre-training on GPUs.

A launcher starts a process for each GPU; --train_batch_size is what one of them trains in an update. The
flags of the commit, and --amp and --steps_this_run of later ones, are read. The program adds the local
rank, -1 without a launcher, to its seed; here each worker derives its own from the same seed.
"""

import math

from bertdata.cli.common.program_flags import SWITCH, Flag, Given
from bertdata.errors import UsageError
from trainer.collectives.launchers import find_rank
from trainer.extensions.like.checkpoints import start_of_phase
from trainer.extensions.like.constants import APEX_DECAY_SKIPS, NVLAMB, micro_batch
from trainer.extensions.like.program import Meaning, Program, phase_keys

LARGEST_SCALE = 2.0**24
"""The loss scale that apex does not raise its own above."""

ONE_GPU = "without a launcher the program uses all visible GPUs, here one: torchrun starts more"
"""A warning where the environment tells of one process."""

FLAGS = [
    Flag("--input_dir", required=True, key="train_data", meaning='.hdf5 files with "training" in the name'),
    Flag("--config_file", required=True, key="model_config", meaning="bert_config.json, the model's shape"),
    Flag("--bert_model", default="bert-large-uncased", idle=True, meaning="--config_file gives the shape"),
    Flag("--output_dir", required=True, key="output_dir", meaning="directory for checkpoints"),
    Flag("--init_checkpoint", meaning="with --resume_from_checkpoint: weights and moments to start with"),
    Flag("--max_seq_length", int, 512, "ids of an example", key="max_seq_length"),
    Flag("--max_predictions_per_seq", int, 80, "masked ids of an example", key="max_predictions_per_seq"),
    Flag("--train_batch_size", int, 32, "examples of an update of one GPU"),
    Flag("--learning_rate", float, 5e-5, "learning rate", key="base_learning_rate"),
    Flag("--num_train_epochs", float, 3.0, idle=True, meaning="--max_steps gives the length"),
    Flag("--max_steps", float, 1000, "updates"),
    Flag("--warmup_proportion", float, 0.01, "warm-up as a share of the updates", key="warmup"),
    Flag("--local_rank", int, -1, idle=True, meaning="the launcher's environment tells it"),
    Flag("--seed", int, 42, "seed of weights, dropout and order", key="seed"),
    Flag("--gradient_accumulation_steps", int, 1, "micro-batches that train_batch_size is divided into"),
    Flag("--fp16", SWITCH, meaning="16 bits (apex O2), else fp32"),
    Flag("--amp", SWITCH, meaning="the same as --fp16"),
    Flag("--loss_scale", float, 0.0, "fixed loss scale; 0: adjusted", key="loss_scaling"),
    Flag("--init_loss_scale", int, 2**20, "initial value of an adjusted loss scale"),
    Flag("--log_freq", float, 1.0, "updates between two log lines"),
    Flag("--checkpoint_activations", SWITCH,
         meaning="compute activations again in the backward pass, where a plan divides the model"),
    Flag("--resume_from_checkpoint", SWITCH, meaning="continue from the newest checkpoint in output_dir"),
    Flag("--resume_step", int, -1, "update to resume at; -1: the newest checkpoint's"),
    Flag("--num_steps_per_checkpoint", int, 100, "updates between two checkpoints", key="checkpoint_every"),
    Flag("--skip_checkpoint", SWITCH, meaning="save no checkpoints; here: only at the end"),
    Flag("--phase2", SWITCH, meaning="with --resume_from_checkpoint: updates count from phase1_end_step"),
    Flag("--allreduce_post_accumulation", SWITCH, key="allreduce_post_accumulation",
         meaning="all-reduce once an update, not once a micro-batch"),
    Flag("--allreduce_post_accumulation_fp16", SWITCH, meaning="that all-reduce in 16 bits"),
    Flag("--phase1_end_step", int, 7038, "updates of phase 1"),
    Flag("--do_train", SWITCH, meaning="train; the program refuses to do nothing"),
    Flag("--json-summary", str, "results/dllogger.json", "file for the dllogger lines", key="json_summary"),
    Flag("--use_env", SWITCH, idle=True, meaning="the rank is always the environment's"),
    Flag("--disable_progress_bar", SWITCH, key="no_progress_bar", meaning="print plain lines"),
    Flag("--steps_this_run", int, -1, "stop at this update; negative: at max_steps"),
]  # fmt: skip
_LATER_FLAGS = [
    *FLAGS,
    Flag("--vocab_file", required=True, key="vocab", meaning="vocabulary"),
    Flag("--profile", SWITCH, key="profile", meaning="record a profile"),
    Flag("--profile-start", int, 0, idle=True, meaning="a profile is of the first updates"),
    Flag("--num_workers", int, 4, idle=True, meaning="processes that read the data"),
    Flag("--no_dense_sequence_output", SWITCH, idle=True, meaning="only masked positions have scores"),
    Flag("--disable_jit_fusions", SWITCH, idle=True),
    Flag("--cuda_graphs", SWITCH, meaning="compile the model and run it as CUDA graphs"),
]  # fmt: skip
"""The flags of a later commit, whose data are LDDL's."""


def resolve(given: Given) -> Meaning:
    """The phase that the command line trains."""
    count, cards = given["gradient_accumulation_steps"], find_rank()[1]
    size = micro_batch(given["train_batch_size"], count)
    if not given["do_train"]:
        raise UsageError("`do_train` must be True.")
    start = start_of_phase(given)
    fp16 = given["fp16"] or given["amp"]
    post = given["allreduce_post_accumulation"]
    keys = NVLAMB | phase_keys(given, _LATER_FLAGS if given.version else FLAGS) | start
    keys |= {
        "decay_skips": APEX_DECAY_SKIPS,
        "device": "cuda",
        "gelu": "tanh",
        "precision": "fp16" if fp16 else "fp32",
        "init_loss_scale": float(given["init_loss_scale"]),
        "max_loss_scale": max(LARGEST_SCALE, float(given["init_loss_scale"])),
        "steps": math.ceil(given["max_steps"]),
        "batch_size": size,
        "accumulation": count,
        "world_size": cards,
        "allreduce_post_accumulation_fp16": post and given["allreduce_post_accumulation_fp16"],
        "recompute": "always" if given["checkpoint_activations"] else "auto",
        "keep_checkpoints": 3,
        "log_every": max(1, int(given["log_freq"])),
        "unverified": True,
    }
    if given.version and given["cuda_graphs"]:
        keys["device_options"] = {"cuda_graphs": True}
    if given["skip_checkpoint"]:
        keys["checkpoint_every"] = 0
        given.warn("--skip_checkpoint: one checkpoint is saved all the same, at the end")
    if cards == 1 and not given.version:
        given.warn(ONE_GPU)
    if given["loss_scale"] and not given.version:
        given.warn("--loss_scale is kept; the program overwrites it with --init_loss_scale")
    return Meaning(what=f"phase {2 if keys.get('phase2') else 1}", phases=[keys])


PROGRAM = Program(
    "nvidia/run_pretraining.py", {"": FLAGS}, resolve, versions={"a9e2c1d5": {"": _LATER_FLAGS}}
)
