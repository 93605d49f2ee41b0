"""Google's run_squad.py: SQuAD 1.1 and 2.0."""

from bertdata.cli.common.absl_flags import boolean, integer
from bertdata.cli.common.program_flags import ABSL, Flag, Given
from bertdata.errors import UsageError
from trainer.extensions.like.google.fine_tuning import COMMON, common_keys, of_core, summary_of
from trainer.extensions.like.program import Meaning, Program, phase_keys
from trainer.extensions.like.tensorflow import require_flags

_TABLE = [
    *COMMON,
    Flag("--train_file", key="task_train_file", meaning="file to train on, train-v1.1.json"),
    Flag("--predict_file", key="task_predict_file", meaning="file to write predictions of, dev-v1.1.json"),
    Flag("--max_seq_length", integer, 384, "ids of a feature", key="max_seq_length"),
    Flag("--doc_stride", integer, 128, "tokens from one span to the next", key="doc_stride"),
    Flag("--max_query_length", integer, 64, "tokens of a question at most", key="max_query_length"),
    Flag("--do_predict", boolean, False, "write predictions of predict_file", key="do_predict"),
    Flag("--predict_batch_size", integer, 8, "features of a batch of predictions over all cores"),
    Flag("--n_best_size", integer, 20, "answers of a question in nbest_predictions.json", key="n_best_size"),
    Flag("--max_answer_length", integer, 30, "tokens of an answer at most", key="max_answer_length"),
    Flag("--version_2_with_negative", boolean, False, "SQuAD 2.0: questions without an answer",
         key="version_2_with_negative"),
    Flag("--null_score_diff_threshold", float, 0.0, "SQuAD 2.0: advantage of no answer over the best one",
         key="null_score_diff_threshold"),
    Flag("--verbose_logging", boolean, False, idle=True, meaning="warnings are not repeated"),
]  # fmt: skip


def resolve(given: Given) -> Meaning:
    """The fine-tuning and the predictions that the command line asks for."""
    require_flags(given, "vocab_file", "bert_config_file", "output_dir")
    _check(given)
    warnings: list[str] = []
    keys, missing = common_keys(given, warnings)
    keys |= phase_keys(given, _TABLE)
    keys |= {
        "task": "squad",
        "do_eval": False,
        "eval_batch_size": of_core(given, "predict_batch_size", keys["world_size"]),
    }
    if given["do_train"]:
        warnings.append(
            "the program counts the questions of its epochs, this trainer the features: some more updates"
        )
    if given["do_predict"]:
        warnings.append("predictions are written to predict/ in output_dir")
    return Meaning(
        summary=summary_of("squad", given, keys),
        phases=[keys],
        warnings=warnings,
        missing=missing,
    )


def _check(given: Given) -> None:
    """UsageError, in the program's words, for flags that it refuses."""
    if not given["do_train"] and not given["do_predict"]:
        raise UsageError("At least one of `do_train` or `do_predict` must be True.")
    for flag, file in (("do_train", "train_file"), ("do_predict", "predict_file")):
        if given[flag] and not given[file]:
            raise UsageError(f"If `{flag}` is True, then `{file}` must be specified.")
    length, query = given["max_seq_length"], given["max_query_length"]
    if length <= query + 3:
        raise UsageError(f"The max_seq_length ({length}) must be greater than max_query_length ({query}) + 3")


PROGRAM = Program(
    name="google/run_squad.py",
    title="Google run_squad.py",
    source="google-research/bert, run_squad.py",
    commands={"": _TABLE},
    resolve=resolve,
    syntax=ABSL,
    published=(
        "--vocab_file=large/vocab.txt --bert_config_file=large/bert_config.json "
        "--init_checkpoint=large/bert_model.ckpt --do_train=True --train_file=squad/train-v1.1.json "
        "--do_predict=True --predict_file=squad/dev-v1.1.json --train_batch_size=24 --learning_rate=3e-5 "
        "--num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128 --output_dir=squad_large",
    ),
)
