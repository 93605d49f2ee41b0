"""Fine-tuning on SQuAD or MRPC by Habana's demo_bert.py for TensorFlow."""

import os
from typing import Any

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.habana_tf.pretraining import COMMON_KEYS, SIZES, find_workers, read_phase_numbers
from trainer.programs.translated_command import TranslatedCommand

_FIXED_KEYS: dict[str, Any] = COMMON_KEYS | {
    "optimiser": "adamw-bert",
    "epsilon_in": "square",
    "clipping": "per_update",
    "lr_schedule": "mlperf",
    "power": 1.0,
    "epoch_rounding": "down",
    "warmup": 0.1,
    "accumulation": 1,
    "eval_batch_size": 8,
    "checkpoint_every": 1000,
    "do_eval": True,
    "lower_case": True,
}
"""Configuration keys that no flag changes. Unlike in pre-training, the learning rate is not multiplied by the
number of workers.
"""

_BATCH_SIZES = {("mrpc", "bf16"): 64, ("mrpc", "fp32"): 32, ("squad", "bf16"): 24, ("squad", "fp32"): 10}
_LENGTHS = {"mrpc": 128, "squad": 384}
_EPOCHS = {"mrpc": 3.0, "squad": 2.0}
_SHELL_RATES = {"mrpc": 2e-5, "squad": 3e-5}
_FILES = {"mrpc": ("train.tsv", "dev.tsv"), "squad": ("train-v1.1.json", "dev-v1.1.json")}


def translate_finetuning(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for fine-tuning, with an evaluation at its end."""
    _, workers = find_workers(flags)
    task, precision = flags["test_set"], flags["data_type"]
    if task not in _FILES:
        raise UsageError(f"Incorrect test set passed to -t option: {task}; fine-tuning takes mrpc or squad")
    data = _find_task_folder(flags, task)
    variant = flags["model_variant"]
    layers, width, heads = SIZES[variant]
    unpacked = f"{'wwm_' * (variant == 'large')}uncased_L-{layers}_H-{width}_A-{heads}"
    weights = flags["checkpoint_folder"] or flags["bert_config_dir"] or unpacked
    folder = "mrpc_output" if task == "mrpc" else f"squad_{variant}"
    keys = _FIXED_KEYS | workers | {
        "precision": precision,
        "task": task,
        "task_dir": data,
        "task_train_file": storage.join(data, _FILES[task][0]),
        "task_eval_file": storage.join(data, _FILES[task][1]),
        "start_from_ckpt": storage.join(weights, "bert_model.ckpt"),
        "num_train_epochs": flags["epochs"] or _EPOCHS[task],
        "batch_size": read_phase_numbers(flags, "batch_size", [_BATCH_SIZES[task, precision]])[0],
        "max_seq_length": read_phase_numbers(flags, "max_seq_length", [_LENGTHS[task]])[0],
        "base_learning_rate": _SHELL_RATES[task] if flags.version else flags["learning_rate"],
        "keep_checkpoints": 1 if task == "squad" else 5,
        "output_dir": flags["output_dir"] or os.path.expanduser(f"~/tmp/{folder}/"),
    }  # fmt: skip
    if task == "squad":
        keys |= {"doc_stride": 128, "max_query_length": 64, "rows": True, "answers_over_padding": True}
    flags.warn(
        "the program makes the updates of its questions or pairs, this trainer those of their features"
    )
    return TranslatedCommand(what=task, phases=[keys])


def _find_task_folder(flags: ParsedCommandLine, task: str) -> str:
    """Return the directory that has the task's files.

    It is the directory that the flag names, or for MRPC perhaps its sub-directory MRPC.
    """
    if flags.version:  # the shell script expects SQuAD's files next to itself
        return "tensorflow_datasets/bert/MRPC" if task == "mrpc" else "."
    folder: str = flags["dataset_path"]
    below = storage.join(folder, "MRPC")
    inside = task == "mrpc" and not storage.exists(storage.join(folder, "train.tsv"))
    return below if inside and storage.exists(storage.join(below, "train.tsv")) else folder
