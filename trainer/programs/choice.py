"""The programs that ``python -m trainer like`` knows, each described by a TOML file.

The file VENDOR/PROGRAM.toml lists the program's flags and the configuration keys that they set. Keys that
must be computed come from the function ``resolve`` of the Python module next to it, listed in FUNCTIONS.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bertdata.cli.common.programs import choice
from bertdata.cli.common.programs.command_line import Given
from bertdata.cli.common.programs.like_command import LikeCommand
from bertdata.cli.common.programs.program import Program
from trainer.config.settings import get_device_key_schemas, get_key_schemas
from trainer.programs.google import run_classifier as google_classifier
from trainer.programs.google import run_squad as google_squad
from trainer.programs.graphcore import run_pretraining as graphcore_pretraining
from trainer.programs.graphcore import run_squad as graphcore_squad
from trainer.programs.habana import demo_bert as habana_demo
from trainer.programs.habana import run_pretraining as habana_pretraining
from trainer.programs.habana_tf import demo_bert as habana_tf_demo
from trainer.programs.habana_tf import run_pretraining as habana_tf_pretraining
from trainer.programs.huggingface import run_glue as huggingface_glue
from trainer.programs.huggingface import run_qa as huggingface_qa
from trainer.programs.meaning import Meaning, make_plain_meaning
from trainer.programs.mlperf import checkpoint_add_gradacc, tf2_encoder_checkpoint_converter
from trainer.programs.mlperf import run_pretraining as mlperf_pretraining
from trainer.programs.nvidia import run_glue as nvidia_glue
from trainer.programs.nvidia import run_pretraining as nvidia_pretraining
from trainer.programs.nvidia import run_squad as nvidia_squad
from trainer.programs.nvidia_tf import run_pretraining as nvidia_tf_pretraining
from trainer.programs.rannc import run_pretraining_rannc

FUNCTIONS: Mapping[str, Callable[[Given], Meaning]] = {
    "google/run_classifier.py": google_classifier.resolve,
    "google/run_squad.py": google_squad.resolve,
    "graphcore/run_pretraining.py": graphcore_pretraining.resolve,
    "graphcore/run_squad.py": graphcore_squad.resolve,
    "habana-tf/demo_bert.py": habana_tf_demo.resolve,
    "habana-tf/run_pretraining.py": habana_tf_pretraining.resolve,
    "habana/demo_bert.py": habana_demo.resolve,
    "habana/run_pretraining.py": habana_pretraining.resolve,
    "huggingface/run_glue.py": huggingface_glue.resolve,
    "huggingface/run_qa.py": huggingface_qa.resolve,
    "mlperf/checkpoint_add_gradacc.py": checkpoint_add_gradacc.resolve,
    "mlperf/run_pretraining.py": mlperf_pretraining.resolve,
    "mlperf/tf2_encoder_checkpoint_converter.py": tf2_encoder_checkpoint_converter.resolve,
    "nvidia-tf/run_pretraining.py": nvidia_tf_pretraining.resolve,
    "nvidia/run_glue.py": nvidia_glue.resolve,
    "nvidia/run_pretraining.py": nvidia_pretraining.resolve,
    "nvidia/run_squad.py": nvidia_squad.resolve,
    "rannc/run_pretraining_rannc.sh": run_pretraining_rannc.resolve,
}
"""The function that translates a parsed command line, for each program whose TOML file does not suffice."""


@cache
def get_all_key_schemas() -> Mapping[str, Mapping[str, Any]]:
    """Return the JSON Schema of each configuration key, including keys for single devices."""
    return {**get_device_key_schemas(), **get_key_schemas()}


DOOR = LikeCommand(
    command="python -m trainer like",
    ours="python -m trainer",
    folder=Path(__file__).parent,
    keys=get_all_key_schemas,
    printing="prints the configuration instead of training",
    rewritings={
        "habana-tf/demo_bert.py": habana_tf_demo.rewrite_arguments,
        "rannc/run_pretraining_rannc.sh": run_pretraining_rannc.rewrite_arguments,
    },
)


def find_meaning(program: Program, given: Given) -> Meaning:
    """Translate a parsed command line of this program to this trainer's configuration."""
    resolve = FUNCTIONS.get(program.name) if program.is_shipped else None
    return make_plain_meaning(program, given) if resolve is None else resolve(given)


def load_programs() -> Mapping[str, Program]:
    """Return all known programs by name."""
    return choice.list_programs(DOOR)


def find_program(name: str) -> Program:
    """Return the program of this name, or the program that a TOML file at this path describes.

    UsageError for an unknown name suggests the nearest known program.
    """
    return choice.find_program(DOOR, name)


def find_programs_with(name: str) -> list[str]:
    """Return the names of the programs that have a flag or key of this name."""
    return choice.list_programs_with_flag(DOOR, name)
