"""NVIDIA's run_squad.py and run_glue.py for PyTorch, on GPUs: started by a launcher, one process each.

run_squad.py's schedule has floor(questions / update) updates an epoch, of training data that are features,
of which there are some more; the rate of the last updates is 0 there, small here. In 16 bits run_glue.py
clips nothing; BertAdam, in 32, clips the gradient of each tensor to the norm 1.
"""

from typing import Any

from bertdata.cli.common.program_flags import SWITCH, Flag, Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.constants import CLIPPED, MOMENTS, micro_batch
from trainer.programs.flag_tables import own_flags, phase_keys, rows_of
from trainer.programs.nvidia.run_pretraining import FLAGS, ONE_GPU
from trainer.programs.program import Meaning, Program, require_files, require_work, work_of
from trainer.workers.launchers import find_rank

_COMMON_FLAGS = [
    *rows_of(FLAGS, "config_file learning_rate gradient_accumulation_steps local_rank fp16 amp loss_scale "
             "skip_checkpoint"),
    Flag("--bert_model", required=True, idle=True, meaning="--config_file gives the shape"),
    Flag("--output_dir", required=True, key="output_dir", meaning="directory for model and predictions"),
    Flag("--do_train", SWITCH, meaning="train", key="do_train"),
    *own_flags(float, "--num_train_epochs=3.0"),
    Flag("--init_checkpoint", required=True, key="start_from_ckpt", meaning="checkpoint of pre-training"),
    Flag("--do_lower_case", SWITCH, key="lower_case", meaning="lower-case the text"),
    Flag("--train_batch_size", int, 32, "features of an update of one GPU"),
    Flag("--max_steps", float, -1.0, "stop here; the schedule stays that of the epochs"),
    Flag("--warmup_proportion", float, 0.1, "warm-up as a share of the updates", key="warmup"),
    Flag("--no_cuda", SWITCH, meaning="train on a processor"),
    Flag("--vocab_file", required=True, key="vocab", meaning="vocabulary"),
]  # fmt: skip
"""The flags of both programs; run_glue.py's names, types and defaults are run_squad.py's."""

_SQUAD_FLAGS = [
    *_COMMON_FLAGS,
    *rows_of(FLAGS, "json_summary use_env"),
    Flag("--train_file", key="task_train_file", meaning="SQuAD file to train on"),
    Flag("--predict_file", meaning="SQuAD file to predict, and to evaluate on"),
    *own_flags(int, "--max_seq_length=384 --doc_stride=128 --max_query_length=64 --n_best_size=20 "
               "--max_answer_length=30 --seed=42"),
    *own_flags(SWITCH, "--version_2_with_negative"),
    Flag("--do_predict", SWITCH, meaning="predict predict_file", key="do_predict"),
    *own_flags(float, "--null_score_diff_threshold=0.0"),
    Flag("--predict_batch_size", int, 8, "features of a batch of predictions", key="eval_batch_size"),
    Flag("--verbose_logging", SWITCH, idle=True),
    Flag("--log_freq", int, 50, "micro-batches between two log lines"),
    Flag("--eval_script", default="evaluate.py", idle=True, meaning="the official metrics are built in"),
    Flag("--do_eval", SWITCH, meaning="with --do_predict: score the predictions"),
    Flag("--disable-progress-bar", SWITCH, key="no_progress_bar", meaning="print plain lines"),
    Flag("--skip_cache", SWITCH, idle=True, meaning="features are kept in output_dir"),
    Flag("--cache_dir", idle=True, meaning="features are kept in output_dir"),
]  # fmt: skip
_GLUE_FLAGS = [
    *_COMMON_FLAGS,
    Flag("--data_dir", required=True, key="task_dir", meaning="directory of train.tsv and dev.tsv"),
    Flag("--task_name", str.lower, required=True, values=("cola", "mnli", "mrpc", "sst-2"), key="task",
         meaning="task"),
    *own_flags(int, "--max_seq_length=128 --eval_batch_size=8 --seed=1"),
    Flag("--do_eval", SWITCH, meaning="evaluate on the file for development", key="do_eval"),
    Flag("--do_predict", SWITCH, meaning="write predictions for that file", key="do_predict"),
    Flag("--server_ip", default="", idle=True, meaning="for a debugger"),
    Flag("--server_port", default="", idle=True, meaning="for a debugger"),
]  # fmt: skip

