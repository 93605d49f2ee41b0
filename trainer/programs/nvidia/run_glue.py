"""Translate the command lines of NVIDIA's run_glue.py for PyTorch to this trainer's configuration."""

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.nvidia.fine_tuning import make_tuning_keys, warn_of_training
from trainer.programs.requirements import describe_work, require_any_switch
from trainer.programs.translated_command import TranslatedCommand


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for training, evaluation and predictions, as far as it
    asks for them.
    """
    require_any_switch(flags, "do_train", "do_eval", "do_predict")
    count, update = flags["gradient_accumulation_steps"], flags["train_batch_size"]
    if count > update:
        raise UsageError(
            f"gradient_accumulation_steps ({count}) cannot be larger train_batch_size ({update}) - "
            "there cannot be a fraction of one sample."
        )
    folder, task = flags["data_dir"], flags["task_name"]
    file = storage.join(folder, "dev_matched.tsv" if task == "mnli" else "dev.tsv")
    keys = make_tuning_keys(flags)
    keys |= {
        "task_train_file": storage.join(folder, "train.tsv"),
        "task_eval_file": file,
        "task_predict_file": file,
        "clipping": "none" if keys["precision"] == "fp16" else "per_update",
    }
    warn_of_training(flags)
    if task == "cola" and flags["do_predict"]:
        # CoLA's dev.tsv has other columns than a file to predict, so let the evaluation write the
        # predictions.
        keys |= {"do_predict": False, "do_eval": True}
        flags.warn("--do_predict: the predictions are those of the evaluation, predictions.tsv")
    if keys["clipping"] != "none" and flags["do_train"]:
        flags.warn("the gradient is clipped as a whole; the program clips that of each tensor")
    return TranslatedCommand(what=f"{task} ({describe_work(flags)})", phases=[keys])
