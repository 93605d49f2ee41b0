"""Translate the command lines of Hugging Face's run_qa.py (SQuAD 1.1 and 2.0) to this trainer's keys."""

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import UsageError
from trainer.programs.huggingface.training_arguments import check_files, make_training_keys
from trainer.programs.translated_command import TranslatedCommand

_DATASETS = ("squad", "squad_v2")


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for fine-tuning, evaluation and predictions on SQuAD,
    as far as it asks for them.
    """
    files = (flags["train_file"], flags["validation_file"], flags["test_file"])
    name = flags["dataset_name"]
    if name is None and not any(files):
        raise UsageError("Need either a dataset name or a training/validation file/test_file.")
    dataset = name and name.rpartition("/")[2]
    if name is not None and dataset not in _DATASETS:
        raise UsageError(f"dataset_name {name}: this trainer has {' and '.join(_DATASETS)}")
    if name is None:
        check_files(flags)
    else:
        flags.warn(f"the dataset {name} is not downloaded: append -- --data-dir DIR, with its files in DIR")
    negative = flags["version_2_with_negative"] or dataset == "squad_v2"
    keys = make_training_keys(flags) | {"version_2_with_negative": negative}
    # With this flag run_qa.py pads all rows to the full length, and its softmax over an answer's positions
    # includes the padding.
    if flags["pad_to_max_length"]:
        keys |= {"rows": True, "answers_over_padding": True, "padding_learns": False}
    return TranslatedCommand(what=keys["task"], phases=[keys])