_ADAM: dict[str, Any] = MOMENTS | {
    "optimiser": "adamw-bert",  # without bias correction, as apex FusedAdam is called and BertAdam is
    "decay_skips": ["bias", "LayerNorm.bias", "LayerNorm.weight"],
    "lr_schedule": "nvidia-linear",
}


def _squad(given: Given) -> Meaning:
    """The training, prediction and evaluation that a command line of run_squad.py asks for."""
    require_work(given, "do_train", "do_predict")
    require_files(given, {"do_train": "train_file", "do_predict": "predict_file"})
    path = given["predict_file"]
    evaluates = given["do_eval"] and given["do_predict"]
    keys = phase_keys(given) | _tuning_keys(given)
    keys |= {
        "task": "squad",
        "do_eval": evaluates,
        **CLIPPED,
        "log_every": max(1, given["log_freq"] // given["gradient_accumulation_steps"]),
    }
    if given["do_predict"]:
        keys["task_predict_file"] = path
    if evaluates:
        keys["task_eval_file"] = path
    _warn_of_training(given)
    if given["do_eval"] and not evaluates:
        given.warn("--do_eval acts only with --do_predict: nothing is evaluated, as there")
    if keys["world_size"] == 1 and not given["no_cuda"]:
        given.warn(ONE_GPU)
    return Meaning(what=f"squad ({work_of(given)})", phases=[keys])


def _glue(given: Given) -> Meaning:
    """The training, evaluation and prediction that a command line of run_glue.py asks for."""
    require_work(given, "do_train", "do_eval", "do_predict")
    count, update = given["gradient_accumulation_steps"], given["train_batch_size"]
    if count > update:
        raise UsageError(
            f"gradient_accumulation_steps ({count}) cannot be larger train_batch_size ({update}) - "
            "there cannot be a fraction of one sample."
        )
    folder, task = given["data_dir"], given["task_name"]
    file = storage.join(folder, "dev_matched.tsv" if task == "mnli" else "dev.tsv")
    keys = phase_keys(given) | _tuning_keys(given)
    keys |= {
        "task_train_file": storage.join(folder, "train.tsv"),
        "task_eval_file": file,
        "task_predict_file": file,
        "clipping": "none" if keys["precision"] == "fp16" else "per_update",
        "max_grad_norm": 1.0,
    }
    _warn_of_training(given)
    if task == "cola" and given["do_predict"]:
        # CoLA's file for development has other columns than files to predict.
        keys |= {"do_predict": False, "do_eval": True}
        given.warn("--do_predict: the predictions are those of the evaluation, predictions.tsv")
    if keys["clipping"] != "none" and given["do_train"]:
        given.warn("the gradient is clipped as a whole; the program clips that of each tensor")
    return Meaning(what=f"{task} ({work_of(given)})", phases=[keys])


def _tuning_keys(given: Given) -> dict[str, Any]:
    """The keys that follow from several flags: optimiser, update, device, checkpoints."""
    count = given["gradient_accumulation_steps"]
    precision = "fp16" if given["fp16"] or given["amp"] else "fp32"
    keys = _ADAM | {
        "optimiser_epsilon": 1e-8 if precision == "fp16" else 1e-6,  # of FusedAdam, of BertAdam
        "precision": precision,
        "device": "cpu" if given["no_cuda"] else "cuda",
        "gelu": "tanh",
        "batch_size": micro_batch(given["train_batch_size"], count, divides=False),
        "accumulation": count,
        "world_size": find_rank()[1],
        "eval_every": 0,
        "checkpoint_every": 0,
        "keep_checkpoints": 1,
    }
    if given["max_steps"] > 0:
        keys["steps_this_run"] = max(1, int(given["max_steps"]))
    return keys


def _warn_of_training(given: Given) -> None:
    """Warn of the differences between the program and this trainer in a training."""
    epochs = given["num_train_epochs"]
    if not given["do_train"]:
        return
    if epochs != int(epochs):
        given.warn(
            f"--num_train_epochs {epochs:g}: the program stops after {int(epochs)}, within its schedule"
        )
    if given["max_steps"] > 0:
        given.warn("--max_steps: the program makes one update more than that")
    if given["skip_checkpoint"]:
        given.warn("--skip_checkpoint: the model is saved all the same, at the end")


SQUAD = Program("nvidia/run_squad.py", {"": _SQUAD_FLAGS}, _squad)

GLUE = Program("nvidia/run_glue.py", {"": _GLUE_FLAGS}, _glue)
