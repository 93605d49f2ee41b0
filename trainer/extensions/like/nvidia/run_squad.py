"""NVIDIA's run_squad.py for PyTorch: SQuAD on GPUs, started by a launcher, one process each.

The program's schedule has floor(questions / update) updates an epoch, of training data that are features,
of which there are some more; the rate of the last updates is 0 there, small here.
"""

from bertdata.cli.common.program_flags import SWITCH, Flag, Given
from bertdata.errors import UsageError
from trainer.extensions.like.nvidia.finetuning import (
    COMMON_FLAGS,
    tuning_keys,
    tuning_summary,
    tuning_warnings,
)
from trainer.extensions.like.nvidia.run_pretraining import check_accumulation
from trainer.extensions.like.program import Meaning, Program, phase_keys

FLAGS = [
    *COMMON_FLAGS,
    Flag("--train_file", key="task_train_file", meaning="SQuAD file to train on"),
    Flag("--predict_file", meaning="SQuAD file to predict, and to evaluate on"),
    Flag("--max_seq_length", int, 384, "ids of a feature", key="max_seq_length"),
    Flag("--doc_stride", int, 128, "tokens from one span to the next", key="doc_stride"),
    Flag("--max_query_length", int, 64, "most tokens of a question", key="max_query_length"),
    Flag("--do_predict", SWITCH, key="do_predict", meaning="predict predict_file"),
    Flag("--predict_batch_size", int, 8, "features of a batch of predictions", key="eval_batch_size"),
    Flag("--n_best_size", int, 20, "answers in nbest_predictions.json", key="n_best_size"),
    Flag("--max_answer_length", int, 30, "most tokens of an answer", key="max_answer_length"),
    Flag("--verbose_logging", SWITCH, idle=True),
    Flag("--seed", int, 42, "seed of new weights, dropout and order", key="seed"),
    Flag("--version_2_with_negative", SWITCH, key="version_2_with_negative",
         meaning="questions may have no answer (SQuAD 2.0)"),
    Flag("--null_score_diff_threshold", float, 0.0, key="null_score_diff_threshold",
         meaning="no answer where its score is more than this above the best answer's"),
    Flag("--log_freq", int, 50, "micro-batches between two log lines"),
    Flag("--json-summary", str, "results/dllogger.json", "file for the dllogger lines", key="json_summary"),
    Flag("--eval_script", default="evaluate.py", idle=True, meaning="the official metrics are built in"),
    Flag("--do_eval", SWITCH, meaning="with --do_predict: score the predictions"),
    Flag("--use_env", SWITCH, idle=True, meaning="the rank is always the environment's"),
    Flag("--disable-progress-bar", SWITCH, key="no_progress_bar", meaning="print plain lines"),
    Flag("--skip_cache", SWITCH, idle=True, meaning="features are kept in output_dir"),
    Flag("--cache_dir", idle=True, meaning="features are kept in output_dir"),
]  # fmt: skip


def resolve(given: Given) -> Meaning:
    """The training, prediction and evaluation that the command line asks for."""
    _check(given)
    path = given["predict_file"]
    evaluates = given["do_eval"] and given["do_predict"]
    keys = phase_keys(given, FLAGS) | tuning_keys(given)
    keys |= {
        "task": "squad",
        "do_eval": evaluates,
        "clipping": "per_update",
        "max_grad_norm": 1.0,
        "log_every": max(1, given["log_freq"] // given["gradient_accumulation_steps"]),
    }
    if given["do_predict"]:
        keys["task_predict_file"] = path
    if evaluates:
        keys["task_eval_file"] = path
    warnings = tuning_warnings(given)
    if given["do_eval"] and not evaluates:
        warnings.append("--do_eval acts only with --do_predict: nothing is evaluated, as there")
    if keys["world_size"] == 1 and not given["no_cuda"]:
        warnings.append(
            "without a launcher the program uses all visible GPUs, here one: torchrun starts more"
        )
    return Meaning(summary=tuning_summary("squad", given, keys), phases=[keys], warnings=warnings)


def _check(given: Given) -> None:
    """UsageError, in the program's words, for what it refuses."""
    check_accumulation(given, divides=False)
    if not given["do_train"] and not given["do_predict"]:
        raise UsageError("At least one of `do_train` or `do_predict` must be True.")
    for switch, name in (("do_train", "train_file"), ("do_predict", "predict_file")):
        if given[switch] and not given[name]:
            raise UsageError(f"If `{switch}` is True, then `{name}` must be specified.")


PROGRAM = Program(
    name="nvidia/run_squad.py",
    title="NVIDIA run_squad.py",
    source="NVIDIA/DeepLearningExamples 65211bd9, PyTorch/LanguageModeling/BERT/run_squad.py",
    commands={"": FLAGS},
    resolve=resolve,
    published=(
        "--init_checkpoint bert_large.pt --do_train --train_file train-v1.1.json --train_batch_size 4 "
        "--do_predict --predict_file dev-v1.1.json --predict_batch_size 4 --eval_script evaluate-v1.1.py "
        "--do_eval --do_lower_case --bert_model bert-large-uncased --learning_rate 3e-5 --seed 1 "
        "--num_train_epochs 2 --max_seq_length 384 --doc_stride 128 --output_dir results/SQuAD "
        "--vocab_file vocab.txt --config_file bert_config.json --max_steps -1 --fp16",
    ),
)
