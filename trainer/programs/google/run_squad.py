"""Translate the command lines of Google's run_squad.py to this trainer's configuration."""

from bertdata.cli.common.programs.command_line import Given
from bertdata.errors import UsageError
from trainer.programs.google.fine_tuning import make_fine_tuning_keys
from trainer.programs.meaning import Meaning
from trainer.programs.requirements import require_files, require_flags, require_work


def resolve(given: Given) -> Meaning:
    """Return the fine-tuning and predictions that the command line describes."""
    require_flags(given, "vocab_file", "bert_config_file", "output_dir")
    require_work(given, "do_train", "do_predict")
    require_files(given, {"do_train": "train_file", "do_predict": "predict_file"})
    length, query = given["max_seq_length"], given["max_query_length"]
    if length <= query + 3:
        raise UsageError(f"The max_seq_length ({length}) must be greater than max_query_length ({query}) + 3")
    keys = make_fine_tuning_keys(given, "predict_batch_size")
    if given["do_train"]:
        given.warn(
            "the program counts the questions of its epochs, this trainer the features: some more updates"
        )
    if given["do_predict"]:
        given.warn("predictions are written to predict/ in output_dir")
    return Meaning(what="squad", phases=[keys])
