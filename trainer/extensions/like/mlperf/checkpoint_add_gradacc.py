"""MLPerf's checkpoint_add_gradacc.py: slots that its own accumulation of gradients needs."""

from bertdata.cli.common.program_flags import ABSL_APP, Flag, Given
from trainer.extensions.like.program import Meaning, Program
from trainer.extensions.like.tensorflow import require_flags

_TABLE = [
    Flag("--old", meaning="prefix of a checkpoint of TensorFlow 1"),
    Flag("--new", meaning="prefix of the checkpoint to write"),
]

_ADDED = "a zero variable NAME/GradientAccumulator beside every variable (moments and counters too)"


def resolve(given: Given) -> Meaning:
    """The conversion; the program's defaults are files of its authors, which nobody else has."""
    require_flags(given, "old", "new")
    return Meaning(
        summary=f"{given['old']} with slots for accumulated gradients",
        convert={
            "source": given["old"],
            "target": given["new"],
            "to": "tf1",
            "added": _ADDED,
            "needed_by_the_project": False,
        },
        warnings=["this trainer accumulates gradients without such slots, and reads the checkpoint as it is"],
    )


PROGRAM = Program(
    name="mlperf/checkpoint_add_gradacc.py",
    title="MLPerf checkpoint_add_gradacc.py",
    source="mlcommons/training 9947bdf2, language_model/tensorflow/bert/checkpoint_add_gradacc.py",
    commands={"": _TABLE},
    resolve=resolve,
    syntax=ABSL_APP,
    published=("--old=tf1/model.ckpt-28252 --new=converted/model.ckpt-28252",),
)
