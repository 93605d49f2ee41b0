"""Translate the command lines of Habana's demo_bert.py for TensorFlow, and of the shell script that came
before it.
"""

from collections.abc import Sequence
from dataclasses import replace

from bertdata.cli.common.programs.command_line import ParsedCommandLine
from trainer.programs.habana_tf.finetuning import translate_finetuning
from trainer.programs.habana_tf.pretraining import translate_pretraining
from trainer.programs.translated_command import TranslatedCommand

_COMMANDS = {"pretraining": translate_pretraining, "finetuning": translate_finetuning}

_SHELL_VERSION = "0.13"
_WITH_VALUE = ("-d", "--dtype", "-m", "--model", "-o", "--output-dir")
_HOROVOD = ("-v", "--use_horovod")


def translate(flags: ParsedCommandLine) -> TranslatedCommand:
    """Translate a command line into the configuration for pre-training or fine-tuning."""
    if flags.version == _SHELL_VERSION:
        named = {"command": flags.command, "data_type": flags["dtype"], "model_variant": flags["model"]}
        flags = replace(flags, values=flags.values | named)
    return _COMMANDS[flags["command"]](flags)


def rewrite_arguments(arguments: Sequence[str], version: str) -> tuple[list[str], str]:
    """Return the words of the command line in the order that demo_bert.py expects, and the version of the
    program.

    The words may also be written for the shell script. Then the version is the shell script's.
    """
    words = list(arguments)
    if version != _SHELL_VERSION and (version or not _is_for_shell_script(words)):
        return words, version
    return _put_subcommand_first(words), _SHELL_VERSION


def _is_for_shell_script(words: Sequence[str]) -> bool:
    """Return True if the words are written for the shell script: a sub-command without the flag -c or
    --command.
    """
    names_it = any(word.startswith(("-c", "--co")) for word in words)
    return not names_it and any(word in _COMMANDS for word in words)


def _put_subcommand_first(words: Sequence[str]) -> list[str]:
    """Return the words with the sub-command first, followed by the flags. The flag -v may have no value."""
    flags, rest = list[str](), list[str]()
    place = 0
    while place < len(words):
        word = words[place]
        following = words[place + 1 : place + 2]
        if word in _HOROVOD:
            has_number = bool(following) and following[0].lstrip("-").isdecimal()
            flags += [word, *following[:has_number]]
            place += 1 + has_number
        elif word in _WITH_VALUE:
            flags += [word, *following]
            place += 2
        else:
            rest.append(word)
            place += 1
    return [rest[0], *flags, *rest[1:]] if rest else []
