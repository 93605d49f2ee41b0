"""Keys that NVIDIA's run_squad.py and run_glue.py for PyTorch compute in the same way."""

from typing import Any

from bertdata.cli.common.programs.command_line import Given
from trainer.programs.batch_sizes import compute_micro_batch_size
from trainer.programs.meaning import make_phase_keys
from trainer.workers.launchers import find_rank


def make_tuning_keys(given: Given) -> dict[str, Any]:
    """Return the configuration keys for batch size, precision, schedule, device and workers."""
    count = given["gradient_accumulation_steps"]
    precision = "fp16" if given["fp16"] or given["amp"] else "fp32"
    keys = make_phase_keys(given) | {
        # The program uses BertAdam in fp32, which looks up the learning rate before it counts the update. It
        # uses FusedAdam in fp16, which looks it up afterwards.
        "lr_schedule": "nvidia-linear" if precision == "fp16" else "nvidia-bertadam",
        "optimiser_epsilon": 1e-8 if precision == "fp16" else 1e-6,  # defaults of FusedAdam and BertAdam
        "precision": precision,
        "device": "cpu" if given["no_cuda"] else "cuda",
        "batch_size": compute_micro_batch_size(given["train_batch_size"], count, divides=False),
        "accumulation": count,
        "world_size": find_rank()[1],
    }
    if given["max_steps"] > 0:
        keys["steps_this_run"] = max(1, int(given["max_steps"]))
    return keys


def warn_of_training(given: Given) -> None:
    """Warn about differences between the program's training and this trainer's."""
    epochs = given["num_train_epochs"]
    if not given["do_train"]:
        return
    if epochs != int(epochs):
        given.warn(
            f"--num_train_epochs {epochs:g}: the program stops after {int(epochs)}, within its schedule"
        )
    if given["max_steps"] > 0:
        given.warn("--max_steps: the program makes one update more than that")
    if given["skip_checkpoint"]:
        given.warn("--skip_checkpoint: the model is saved all the same, at the end")
