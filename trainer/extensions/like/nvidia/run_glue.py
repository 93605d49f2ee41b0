"""NVIDIA's run_glue.py for PyTorch: MRPC and other tasks of GLUE on GPUs, one process each.

In 16 bits the program clips nothing; BertAdam, in 32, clips the gradient of each tensor to the norm 1.
"""

from bertdata.cli.common.program_flags import SWITCH, Flag, Given
from bertdata.errors import UsageError
from bertdata.io import storage
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
    Flag("--data_dir", required=True, key="task_dir", meaning="directory of train.tsv and dev.tsv"),
    Flag("--task_name", str.lower, required=True, values=("cola", "mnli", "mrpc", "sst-2"), key="task",
         meaning="task"),
    Flag("--max_seq_length", int, 128, "ids of a pair", key="max_seq_length"),
    Flag("--do_eval", SWITCH, key="do_eval", meaning="evaluate on the file for development"),
    Flag("--do_predict", SWITCH, key="do_predict", meaning="write predictions for that file"),
    Flag("--eval_batch_size", int, 8, "pairs of an evaluation batch", key="eval_batch_size"),
    Flag("--seed", int, 1, "seed of new weights, dropout and order", key="seed"),
    Flag("--server_ip", default="", idle=True, meaning="for a debugger"),
    Flag("--server_port", default="", idle=True, meaning="for a debugger"),
]  # fmt: skip


def resolve(given: Given) -> Meaning:
    """The training, evaluation and prediction that the command line asks for."""
    _check(given)
    folder, task = given["data_dir"], given["task_name"]
    file = storage.join(folder, "dev_matched.tsv" if task == "mnli" else "dev.tsv")
    keys = phase_keys(given, FLAGS) | tuning_keys(given)
    keys |= {
        "task_train_file": storage.join(folder, "train.tsv"),
        "task_eval_file": file,
        "task_predict_file": file,
        "clipping": "none" if keys["precision"] == "fp16" else "per_update",
        "max_grad_norm": 1.0,
    }
    warnings = tuning_warnings(given)
    if task == "cola" and given["do_predict"]:
        # CoLA's file for development has other columns than files to predict.
        keys |= {"do_predict": False, "do_eval": True}
        warnings.append("--do_predict: the predictions are those of the evaluation, predictions.tsv")
    if keys["clipping"] != "none" and given["do_train"]:
        warnings.append("the gradient is clipped as a whole; the program clips that of each tensor")
    return Meaning(summary=tuning_summary(task, given, keys), phases=[keys], warnings=warnings)


def _check(given: Given) -> None:
    """UsageError, in the program's words, for what it refuses."""
    if not any(given[name] for name in ("do_train", "do_eval", "do_predict")):
        raise UsageError("At least one of `do_train`, `do_eval` or `do_predict` must be True.")
    check_accumulation(given, divides=False)
    count, size = given["gradient_accumulation_steps"], given["train_batch_size"]
    if count > size:
        raise UsageError(
            f"gradient_accumulation_steps ({count}) cannot be larger train_batch_size ({size}) - "
            "there cannot be a fraction of one sample."
        )


PROGRAM = Program(
    name="nvidia/run_glue.py",
    title="NVIDIA run_glue.py",
    source="NVIDIA/DeepLearningExamples 65211bd9, PyTorch/LanguageModeling/BERT/run_glue.py",
    commands={"": FLAGS},
    resolve=resolve,
    published=(
        "--task_name mrpc --do_train --train_batch_size 8 --do_eval --eval_batch_size 8 "
        "--gradient_accumulation_steps 1 --do_lower_case --data_dir MRPC --bert_model bert-large-uncased "
        "--seed 2 --init_checkpoint bert_large.pt --warmup_proportion 0.01 --max_seq_length 128 "
        "--learning_rate 2e-5 --num_train_epochs 3 --max_steps -1 --vocab_file vocab.txt "
        "--config_file bert_config.json --output_dir results/MRPC --fp16",
    ),
)
