"""The model garden's tf2_encoder_checkpoint_converter.py, which MLPerf's README names."""

from bertdata.cli.common.program_flags import ABSL_APP, Flag, Given
from trainer.extensions.like.program import Meaning, Program
from trainer.extensions.like.tensorflow import require_flags

_TABLE = [
    Flag("--bert_config_file", meaning="bert_config.json, the shape of the model"),
    Flag("--checkpoint_to_convert", meaning="prefix of a checkpoint of TensorFlow 1"),
    Flag("--converted_checkpoint_path", meaning="checkpoint of TensorFlow 2 to write: here a new directory"),
    Flag("--checkpoint_model_name", default="encoder", idle=True,
         meaning="the graph's names are those of the model garden"),
    Flag("--converted_model", default="encoder", values=("encoder", "pretrainer"), idle=True,
         meaning="heads that the source has are kept"),
]  # fmt: skip


def resolve(given: Given) -> Meaning:
    """The conversion, which keeps no moments."""
    require_flags(given, "bert_config_file", "checkpoint_to_convert", "converted_checkpoint_path")
    target = given["converted_checkpoint_path"]
    return Meaning(
        summary=f"{given['checkpoint_to_convert']} as a checkpoint of TensorFlow 2, weights only",
        convert={
            "source": given["checkpoint_to_convert"],
            "target": target,
            "to": "tf2",
            "model_config": given["bert_config_file"],
            "moments": False,
        },
        warnings=[
            f"the program takes {target} for the beginning of its files' names; here it is their directory"
        ],
    )


PROGRAM = Program(
    name="mlperf/tf2_encoder_checkpoint_converter.py",
    title="tf2_encoder_checkpoint_converter.py",
    source="tensorflow/models, official/nlp/bert/tf2_encoder_checkpoint_converter.py",
    commands={"": _TABLE},
    resolve=resolve,
    syntax=ABSL_APP,
    published=(
        "--bert_config_file=bert_config.json --checkpoint_to_convert=tf1/model.ckpt-28252 "
        "--converted_checkpoint_path=tf2/model.ckpt-28252",
    ),
)
