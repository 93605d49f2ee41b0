"""Translate the command lines of NVIDIA's run_glue.py for PyTorch to this trainer's configuration."""

from bertdata.cli.common.programs.command_line import Given
from bertdata.errors import UsageError
from bertdata.io import storage
from trainer.programs.meaning import Meaning
from trainer.programs.nvidia.fine_tuning import make_tuning_keys, warn_of_training
from trainer.programs.requirements import list_work, require_work


def resolve(given: Given) -> Meaning:
    """Return the training, evaluation and prediction that the command line describes."""
    require_work(given, "do_train", "do_eval", "do_predict")
    count, update = given["gradient_accumulation_steps"], given["train_batch_size"]
    if count > update:
        raise UsageError(
            f"gradient_accumulation_steps ({count}) cannot be larger train_batch_size ({update}) - "
            "there cannot be a fraction of one sample."
        )
    folder, task = given["data_dir"], given["task_name"]
    file = storage.join(folder, "dev_matched.tsv" if task == "mnli" else "dev.tsv")
    keys = make_tuning_keys(given)
    keys |= {
        "task_train_file": storage.join(folder, "train.tsv"),
        "task_eval_file": file,
        "task_predict_file": file,
        "clipping": "none" if keys["precision"] == "fp16" else "per_update",
    }
    warn_of_training(given)
    if task == "cola" and given["do_predict"]:
        # CoLA's dev.tsv has other columns than a file to predict.
        keys |= {"do_predict": False, "do_eval": True}
        given.warn("--do_predict: the predictions are those of the evaluation, predictions.tsv")
    if keys["clipping"] != "none" and given["do_train"]:
        given.warn("the gradient is clipped as a whole; the program clips that of each tensor")
    return Meaning(what=f"{task} ({list_work(given)})", phases=[keys])
