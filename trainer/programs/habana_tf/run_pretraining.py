"""Translate the command lines of Habana's run_pretraining.py for TensorFlow to this trainer's keys."""

from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from trainer.programs.habana_tf.pretraining import WORKER_WARNINGS
from trainer.programs.machine import has_checkpoints
from trainer.programs.nvidia_tf.run_pretraining import compute_phase_keys
from trainer.programs.requirements import describe_work
from trainer.programs.translated_command import TranslatedCommand
from trainer.workers.launchers import find_rank

_ADAM_KEYS = {"optimiser": "adamw-bert", "epsilon_in": "square"}
"""Configuration keys for the optimiser AdamWeightDecay of Habana's TensorFlow program.

Habana's version divides the update by the root of v + epsilon^2, where v is the running mean of squared
gradients.
"""


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for training, evaluation, or both."""
    keys = compute_phase_keys(flags)
    if flags["manual_fp16"]:
        raise UsageError("--manual_fp16: the program has no loss scaling for it in TensorFlow 2")
    if flags["num_accumulation_steps"] < 1:
        raise UsageError(f"--num_accumulation_steps is {flags['num_accumulation_steps']}, expected 1 or more")
    if not flags["horovod"] and find_rank()[1] > 1:
        raise UsageError(
            f"{find_rank()[1]} workers were started: without --horovod each would train on its own"
        )
    variables = (
        "TF_BF16_CONVERSION",
        "TF_ENABLE_BF16_CONVERSION",
    )  # The setting has two names, one for each version of the program.
    asked = any(flags[name] != "0" for name in variables)
    keys |= _make_optimiser_keys(flags, keys["world_size"]) | {
        "precision": "bf16" if asked or flags["bf16_config_path"] is not None else "fp32",
        "resume": flags["do_train"] and has_checkpoints(flags["output_dir"]),
    }
    if keys["world_size"] > 1:
        flags.warn(*WORKER_WARNINGS)
    if flags["deterministic_run"]:
        keys |= {"seed": 1, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return TranslatedCommand(what=describe_work(flags), phases=[keys])


def _make_optimiser_keys(flags: ParsedCommandLine, workers: int) -> dict[str, Any]:
    """Return the configuration keys for the optimiser.

    It is LAMB if the flag says "lamb", otherwise Adam. Only with "adam" the learning rate decays linearly.
    """
    name = flags["optimizer_type"]
    if name == "lamb":
        return {}
    if name == "adam":
        return _ADAM_KEYS
    flags.warn(f"optimizer_type {name}: the program takes lamb for LAMB and any other word for Adam")
    rate = flags["learning_rate"] * workers
    return _ADAM_KEYS | {"lr_schedule": "mlperf", "power": 0.5, "base_learning_rate": rate}
