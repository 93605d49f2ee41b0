"""Google's run_classifier.py: CoLA, MNLI and MRPC."""

from bertdata.cli.common.absl_flags import boolean, integer
from bertdata.cli.common.program_flags import ABSL, Flag, Given
from bertdata.errors import UsageError
from trainer.extensions.like.google.fine_tuning import COMMON, common_keys, of_core, summary_of
from trainer.extensions.like.program import Meaning, Program, phase_keys
from trainer.extensions.like.tensorflow import require_flags

_TABLE = [
    *COMMON,
    Flag("--data_dir", key="task_dir", meaning="directory of the task's .tsv files; required"),
    Flag("--task_name", meaning="CoLA, MNLI or MRPC; required"),
    Flag("--max_seq_length", integer, 128, "ids of a feature", key="max_seq_length"),
    Flag("--do_eval", boolean, False, "evaluate at the end", key="do_eval"),
    Flag("--do_predict", boolean, False, "write predictions of the test file", key="do_predict"),
    Flag("--eval_batch_size", integer, 8, "features of an evaluation batch over all cores"),
    Flag("--predict_batch_size", integer, 8, idle=True, meaning="as eval_batch_size"),
]  # fmt: skip

_TASKS = ("cola", "mnli", "mrpc")
_NOT_HERE = "xnli"


def resolve(given: Given) -> Meaning:
    """The fine-tuning, the evaluation and the predictions that the command line asks for."""
    require_flags(given, "data_dir", "task_name", "vocab_file", "bert_config_file", "output_dir")
    if not (given["do_train"] or given["do_eval"] or given["do_predict"]):
        raise UsageError("At least one of `do_train`, `do_eval` or `do_predict' must be True.")
    task = given["task_name"].lower()
    if task == _NOT_HERE:
        raise UsageError(f"task_name {given['task_name']}: the program knows it, this trainer does not")
    if task not in _TASKS:
        raise UsageError(f"Task not found: {task}")
    warnings: list[str] = []
    keys, missing = common_keys(given, warnings)
    keys |= phase_keys(given, _TABLE)
    keys |= {"task": task, "eval_batch_size": of_core(given, "eval_batch_size", keys["world_size"])}
    return Meaning(
        summary=summary_of(task, given, keys),
        phases=[keys],
        warnings=warnings,
        missing=missing,
    )


PROGRAM = Program(
    name="google/run_classifier.py",
    title="Google run_classifier.py",
    source="google-research/bert, run_classifier.py",
    commands={"": _TABLE},
    resolve=resolve,
    syntax=ABSL,
    published=(
        "--task_name=MRPC --do_train=true --do_eval=true --data_dir=glue/MRPC --vocab_file=base/vocab.txt "
        "--bert_config_file=base/bert_config.json --init_checkpoint=base/bert_model.ckpt "
        "--max_seq_length=128 --train_batch_size=32 --learning_rate=2e-5 --num_train_epochs=3.0 "
        "--output_dir=/tmp/mrpc_output",
    ),
)
