"""The common part of Google's programs for fine-tuning: flags, machine, optimiser, checkpoints."""

from collections.abc import Mapping
from typing import Any

from bertdata.cli.common.absl_flags import boolean, integer
from bertdata.cli.common.program_flags import Flag, Given
from bertdata.errors import UsageError
from trainer.extensions.like.constants import product
from trainer.extensions.like.shapes import find_shape
from trainer.extensions.like.tensorflow import has_checkpoints, usual_device

COMMON = [
    Flag("--bert_config_file", meaning="bert_config.json, the shape of the model; required"),
    Flag("--vocab_file", key="vocab", meaning="vocabulary of the model; required"),
    Flag("--output_dir", key="output_dir", meaning="directory of checkpoints and predictions; required"),
    Flag("--init_checkpoint", meaning="checkpoint to take the weights from, unless output_dir has one"),
    Flag("--do_lower_case", boolean, True, "lower-case the text", key="lower_case"),
    Flag("--do_train", boolean, False, "train", key="do_train"),
    Flag("--train_batch_size", integer, 32, "features of an update over all cores"),
    Flag("--learning_rate", float, 5e-5, "learning rate", key="base_learning_rate"),
    Flag("--num_train_epochs", float, 3.0, "passes over the training file", key="num_train_epochs"),
    Flag("--warmup_proportion", float, 0.1, "warm-up as a share of the updates", key="warmup"),
    Flag("--save_checkpoints_steps", integer, 1000, "updates between two checkpoints",
         key="checkpoint_every"),
    Flag("--use_tpu", boolean, False, "train on TPU cores, else on a GPU, if any, or the processor"),
    Flag("--num_tpu_cores", integer, 8, "cores, with --use_tpu"),
    Flag("--iterations_per_loop", integer, 1000, idle=True, meaning="steps between two visits of the host"),
    Flag("--tpu_name", idle=True, meaning="the machine's own devices are used"),
    Flag("--tpu_zone", idle=True, meaning="as tpu_name"),
    Flag("--gcp_project", idle=True, meaning="as tpu_name"),
    Flag("--master", idle=True, meaning="as tpu_name"),
]  # fmt: skip

_LOGGED_STEPS = 100


def common_keys(given: Given, warnings: list[str]) -> tuple[dict[str, Any], list[str]]:
    """(keys that both programs set alike, missing files); adds warnings.

    A checkpoint in output_dir goes before init_checkpoint, and a run there is continued unasked.
    """
    count = given["num_tpu_cores"] if given["use_tpu"] else 1
    shape, missing, told = find_shape(given["bert_config_file"])
    there = has_checkpoints(given["output_dir"])
    warnings += told
    if there and given["do_train"]:
        warnings.append(f"{given['output_dir']}: has checkpoints, so that the run continues from the newest")
    keys = shape | {
        "device": "xla" if given["use_tpu"] else usual_device(),
        "world_size": count,
        "dist": count > 1,
        "precision": "fp32",
        "gelu": "tanh",
        "unverified": True,
        "batch_size": of_core(given, "train_batch_size", count),
        "accumulation": 1,
        "start_from_ckpt": (given["init_checkpoint"] or None) if given["do_train"] or not there else None,
        "resume": there and given["do_train"],
        "optimiser": "adamw-bert",
        "beta1": 0.9,
        "beta2": 0.999,
        "optimiser_epsilon": 1e-6,
        "weight_decay": 0.01,
        # Each core clips its own gradient before the sum over the cores.
        "clipping": "per_micro_batch" if count > 1 else "per_update",
        "max_grad_norm": 1.0,
        "lr_schedule": "mlperf",
        "power": 1.0,
        "keep_checkpoints": 5,
        "eval_every": 0,
        "log_every": _LOGGED_STEPS,
    }
    return keys, missing


def of_core(given: Given, name: str, count: int) -> int:
    """The part of a total batch that one of ``count`` cores has."""
    total: int = given[name]
    if total < 1 or count < 1 or total % count:
        kind = name.partition("_")[0]
        raise UsageError(f"{kind} batch size {total} must be divisible by number of replicas {count}")
    return total // count


def summary_of(task: str, given: Given, keys: Mapping[str, Any]) -> str:
    """The line for a person."""
    length = f"{given['num_train_epochs']:g} epochs" if given["do_train"] else "no training"
    sizes = product(keys["world_size"], keys["batch_size"])
    return f"{task}, {length}, {sizes} features an update, adamw, {keys['device']}"
