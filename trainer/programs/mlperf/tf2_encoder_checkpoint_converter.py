"""Translate the command lines of tf2_encoder_checkpoint_converter.py from TensorFlow's model garden."""

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from trainer.programs.requirements import require_flags
from trainer.programs.translated_command import TranslatedCommand


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for a conversion of a checkpoint, without the
    optimiser's moments.
    """
    require_flags(flags, "bert_config_file", "checkpoint_to_convert", "converted_checkpoint_path")
    return TranslatedCommand(
        what=f"{flags['checkpoint_to_convert']} as a checkpoint of TensorFlow 2, weights only",
        convert={
            "source": flags["checkpoint_to_convert"],
            "target": flags["converted_checkpoint_path"],
            "prefix": True,
            "to": "tf2",
            "model_config": flags["bert_config_file"],
            "moments": False,
        },
    )
