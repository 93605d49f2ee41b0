"""Fine-tuning as NVIDIA's run_squad.py and run_glue.py for PyTorch have it in common."""

from typing import Any

from bertdata.cli.common.program_flags import SWITCH, Flag, Given
from trainer.collectives.launchers import find_rank
from trainer.extensions.like.constants import product

COMMON_FLAGS = [
    Flag("--bert_model", required=True, idle=True, meaning="--config_file gives the shape"),
    Flag("--output_dir", required=True, key="output_dir", meaning="directory for model and predictions"),
    Flag("--init_checkpoint", required=True, key="start_from_ckpt", meaning="checkpoint of pre-training"),
    Flag("--do_train", SWITCH, key="do_train", meaning="train"),
    Flag("--do_lower_case", SWITCH, key="lower_case", meaning="lower-case the text"),
    Flag("--train_batch_size", int, 32, "features of an update of one GPU"),
    Flag("--learning_rate", float, 5e-5, "learning rate", key="base_learning_rate"),
    Flag("--num_train_epochs", float, 3.0, "passes over the training file", key="num_train_epochs"),
    Flag("--max_steps", float, -1.0, "stop here; the schedule stays that of the epochs"),
    Flag("--warmup_proportion", float, 0.1, "warm-up as a share of the updates", key="warmup"),
    Flag("--no_cuda", SWITCH, meaning="train on a processor"),
    Flag("--gradient_accumulation_steps", int, 1, "micro-batches that train_batch_size is divided into"),
    Flag("--local_rank", int, -1, idle=True, meaning="the launcher's environment tells it"),
    Flag("--fp16", SWITCH, meaning="16 bits (apex O2), else fp32"),
    Flag("--amp", SWITCH, meaning="the same as --fp16"),
    Flag("--loss_scale", float, 0.0, "fixed loss scale; 0: adjusted", key="loss_scaling"),
    Flag("--vocab_file", required=True, key="vocab", meaning="vocabulary"),
    Flag("--config_file", required=True, key="model_config", meaning="bert_config.json, the model's shape"),
    Flag("--skip_checkpoint", SWITCH, meaning="do not save the model; here it is saved at the end"),
]  # fmt: skip
"""The flags of both programs; run_glue.py's names, types and defaults are run_squad.py's."""

_ADAM: dict[str, Any] = {
    "optimiser": "adamw-bert",  # without bias correction, as apex FusedAdam is called and BertAdam is
    "beta1": 0.9,
    "beta2": 0.999,
    "weight_decay": 0.01,
    "decay_skips": ["bias", "LayerNorm.bias", "LayerNorm.weight"],
    "lr_schedule": "nvidia-linear",
}
_EPSILONS = {"fp16": 1e-8, "fp32": 1e-6}
"""Epsilon of apex FusedAdam, which trains in 16 bits, and of BertAdam."""


def tuning_keys(given: Given) -> dict[str, Any]:
    """The keys beside those that flags set as they are: optimiser, update, device, checkpoints."""
    precision = "fp16" if given["fp16"] or given["amp"] else "fp32"
    count = given["gradient_accumulation_steps"]
    keys = _ADAM | {
        "optimiser_epsilon": _EPSILONS[precision],
        "precision": precision,
        "device": "cpu" if given["no_cuda"] else "cuda",
        "gelu": "tanh",
        "batch_size": given["train_batch_size"] // count,
        "accumulation": count,
        "world_size": find_rank()[1],
        "eval_every": 0,
        "checkpoint_every": 0,
        "keep_checkpoints": 1,
        "unverified": True,
    }
    if given["max_steps"] > 0:
        keys["steps_this_run"] = max(1, int(given["max_steps"]))
    return keys


def tuning_warnings(given: Given) -> list[str]:
    """The differences between the program and this trainer that the command line shows."""
    warnings = list[str]()
    epochs = given["num_train_epochs"]
    if not given["do_train"]:
        return warnings
    if epochs != int(epochs):
        warnings.append(
            f"--num_train_epochs {epochs:g}: the program stops after {int(epochs)}, within its schedule"
        )
    if given["max_steps"] > 0:
        warnings.append("--max_steps: the program makes one update more than that")
    if given["skip_checkpoint"]:
        warnings.append("--skip_checkpoint: the model is saved all the same, at the end")
    return warnings


def tuning_summary(task: str, given: Given, keys: dict[str, Any]) -> str:
    """The command line in one line."""
    work = [name for name in ("do_train", "do_eval", "do_predict") if given[name]]
    sizes = product(keys["world_size"], keys["batch_size"], keys["accumulation"])
    does = ", ".join(name.removeprefix("do_") for name in work)
    return f"{task} ({does}), {sizes} features an update, {keys['precision']}, adam, {keys['device']}"
