"""Configuration keys that are computed in the same way for NVIDIA's run_squad.py and run_glue.py for
PyTorch.
"""

from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from trainer.programs.batch_sizes import compute_micro_batch_size
from trainer.programs.translated_command import make_phase_keys
from trainer.workers.launchers import find_rank


def make_tuning_keys(flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the configuration keys for batch size, precision, schedule, device and workers."""
    count = flags["gradient_accumulation_steps"]
    precision = "fp16" if flags["fp16"] or flags["amp"] else "fp32"
    keys = make_phase_keys(flags) | {
        # In fp32 NVIDIA's programs use BertAdam, which looks up the learning rate before it counts the
        # update. In fp16 they use FusedAdam, and the rate is looked up after the update was counted.
        "lr_schedule": "nvidia-linear" if precision == "fp16" else "nvidia-bertadam",
        "optimiser_epsilon": 1e-8 if precision == "fp16" else 1e-6,  # the defaults of FusedAdam and BertAdam
        "precision": precision,
        "device": "cpu" if flags["no_cuda"] else "cuda",
        "batch_size": compute_micro_batch_size(flags["train_batch_size"], count, divides=False),
        "accumulation": count,
        "world_size": find_rank()[1],
    }
    if flags["max_steps"] > 0:
        keys["steps_this_run"] = max(1, int(flags["max_steps"]))
    return keys


def warn_of_training(flags: ParsedCommandLine) -> None:
    """Warn about what NVIDIA's programs do differently from this trainer in training."""
    epochs = flags["num_train_epochs"]
    if not flags["do_train"]:
        return
    if epochs != int(epochs):
        flags.warn(
            f"--num_train_epochs {epochs:g}: the program stops after {int(epochs)}, within its schedule"
        )
    if flags["max_steps"] > 0:
        flags.warn("--max_steps: the program makes one update more than that")
    if flags["skip_checkpoint"]:
        flags.warn("--skip_checkpoint: the model is saved all the same, at the end")
