"""Translate the command lines of NVIDIA's run_squad.py for PyTorch to this trainer's configuration."""

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from trainer.programs.nvidia.fine_tuning import make_tuning_keys, warn_of_training
from trainer.programs.nvidia.run_pretraining import ONE_GPU
from trainer.programs.requirements import describe_work, require_any_switch, require_files
from trainer.programs.translated_command import TranslatedCommand


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for training, predictions and evaluation on SQuAD, as
    far as it asks for them.
    """
    require_any_switch(flags, "do_train", "do_predict")
    require_files(flags, {"do_train": "train_file", "do_predict": "predict_file"})
    path = flags["predict_file"]
    evaluates = flags["do_eval"] and flags["do_predict"]
    keys = make_tuning_keys(flags)
    keys |= {
        "do_eval": evaluates,
        "log_every": max(1, flags["log_freq"] // flags["gradient_accumulation_steps"]),
    }
    if flags["do_predict"]:
        keys["task_predict_file"] = path
    if evaluates:
        keys["task_eval_file"] = path
    warn_of_training(flags)
    if flags["do_eval"] and not evaluates:
        flags.warn("--do_eval acts only with --do_predict: nothing is evaluated, as there")
    if keys["world_size"] == 1 and not flags["no_cuda"]:
        flags.warn(ONE_GPU)
    return TranslatedCommand(what=f"squad ({describe_work(flags)})", phases=[keys])
