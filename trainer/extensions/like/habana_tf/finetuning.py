"""Fine-tuning by Habana's demo_bert.py for TensorFlow: SQuAD and MRPC."""

import os

from bertdata.cli.common.program_flags import Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.extensions.like.constants import product
from trainer.extensions.like.habana_tf.constants import FINETUNING, FOLDERS
from trainer.extensions.like.habana_tf.workers import Workers
from trainer.extensions.like.program import Meaning

_SIZES = {("mrpc", "bf16"): 64, ("mrpc", "fp32"): 32, ("squad", "bf16"): 24, ("squad", "fp32"): 10}
_LENGTHS = {"mrpc": 128, "squad": 384}
_EPOCHS = {"mrpc": 3.0, "squad": 2.0}
_SHELL_RATES = {"mrpc": 2e-5, "squad": 3e-5}
_FILES = {"mrpc": ("train.tsv", "dev.tsv"), "squad": ("train-v1.1.json", "dev-v1.1.json")}


def finetuning(given: Given, workers: Workers) -> Meaning:
    """The task, with an evaluation at the end."""
    task = given["test_set"]
    if task not in _FILES:
        raise UsageError(f"Incorrect test set passed to -t option: {task}; fine-tuning takes mrpc or squad")
    precision = given["data_type" if not given.version else "dtype"]
    size = _whole(given, "batch_size", _SIZES[task, precision])
    epochs = given["epochs"] or _EPOCHS[task]
    folder = _data(given, task)
    keys = FINETUNING | workers.keys | {
        "precision": precision,
        "task": task,
        "task_dir": folder,
        "task_train_file": storage.join(folder, _FILES[task][0]),
        "task_eval_file": storage.join(folder, _FILES[task][1]),
        "start_from_ckpt": storage.join(_weights(given), "bert_model.ckpt"),
        "num_train_epochs": epochs,
        "batch_size": size,
        "max_seq_length": _whole(given, "max_seq_length", _LENGTHS[task]),
        "base_learning_rate": _SHELL_RATES[task] if given.version else given["learning_rate"],
        "keep_checkpoints": 1 if task == "squad" else 5,
        "output_dir": _output(given, task),
    }  # fmt: skip
    if task == "squad":
        keys["doc_stride"] = 128
    length = "1 epoch" if epochs == 1 else f"{epochs:g} epochs"
    return Meaning(
        summary=f"{task}, {length}, {product(workers.keys['world_size'], size)} features an update, "
        f"{precision}, adamw without bias correction, hpu",
        phases=[keys],
        warnings=[
            *workers.warnings,
            "the program makes the updates of its questions or pairs, this trainer those of their features",
        ],
    )


def _whole(given: Given, name: str, usual: int) -> int:
    value = given[name]
    try:
        return usual if value is None else int(value)
    except ValueError:
        raise UsageError(f"--{name} {value}: expected a number") from None


def _weights(given: Given) -> str:
    """The directory of the weights to start from, as the program has unpacked it."""
    if given.version:
        return FOLDERS[given["model"]]
    return str(given["checkpoint_folder"] or given["bert_config_dir"] or FOLDERS[given["model_variant"]])


def _data(given: Given, task: str) -> str:
    """The directory of the task's files. MRPC may be one below the given directory."""
    if given.version:  # SQuAD lies beside the script
        return "tensorflow_datasets/bert/MRPC" if task == "mrpc" else "."
    folder: str = given["dataset_path"]
    below = storage.join(folder, "MRPC")
    inside = task == "mrpc" and not storage.exists(storage.join(folder, "train.tsv"))
    return below if inside and storage.exists(storage.join(below, "train.tsv")) else folder


def _output(given: Given, task: str) -> str:
    if given["output_dir"]:
        return str(given["output_dir"])
    name = "mrpc_output" if task == "mrpc" else f"squad_{given['model']}"
    return os.path.expanduser(f"~/tmp/{name}/")
