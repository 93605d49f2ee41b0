"""Converters of checkpoints that MLPerf's README names.

checkpoint_add_gradacc.py adds the slots that MLPerf's own accumulation of gradients needs;
tf2_encoder_checkpoint_converter.py is the model garden's.
"""

from bertdata.cli.common.program_flags import ABSL_APP, Flag, Given
from trainer.programs.program import Meaning, Program, require_flags

_ENCODER_FLAGS = [
    Flag("--bert_config_file", meaning="bert_config.json, the shape of the model"),
    Flag("--checkpoint_to_convert", meaning="prefix of a checkpoint of TensorFlow 1"),
    Flag("--converted_checkpoint_path", meaning="checkpoint of TensorFlow 2 to write: here a new directory"),
    Flag("--checkpoint_model_name", default="encoder", idle=True,
         meaning="the graph's names are those of the model garden"),
    Flag("--converted_model", default="encoder", values=("encoder", "pretrainer"), idle=True,
         meaning="heads that the source has are kept"),
]  # fmt: skip
_SLOT_FLAGS = [
    Flag("--old", meaning="prefix of a checkpoint of TensorFlow 1"),
    Flag("--new", meaning="prefix of the checkpoint to write"),
]

_ADDED = "a zero variable NAME/GradientAccumulator beside every variable (moments and counters too)"


def _encoder(given: Given) -> Meaning:
    """The conversion, which keeps no moments."""
    require_flags(given, "bert_config_file", "checkpoint_to_convert", "converted_checkpoint_path")
    target = given["converted_checkpoint_path"]
    given.warn(
        f"the program takes {target} for the beginning of its files' names; here it is their directory"
    )
    return Meaning(
        what=f"{given['checkpoint_to_convert']} as a checkpoint of TensorFlow 2, weights only",
        convert={
            "source": given["checkpoint_to_convert"],
            "target": target,
            "to": "tf2",
            "model_config": given["bert_config_file"],
            "moments": False,
        },
    )


def _slots(given: Given) -> Meaning:
    """The conversion. The program's defaults are files that only its authors have."""
    require_flags(given, "old", "new")
    given.warn("this trainer accumulates gradients without such slots, and reads the checkpoint as it is")
    return Meaning(
        what=f"{given['old']} with slots for accumulated gradients",
        convert={
            "source": given["old"],
            "target": given["new"],
            "to": "tf1",
            "added": _ADDED,
            "needed_by_the_project": False,
        },
    )


ENCODER_CONVERTER = Program(
    "mlperf/tf2_encoder_checkpoint_converter.py", {"": _ENCODER_FLAGS}, _encoder, syntax=ABSL_APP
)

SLOT_CONVERTER = Program("mlperf/checkpoint_add_gradacc.py", {"": _SLOT_FLAGS}, _slots, syntax=ABSL_APP)
