"""A command that makes a step again, and the places of the files that it reads and writes."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.lineages.step import TRAIN_VOCAB, Input, LineageFile, Step


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A command that makes a step again.

    words: the program and its arguments, such as ("bertdata", "segment", ...).
    environment: variables that the command needs, by name.
    step: the step that the command belongs to.
    output: file or directory that the command writes.
    done: path of a file that exists only when the command is finished, so that it need not run again. Empty
        if the command itself finds out what is missing.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    step: Step
    output: str
    done: str = ""

    def list_words(self, made: int = 0) -> tuple[str, ...]:
        """Return the words of the command line.

        made: for a training command, the updates of its phase that an interrupted rebuild has made already.
        """
        return self.words

    def format_line(self, made: int = 0) -> str:
        """Return the command as a line for a shell. The argument is that of ``list_words``."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*variables, shlex.join(self.list_words(made))])

    def __str__(self) -> str:
        return self.format_line()


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingCommand(Command):
    """A command that trains a phase of a run, or a part of a phase.

    first: number of updates of the phase that earlier commands make.
    last: number of updates of the phase after which the command ends.
    steps: number of updates that the phase was configured to have.
    """

    first: int
    last: int
    steps: int

    def list_words(self, made: int = 0) -> tuple[str, ...]:
        """Return the words of the command line. A command that goes on gets the flag --resume."""
        words = list(self.words)
        begun = max(self.first, made)
        if self.last < self.steps:
            words += ["--steps-this-run", str(self.last - begun)]
        if begun:
            words.append("--resume")
        return tuple(words)


class Places:
    """The paths of sources and rebuilt files.

    outputs: file or directory that each step writes when it is made again, by the step's record.
    sources: path of each source file.
    kept: path of each vocabulary that is not trained again, by the record of its training.
    folders: directory with the files of an input that must lie together, by the record of the step that reads
        them and their role.
    """

    def __init__(
        self,
        outputs: Mapping[str, str],
        sources: Mapping[LineageFile, str],
        kept: Mapping[str, str],
        folders: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        self.outputs, self.sources, self.kept = outputs, sources, kept
        self.folders = folders or {}

    def get_output(self, step: Step) -> str:
        """Return the file or directory that a step writes when it is made again."""
        return self.outputs[step.record]

    def list_files(self, given: Input) -> list[str]:
        """Return the path of each file of an input: of a source, or of what an earlier step has rebuilt."""
        return [self.find_file(given, file) for file in given.files]

    def find_file(self, given: Input, file: LineageFile) -> str:
        """Return the path of a file of an input."""
        if given.made_by is None:
            return self.sources[file]
        if given.made_by.record in self.kept:
            return self.kept[given.made_by.record]
        output = self.get_output(given.made_by)
        return output if given.made_by.name == TRAIN_VOCAB else storage.join(output, file.name)


def find_input(step: Step, *roles: str) -> Input | None:
    """Return the step's input with one of these roles, or None if it has none."""
    return next((one for one in step.inputs if one.role in roles), None)


def expect_input(step: Step, *roles: str) -> Input:
    """Return the step's input with one of these roles.

    Raises ManifestError if the step has no such input.
    """
    found = find_input(step, *roles)
    if found is None:
        raise ManifestError(f"{step.program}, record {step.record}: names no {' or '.join(roles)}")
    return found


def expect_setting(step: Step, name: str) -> Any:
    """Return a setting of a step.

    Raises ManifestError if the step's record lacks it.
    """
    if name not in step.settings:
        raise ManifestError(f"{step.program}, record {step.record}: lacks the setting {name}")
    return step.settings[name]


def make_flag(name: str) -> str:
    """Return the flag of a setting: ``max_seq_length`` gives ``--max-seq-length``."""
    return f"--{name.replace('_', '-')}"


def make_flags(values: Mapping[str, object], defaults: Mapping[str, object] | None = None) -> list[str]:
    """Return the flags of settings with their values. A setting that has its default gets no flag.

    values: the value of each setting. None and False give no flag, and True gives the flag alone.
    defaults: the default of each setting.
    """
    words: list[str] = []
    for name, value in values.items():
        if value is None or value is False or (defaults is not None and defaults.get(name) == value):
            continue
        words += [make_flag(name)] if value is True else make_option(make_flag(name), value)
    return words


def make_option(flag: str, value: object) -> list[str]:
    """Return the words of a flag with its value. They are one word if the value looks like a flag itself.

    value: text, a number, or a list of texts, which are joined by commas.
    """
    text = str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        text = ",".join(map(str, value))
    return [f"{flag}={text}"] if text.startswith("-") else [flag, text]
