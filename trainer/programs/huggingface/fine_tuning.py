"""Hugging Face's run_qa.py (SQuAD 1.1 and 2.0), and run_glue.py (GLUE's tasks and tables of one's own)."""

import io
from typing import Any

from bertdata.cli.common.program_flags import Flag, Given
from bertdata.errors import UsageError
from bertdata.io import storage
from bertdata.io.file_kind import HEAD_BYTES
from bertdata.io.json_text import parse_json_text
from bertdata.sources.delimited import RowReader, find_delimiting
from trainer.programs.constants import TRANSFORMERS_ADAMW
from trainer.programs.flag_tables import own_flags, phase_keys, truth
from trainer.programs.huggingface.arguments import COMMON, REFUSED, spelled
from trainer.programs.machine import KEEP_ALL, count_gpus, has_checkpoints, is_here
from trainer.programs.program import Meaning, Program
from trainer.workers.launchers import find_launcher

_QA_FLAGS = spelled([
    *COMMON,
    *own_flags(int, "--max_seq_length=384 --n_best_size=20 --max_answer_length=30"),
    Flag("--doc_stride", int, 128, "tokens that two spans have in common", key="doc_stride"),
    *own_flags(float, "--null_score_diff_threshold=0.0"),
    Flag("--version_2_with_negative", truth, False, "SQuAD 2.0: questions without an answer"),
])  # fmt: skip
_GLUE_FLAGS = spelled([
    *COMMON,
    Flag("--task_name", meaning="a task of GLUE: cola, mnli, mrpc, qnli, qqp, rte, sst2, stsb or wnli"),
    *own_flags(int, "--max_seq_length=128"),
])  # fmt: skip

_DATASETS = ("squad", "squad_v2")
_TASKS = {"sst2": "sst-2", "stsb": "sts-b"} | {
    name: name for name in ("cola", "mnli", "mrpc", "qnli", "qqp", "rte", "wnli")
}
_ADAMW = (
    *("adamw_hf", "adamw_torch", "adamw_torch_fused", "adamw_torch_xla", "adamw_torch_npu_fused"),
    "adamw_apex_fused",
)


def _qa(given: Given) -> Meaning:
    """The fine-tuning, the evaluation and the predictions that the command line asks for."""
    files = (given["train_file"], given["validation_file"], given["test_file"])
    name = given["dataset_name"]
    if name is None and not any(files):
        raise UsageError("Need either a dataset name or a training/validation file/test_file.")
    dataset = name and name.rpartition("/")[2]
    if name is not None and dataset not in _DATASETS:
        raise UsageError(f"dataset_name {name}: this trainer has {' and '.join(_DATASETS)}")
    given.warn(
        "the program's doc_stride is what two spans have in common, here it is the way from one to the next"
    )
    if name is None:
        _check_files(given)
    else:
        given.warn(f"the dataset {name} is not downloaded: append -- --data-dir DIR, with its files in DIR")
    negative = given["version_2_with_negative"] or dataset == "squad_v2"
    keys = _training_keys(given)
    keys |= {"task": "squad", "version_2_with_negative": negative}
    return Meaning(what=keys["task"], phases=[keys])


def _glue(given: Given) -> Meaning:
    """The fine-tuning, the evaluation and the predictions that the command line asks for."""
    name = given["task_name"] and given["task_name"].lower()
    keys = _training_keys(given)
    if name is not None:
        if name not in _TASKS:
            raise UsageError(f"Unknown task, you should pick one in {','.join(sorted(_TASKS))}")
        given.warn(f"the task {name} is not downloaded: append -- --data-dir DIR, with its .tsv files in DIR")
        keys["task"] = _TASKS[name]
        if name == "mnli":  # the program numbers the labels in this order
            keys["labels"] = ["entailment", "neutral", "contradiction"]
    else:
        keys |= _own_table(given)
    return Meaning(what=keys["task"], phases=[keys])


def _own_table(given: Given) -> dict[str, Any]:
    """The task of one's own files, with the columns that the program would take."""
    if given["dataset_name"] is not None:
        raise UsageError(
            f"dataset_name {given['dataset_name']}: not downloaded; give its files by --train_file"
        )
    if given["train_file"] is None or given["validation_file"] is None:
        raise UsageError("Need either a GLUE task, a training/validation file or a dataset name.")
    _check_files(given)
    names = [name for name in _columns(given["train_file"]) if name != "label"]
    pair = ["sentence1", "sentence2"]
    if set(pair) <= set(names) or not names:
        names = pair
    first, second = names[0], names[1] if len(names) > 1 else None
    return {"task": "classification", "first_column": first, "second_column": second, "label_column": "label"}


def _columns(path: str) -> list[str]:
    """The names of the columns of a table on this machine, or none where it is missing."""
    if not is_here(path):
        return []
    data = storage.read_bytes(path)
    if path.endswith(".json"):
        try:
            row = parse_json_text(data.partition(b"\n")[0], any_number=True)
        except ValueError:
            return []
        return list(row) if isinstance(row, dict) else []
    rows = RowReader(io.BytesIO(data), find_delimiting(data[:HEAD_BYTES], path, "csv"), len(data) + 1)
    return next((row.fields for row in rows), [])


