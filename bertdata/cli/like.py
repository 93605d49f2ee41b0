"""``bertdata like PROGRAM ARGUMENTS ... [-- FLAGS]``: run another program's command line.

Each program is described by a file ``programs/VENDOR/PROGRAM.toml`` next to this module. To add a program,
add such a file. No code is needed.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertdata.cli.common.parser import Parser, add_engine, add_overwrite
from bertdata.cli.common.print_config_flag import PRINT_CONFIG, remove_print_config_flag
from bertdata.cli.common.programs.choice import LikeCommandLine, list_programs, split_like_line
from bertdata.cli.common.programs.flag import SWITCH, Flag
from bertdata.cli.common.programs.like_command import LikeCommand
from bertdata.cli.common.script_examples import (
    FileNames,
    ScriptSettings,
    clip_probability,
    make_files,
    print_warnings,
)
from bertdata.errors import UsageError
from bertdata.io.terminal import say_text

_TEXT, _SWITCH = {"type": "string"}, {"type": "boolean"}
_WHOLE, _SHARE = {"type": "integer"}, {"type": "number"}

KEYS: dict[str, dict[str, str]] = {
    "input_file": {**_TEXT, "description": "text files or patterns, separated by commas"},
    "output_file": {**_TEXT, "description": "TFRecord files to write, separated by commas"},
    "vocab_file": {**_TEXT, "description": "WordPiece vocabulary, a file or a name"},
    "max_seq_length": {**_WHOLE, "description": "token ids in an example"},
    "max_predictions_per_seq": {**_WHOLE, "description": "most masked positions in an example"},
    "masked_lm_prob": {**_SHARE, "description": "share of an example's token ids to mask"},
    "random_seed": {**_WHOLE, "description": "seed of all random draws"},
    "dupe_factor": {**_WHOLE, "description": "passes over the text; each draws new masks"},
    "short_seq_prob": {
        **_SHARE,
        "description": "share of documents cut into shorter examples of random length",
    },
    "lower_case": {**_SWITCH, "description": "lower-case the text"},
    "whole_word_mask": {**_SWITCH, "description": "mask whole words"},
    "dialect": {**_TEXT, "description": "program whose details of tokenizing and masking to follow"},
    "remask": {**_SWITCH, "description": "put the masked tokens of an example before all others"},
    "pad_position_value": {**_WHOLE, "description": "with remask, position to write into empty slots"},
}
"""JSON Schema of each setting that the flags of a program can set.

The settings are named as in ``bertdata create-pretraining-data``.
"""

_FILES = ("input_file", "output_file", "vocab_file")
_OPTIONAL = ("whole_word_mask", "remask", "pad_position_value")
"""Settings that need no value. All other settings need a value from the program's file or from a flag."""

DOOR = LikeCommand(
    command="bertdata like",
    ours="bertdata",
    folder=Path(__file__).parent / "programs",
    keys=lambda: KEYS,
    printing="prints the settings instead of writing examples",
    elsewhere="programs that train: python -m trainer like",
)

SUMMARY = f"""\
Runs the command line of another program, as its authors publish it, with the same meaning. Flags of
bertdata may follow after --. {PRINT_CONFIG} prints the settings and does nothing else.
Programs (bertdata like PROGRAM --help lists a program's flags):
"""


def make_parser() -> Parser:
    """Return the parser whose help lists the known programs."""
    known = list_programs(DOOR)
    width = max(map(len, known)) + 2
    listed = "\n".join(f"  {name:<{width}}{program.purpose}" for name, program in known.items())
    parser = Parser(DOOR.command, next(iter(known.values())).example, SUMMARY + listed)
    parser.add_argument(
        "program",
        metavar="PROGRAM[@VERSION]",
        help="program whose command line to run, such as graphcore/create_pretraining_data.py",
    )
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="the program's arguments, then -- and flags of bertdata",
    )
    return parser


