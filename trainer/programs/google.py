"""Google's run_squad.py (SQuAD 1.1 and 2.0) and run_classifier.py (CoLA, MNLI and MRPC), for TensorFlow."""

from collections.abc import Mapping
from typing import Any

from bertdata.cli.common.absl_flags import boolean, integer
from bertdata.cli.common.program_flags import ABSL, Flag, Given
from bertdata.errors import UsageError
from trainer.programs.constants import MOMENTS
from trainer.programs.flag_tables import idle_flags, own_flags, phase_keys
from trainer.programs.machine import count_gpus, has_checkpoints
from trainer.programs.program import Meaning, Program, require_files, require_flags, require_work

LOGGED_STEPS = 100
"""Steps between two lines of TensorFlow's log."""

COMMON = [
    Flag("--bert_config_file", key="model_config", meaning="bert_config.json, the model's shape; required"),
    Flag("--vocab_file", key="vocab", meaning="vocabulary of the model; required"),
    Flag("--output_dir", key="output_dir", meaning="directory of checkpoints and predictions; required"),
    Flag("--init_checkpoint", meaning="checkpoint to take the weights from, unless output_dir has one"),
    Flag("--do_lower_case", boolean, True, "lower-case the text", key="lower_case"),
    Flag("--do_train", boolean, False, "train", key="do_train"),
    *own_flags(float, "--num_train_epochs=3.0"),
    Flag("--train_batch_size", integer, 32, "features of an update over all cores"),
    Flag("--learning_rate", float, 5e-5, "learning rate", key="base_learning_rate"),
    Flag("--warmup_proportion", float, 0.1, "warm-up as a share of the updates", key="warmup"),
    Flag("--save_checkpoints_steps", integer, 1000, "updates between checkpoints", key="checkpoint_every"),
    Flag("--use_tpu", boolean, False, "train on TPU cores, else on a GPU, if any, or the processor"),
    Flag("--num_tpu_cores", integer, 8, "cores, with --use_tpu"),
    *idle_flags("steps between two visits of the host", integer, "--iterations_per_loop=1000"),
    *idle_flags("the machine's own devices are used", str, "--tpu_name --tpu_zone --gcp_project --master"),
]  # fmt: skip
_SQUAD_FLAGS = [
    *COMMON,
    Flag("--train_file", key="task_train_file", meaning="file to train on, train-v1.1.json"),
    Flag("--predict_file", key="task_predict_file", meaning="file to write predictions of, dev-v1.1.json"),
    *own_flags(integer, "--max_seq_length=384 --doc_stride=128 --max_query_length=64 --n_best_size=20 "
               "--max_answer_length=30"),
    *own_flags(boolean, "--version_2_with_negative=false"),
    *own_flags(float, "--null_score_diff_threshold=0.0"),
    Flag("--do_predict", boolean, False, "write predictions of predict_file", key="do_predict"),
    Flag("--predict_batch_size", integer, 8, "features of a batch of predictions over all cores"),
    Flag("--verbose_logging", boolean, False, idle=True, meaning="warnings are not repeated"),
]  # fmt: skip
_CLASSIFIER_FLAGS = [
    *COMMON,
    Flag("--data_dir", key="task_dir", meaning="directory of the task's .tsv files; required"),
    Flag("--task_name", meaning="CoLA, MNLI or MRPC; required"),
    *own_flags(integer, "--max_seq_length=128"),
    Flag("--do_eval", boolean, False, "evaluate at the end", key="do_eval"),
    Flag("--do_predict", boolean, False, "write predictions of the test file", key="do_predict"),
    Flag("--eval_batch_size", integer, 8, "features of an evaluation batch over all cores"),
    Flag("--predict_batch_size", integer, 8, idle=True, meaning="as eval_batch_size"),
]  # fmt: skip


def _squad(given: Given) -> Meaning:
    """The fine-tuning and the predictions that a command line of run_squad.py asks for."""
    require_flags(given, "vocab_file", "bert_config_file", "output_dir")
    require_work(given, "do_train", "do_predict")
    require_files(given, {"do_train": "train_file", "do_predict": "predict_file"})
    length, query = given["max_seq_length"], given["max_query_length"]
    if length <= query + 3:
        raise UsageError(f"The max_seq_length ({length}) must be greater than max_query_length ({query}) + 3")
    meaning = _meaning(given, {"task": "squad", "do_eval": False}, "predict_batch_size")
    if given["do_train"]:
        given.warn(
            "the program counts the questions of its epochs, this trainer the features: some more updates"
        )
    if given["do_predict"]:
        given.warn("predictions are written to predict/ in output_dir")
    return meaning


def _classifier(given: Given) -> Meaning:
    """The fine-tuning, the evaluation and the predictions that one of run_classifier.py asks for."""
    require_flags(given, "data_dir", "task_name", "vocab_file", "bert_config_file", "output_dir")
    if not (given["do_train"] or given["do_eval"] or given["do_predict"]):
        raise UsageError("At least one of `do_train`, `do_eval` or `do_predict' must be True.")
    task = given["task_name"].lower()
    if task == "xnli":
        raise UsageError(f"task_name {given['task_name']}: the program knows it, this trainer does not")
    if task not in ("cola", "mnli", "mrpc"):
        raise UsageError(f"Task not found: {task}")
    return _meaning(given, {"task": task}, "eval_batch_size")


def _meaning(given: Given, own: Mapping[str, Any], eval_size: str) -> Meaning:
    """The meaning of the flags that both programs have. own: keys of one. eval_size: its flag for that batch.

    A checkpoint in output_dir goes before init_checkpoint, and a run there is continued unasked.
    """
    count = given["num_tpu_cores"] if given["use_tpu"] else 1
    there = has_checkpoints(given["output_dir"])
    if there and given["do_train"]:
        given.warn(f"{given['output_dir']}: has checkpoints, so that the run continues from the newest")
    keys = {
        "device": "xla" if given["use_tpu"] else "cuda" if count_gpus() else "cpu",
        "world_size": count,
        "dist": count > 1,
        "precision": "fp32",
        "gelu": "tanh",
        "batch_size": of_core(given, "train_batch_size", count),
        "accumulation": 1,
        "start_from_ckpt": (given["init_checkpoint"] or None) if given["do_train"] or not there else None,
        "resume": there and given["do_train"],
        "optimiser": "adamw-bert",
        **MOMENTS,
        # Each core clips its own gradient before the sum over the cores.
        "clipping": "per_micro_batch" if count > 1 else "per_update",
        "max_grad_norm": 1.0,
        "lr_schedule": "mlperf",
        "power": 1.0,
        "keep_checkpoints": 5,
        "eval_every": 0,
        "log_every": LOGGED_STEPS,
    }
    keys |= phase_keys(given) | {**own, "eval_batch_size": of_core(given, eval_size, count)}
    return Meaning(what=keys["task"], phases=[keys])


def of_core(given: Given, name: str, count: int) -> int:
    """The part of a total batch that one of ``count`` cores has."""
    total: int = given[name]
    if total < 1 or count < 1 or total % count:
        kind = name.partition("_")[0]
        raise UsageError(f"{kind} batch size {total} must be divisible by number of replicas {count}")
    return total // count


SQUAD = Program("google/run_squad.py", {"": _SQUAD_FLAGS}, _squad, syntax=ABSL)

CLASSIFIER = Program("google/run_classifier.py", {"": _CLASSIFIER_FLAGS}, _classifier, syntax=ABSL)
