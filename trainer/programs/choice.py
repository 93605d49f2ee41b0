"""The programs whose command lines ``python -m trainer like`` understands.

The file VENDOR/PROGRAM.toml lists a program's flags and the configuration keys that they set. Keys that must
be computed come from the function ``translate`` of the Python module next to that file. TRANSLATORS lists
these functions.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bertdata.cli.common.programs import choice
from bertdata.cli.common.programs.command_line import ParsedCommandLine
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
from trainer.programs.mlperf import checkpoint_add_gradacc, tf2_encoder_checkpoint_converter
from trainer.programs.mlperf import run_pretraining as mlperf_pretraining
from trainer.programs.nvidia import run_glue as nvidia_glue
from trainer.programs.nvidia import run_pretraining as nvidia_pretraining
from trainer.programs.nvidia import run_squad as nvidia_squad
from trainer.programs.nvidia_tf import run_pretraining as nvidia_tf_pretraining
from trainer.programs.rannc import run_pretraining_rannc
from trainer.programs.translated_command import TranslatedCommand, translate_by_toml

TRANSLATORS: Mapping[str, Callable[[ParsedCommandLine], TranslatedCommand]] = {
    "google/run_classifier.py": google_classifier.translate,
    "google/run_squad.py": google_squad.translate,
    "graphcore/run_pretraining.py": graphcore_pretraining.translate,
    "graphcore/run_squad.py": graphcore_squad.translate,
    "habana-tf/demo_bert.py": habana_tf_demo.translate,
    "habana-tf/run_pretraining.py": habana_tf_pretraining.translate,
    "habana/demo_bert.py": habana_demo.translate,
    "habana/run_pretraining.py": habana_pretraining.translate,
    "huggingface/run_glue.py": huggingface_glue.translate,
    "huggingface/run_qa.py": huggingface_qa.translate,
    "mlperf/checkpoint_add_gradacc.py": checkpoint_add_gradacc.translate,
    "mlperf/run_pretraining.py": mlperf_pretraining.translate,
    "mlperf/tf2_encoder_checkpoint_converter.py": tf2_encoder_checkpoint_converter.translate,
    "nvidia-tf/run_pretraining.py": nvidia_tf_pretraining.translate,
    "nvidia/run_glue.py": nvidia_glue.translate,
    "nvidia/run_pretraining.py": nvidia_pretraining.translate,
    "nvidia/run_squad.py": nvidia_squad.translate,
    "rannc/run_pretraining_rannc.sh": run_pretraining_rannc.translate,
}
"""For each program whose TOML file does not suffice, the function that translates its command line."""


@cache
def get_all_key_schemas() -> Mapping[str, Mapping[str, Any]]:
    """Return the JSON Schema of each configuration key, including the keys that only one device has."""
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


def translate_command_line(program: Program, flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a program's command line to this trainer's configuration.

    The program's function does this. A program without a function is translated by its TOML file.
    """
    resolve = TRANSLATORS.get(program.name) if program.is_shipped else None
    return translate_by_toml(program, flags) if resolve is None else resolve(flags)


def load_programs() -> Mapping[str, Program]:
    """Return all known programs, by name."""
    return choice.list_programs(DOOR)


def find_program(name: str) -> Program:
    """Return the program with this name, or the program that a TOML file at this path describes.

    Raises UsageError for an unknown name, and suggests the known program with the nearest name.
    """
    return choice.find_program(DOOR, name)


def find_programs_with(name: str) -> list[str]:
    """Return the names of the programs that have a flag or a configuration key of this name."""
    return choice.list_programs_with_flag(DOOR, name)