def run(arguments: list[str]) -> int:
    """Run the command line of the other program.

    With --print-config, only print the settings that the command line stands for.
    """
    words, _ = remove_print_config_flag(arguments)
    if not words or words[0].startswith("-"):
        make_parser().parse_args(words[:1])
    line = split_like_line(DOOR, arguments)
    flags = _read_our_flags(line)
    keys = _join_file_words(line)
    names, settings = _find_file_names(line, keys), make_script_settings(keys)
    if line.printing:
        found = {"program": line.typed, "create": describe_settings(keys)}
        say_text(json.dumps(found, indent=1) + "\n")
        return 0
    print_warnings(line.given.warnings)
    make_files(names, settings, flags.engine, overwrite=flags.overwrite)
    return 0


def _join_file_words(line: LikeCommandLine) -> dict[str, Any]:
    """Return the settings. File names that were given as several words are joined by commas.

    The original program would refuse such a command line, so a warning says that it was accepted.
    """
    keys = line.given.keys()
    for name in _FILES:
        if isinstance(keys.get(name), list):
            keys[name] = ",".join(keys[name])
            line.given.warn(f"{name}: several words, taken as {keys[name]}; the program refuses them")
    return keys


def make_script_settings(keys: Mapping[str, Any]) -> ScriptSettings:
    """Return the settings of the examples. Raises SettingsError for values that allow no examples."""
    values = {name: value for name, value in keys.items() if name not in _FILES}
    if "pad_position_value" in values:
        values["pad_position"] = values.pop("pad_position_value")
    if "max_predictions_per_seq" in values:
        values["max_predictions_per_seq"] = max(values["max_predictions_per_seq"], 0)
    for name in values.keys() & {"masked_lm_prob", "short_seq_prob"}:
        values[name] = clip_probability(values[name])
    return ScriptSettings(**values)


def describe_settings(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for --print-config, named as in ``create-pretraining-data`` and in recipes."""
    settings = make_script_settings(keys)
    found = {name: keys[name] for name in _FILES} | {
        "max_seq_length": settings.max_seq_length,
        "max_predictions_per_seq": settings.max_predictions_per_seq,
        "masked_lm_prob": settings.masked_lm_prob,
        "random_seed": settings.random_seed,
        "dupe_factor": settings.dupe_factor,
        "short_seq_prob": settings.short_seq_prob,
        "lower_case": settings.lower_case,
        "format": "tfrecord",
        "dialect": settings.dialect,
        "remask": settings.remask,
        "pad_position_value": settings.pad_position,
        "max_samples": "all",
    }
    return found | ({"whole_word_mask": settings.whole_word_mask} if "whole_word_mask" in keys else {})


def _read_our_flags(line: LikeCommandLine) -> argparse.Namespace:
    """Parse the flags of bertdata that follow after ``--``."""
    name = line.program.name
    parser = Parser(
        f"{DOOR.command} {name} ... --", line.program.example, "Flags of bertdata behind another program's."
    )
    add_overwrite(parser)
    add_engine(parser)
    return parser.parse_args(line.ours)


def _find_file_names(line: LikeCommandLine, keys: Mapping[str, Any]) -> FileNames:
    """Return the input, output and vocabulary files.

    Raises UsageError for a required setting without a value.
    """
    flags = {flag.key: flag for flag in line.given.table if flag.key}
    for name in KEYS:
        if keys.get(name) in (None, "") and name not in _OPTIONAL:
            remedy = (
                f"give {flags[name].spellings[-1]}" if name in flags else "state it in [keys] of its file"
            )
            raise UsageError(f"{line.program.name}: {name} has no value; {remedy}")
    return FileNames(
        keys["input_file"],
        keys["output_file"],
        keys["vocab_file"],
        flags=(_find_spelling(flags, "input_file"), _find_spelling(flags, "output_file")),
        casing_remedies=_make_casing_remedies(flags.get("lower_case")),
    )


def _find_spelling(flags: Mapping[str, Flag], key: str) -> str:
    """Return the spelling of the program's flag that sets a key. If no flag sets it, return the key."""
    return flags[key].spellings[-1] if key in flags else key


def _make_casing_remedies(flag: Flag | None) -> tuple[str, str]:
    """Return advice for warnings about letter case.

    The first text is for a vocabulary with capitals, the second for a lower-case vocabulary.
    """
    if flag is None:
        return "choose a vocabulary in lower case", "choose a cased vocabulary"
    name = flag.spellings[-1]
    if flag.kind == SWITCH:
        return f"leave out {name}", f"give {name}"
    return f"give {name}=false", f"give {name}=true"
