"""Translate the command lines of Google's run_squad.py to this trainer's configuration."""

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from trainer.programs.google.fine_tuning import make_fine_tuning_keys
from trainer.programs.requirements import require_any_switch, require_files, require_flags
from trainer.programs.translated_command import TranslatedCommand


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for fine-tuning and predictions on SQuAD, as far as it
    asks for them.
    """
    require_flags(flags, "vocab_file", "bert_config_file", "output_dir")
    require_any_switch(flags, "do_train", "do_predict")
    require_files(flags, {"do_train": "train_file", "do_predict": "predict_file"})
    length, query = flags["max_seq_length"], flags["max_query_length"]
    if length <= query + 3:
        raise UsageError(f"The max_seq_length ({length}) must be greater than max_query_length ({query}) + 3")
    keys = make_fine_tuning_keys(flags, "predict_batch_size")
    if flags["do_train"]:
        flags.warn(
            "the program counts the questions of its epochs, this trainer the features: some more updates"
        )
    if flags["do_predict"]:
        flags.warn("predictions are written to predict/ in output_dir")
    return TranslatedCommand(what="squad", phases=[keys])
