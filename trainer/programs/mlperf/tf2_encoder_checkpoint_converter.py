"""Translate the command lines of tf2_encoder_checkpoint_converter.py of TensorFlow's model garden."""

from bertdata.cli.common.programs.command_line import Given
from trainer.programs.meaning import Meaning
from trainer.programs.requirements import require_flags


def resolve(given: Given) -> Meaning:
    """Return the conversion, which keeps no moments."""
    require_flags(given, "bert_config_file", "checkpoint_to_convert", "converted_checkpoint_path")
    return Meaning(
        what=f"{given['checkpoint_to_convert']} as a checkpoint of TensorFlow 2, weights only",
        convert={
            "source": given["checkpoint_to_convert"],
            "target": given["converted_checkpoint_path"],
            "prefix": True,
            "to": "tf2",
            "model_config": given["bert_config_file"],
            "moments": False,
        },
    )
