"""Translate the command lines of NVIDIA's run_squad.py for PyTorch to this trainer's configuration."""

from bertdata.cli.common.programs.command_line import Given
from trainer.programs.meaning import Meaning
from trainer.programs.nvidia.fine_tuning import make_tuning_keys, warn_of_training
from trainer.programs.nvidia.run_pretraining import ONE_GPU
from trainer.programs.requirements import list_work, require_files, require_work


def resolve(given: Given) -> Meaning:
    """Return the training, prediction and evaluation that the command line describes."""
    require_work(given, "do_train", "do_predict")
    require_files(given, {"do_train": "train_file", "do_predict": "predict_file"})
    path = given["predict_file"]
    evaluates = given["do_eval"] and given["do_predict"]
    keys = make_tuning_keys(given)
    keys |= {
        "do_eval": evaluates,
        "log_every": max(1, given["log_freq"] // given["gradient_accumulation_steps"]),
    }
    if given["do_predict"]:
        keys["task_predict_file"] = path
    if evaluates:
        keys["task_eval_file"] = path
    warn_of_training(given)
    if given["do_eval"] and not evaluates:
        given.warn("--do_eval acts only with --do_predict: nothing is evaluated, as there")
    if keys["world_size"] == 1 and not given["no_cuda"]:
        given.warn(ONE_GPU)
    return Meaning(what=f"squad ({list_work(given)})", phases=[keys])