def _training_keys(given: Given) -> dict[str, Any]:
    """The keys that the flags of both programs set."""
    for flag in REFUSED:
        if given[flag.name] != flag.default:
            found = f"{flag.name} is {given[flag.name]}"
            raise UsageError(f"{found}: this trainer has nothing like it; leave it out")
    if given["fp16"] and given["bf16"]:
        raise UsageError("At most one of fp16 and bf16 can be True, but not both")
    resumes = given["resume_from_checkpoint"] not in (None, "", "False", "false")
    continues = has_checkpoints(given["output_dir"]) and not given["overwrite_output_dir"]
    if continues and given["do_train"]:
        given.warn(f"{given['output_dir']}: has checkpoints, so that the run continues from the newest")
    reports = given["report_to"] or ()
    keys = TRANSFORMERS_ADAMW | phase_keys(given)
    keys |= {
        **_devices(given),
        "gelu": "exact",
        "precision": "fp16" if given["fp16"] else "bf16" if given["bf16"] else "fp32",
        "batch_size": given["per_gpu_train_batch_size"] or given["per_device_train_batch_size"],
        "eval_batch_size": given["per_gpu_eval_batch_size"] or given["per_device_eval_batch_size"],
        "resume": given["do_train"] and (continues or resumes),
        "max_grad_norm": given["max_grad_norm"] or 1.0,
        "clipping": "per_update" if given["max_grad_norm"] else "none",
        "keep_checkpoints": given["save_total_limit"] or KEEP_ALL,
        "tensorboard": "tensorboard" in reports or "all" in reports,
        "wandb": "wandb" in reports or "all" in reports,
        "log_every": max(1, _count(given, "logging_steps")),
    }
    name = "adamw" if given["optim"] in _ADAMW else given["optim"]
    if name not in ("adamw", "sgd"):
        raise UsageError(f"optim {name}: this trainer has {', '.join(_ADAMW)} and sgd")
    keys |= {"optimiser": name, "decay_skips": ["bias", "LayerNorm"]}
    if given["config_name"] and is_here(given["config_name"]):
        keys["model_config"] = given["config_name"]
    if tokeniser := given["tokenizer_name"]:
        keys["vocab"] = f"{tokeniser}/vocab.txt" if is_here(f"{tokeniser}/vocab.txt") else tokeniser
    return keys | _schedule(given) | _intervals(given)


def _devices(given: Given) -> dict[str, Any]:
    """A GPU where there is one, else the processor. Without a launcher the program takes all GPUs."""
    gpus = count_gpus()
    if given["no_cuda"] or given["use_cpu"] or not gpus:
        return {"device": "cpu", "world_size": None, "dist": False}
    takes_all = find_launcher() == "single" and gpus > 1
    return {"device": "cuda", "world_size": gpus if takes_all else None, "dist": takes_all}


def _schedule(given: Given) -> dict[str, Any]:
    """The updates and the rate: linear, as polynomial with its defaults is, or constant."""
    keys: dict[str, Any] = {"warmup": given["warmup_steps"] or given["warmup_ratio"] or 0}
    if given["max_steps"] > 0:
        keys |= {"steps": given["max_steps"], "num_train_epochs": None}
    kind = given["lr_scheduler_type"]
    if kind == "constant" or (kind == "constant_with_warmup" and not keys["warmup"]):
        rates = {"0": given["learning_rate"]}
        return keys | {"warmup": 0, "lr_schedule": "custom", "lr_schedule_by_step": rates}
    if kind not in ("linear", "polynomial"):
        raise UsageError(f"lr_scheduler_type {kind}: this trainer has linear, polynomial and constant")
    return keys | {"lr_schedule": "polynomial_decay"}


def _intervals(given: Given) -> dict[str, Any]:
    """The keys of checkpoints and evaluations."""
    strategy, save = given["eval_strategy"], given["save_strategy"]
    keys: dict[str, Any] = {"do_eval": given["do_eval"] or strategy != "no"}
    if strategy == "steps":
        keys["eval_every"] = _count(given, "eval_steps" if given["eval_steps"] else "logging_steps")
    elif strategy == "no":
        keys["eval_every"] = 0
    if save in ("epoch", "best"):
        given.warn(f"save_strategy {save}: a checkpoint is saved at the end only")
    keys["checkpoint_every"] = max(0, _count(given, "save_steps")) if save == "steps" else 0
    return keys


def _count(given: Given, name: str) -> int:
    """A number of updates. The program also takes a fraction of all updates."""
    value: float = given[name]
    if value != int(value):
        raise UsageError(f"{name} is {value}: a share of the updates; give their number")
    return int(value)


def _check_files(given: Given) -> None:
    """UsageError for files of kinds that the programs refuse."""
    for name in ("train_file", "validation_file", "test_file"):
        path = given[name]
        if path is not None and path.rpartition(".")[2] not in ("csv", "json"):
            raise UsageError(f"`{name}` should be a csv or a json file.")


QA = Program("huggingface/run_qa.py", {"": _QA_FLAGS}, _qa)

GLUE = Program("huggingface/run_glue.py", {"": _GLUE_FLAGS}, _glue)
