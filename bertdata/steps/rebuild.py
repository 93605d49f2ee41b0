"""The step that makes everything in a lineage again from the sources, and compares every md5."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from bertdata.errors import DataError
from bertdata.io import storage
from bertdata.io.json_text import parse_json_text
from bertdata.io.outputs import refuse_input_as_output
from bertdata.lineages.commands.command import Command, TrainingCommand
from bertdata.lineages.compare import Difference, compare_step, describe_versions
from bertdata.lineages.read import read_lineage
from bertdata.lineages.rebuild_plan import RebuildPlan, plan_rebuild
from bertdata.lineages.run_state import CHECKPOINTS, STATE_NAME
from bertdata.lineages.step import Lineage, Step
from bertdata.steps.values import AnyPath, AnyPaths, convert_path, list_paths

Tell = Callable[[str], Any]
"""Function that gets each line about the progress of a rebuild."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RebuildResult:
    """The result of a rebuild.

    commands: the commands that make every step again, as lines for a shell.
    steps: the steps that were made again and compared.
    differences: the differences of the first step that is not as recorded. Later steps were not made.
    """

    lineage: Lineage
    commands: tuple[str, ...]
    steps: tuple[Step, ...]
    differences: tuple[Difference, ...]

    @property
    def is_equal(self) -> bool:
        """True if every step that was made again is as recorded."""
        return not self.differences


def rebuild(
    path: AnyPath, sources: AnyPaths, output: AnyPath, *, trust: str | Sequence[str] = ()
) -> RebuildResult:
    """Make an artefact again from its sources, and compare every md5, as ``bertdata rebuild`` does.

    The commands of all steps run one after the other. Each step is compared with its record before the next
    step begins, and the first step that differs ends the rebuild. Steps that an earlier rebuild has finished
    in the same directory are kept.

    path: a dataset, parts, articles, a vocabulary, a run, a checkpoint or an exported model.
    sources: the dump, text files, or directories and patterns that contain them.
    output: directory for everything that is made.
    trust: code of the user that commands may import, each as package.module:NAME.

    Raises UsageError (or a subclass) if a source is missing or a step cannot be made again, and DataError (or
    a subclass) if the lineage has faults, a source is not the recorded file, or a command fails.
    """
    return run_plan(make_plan(path, sources, output, trust=trust), lambda line: None)


def make_plan(
    path: AnyPath, sources: AnyPaths, output: AnyPath, *, trust: str | Sequence[str] = ()
) -> RebuildPlan:
    """Return the plan of a rebuild, without making anything. The arguments are those of ``rebuild``."""
    given, target = list_paths(sources), convert_path(output)
    refuse_input_as_output(target, [convert_path(path), *given])
    lineage = read_lineage(convert_path(path))
    return plan_rebuild(lineage, given, target, (trust,) if isinstance(trust, str) else tuple(trust))


def run_plan(plan: RebuildPlan, tell: Tell) -> RebuildResult:
    """Run the commands of a plan, and compare each step once all of its commands have run.

    tell: function that gets each line about the progress.
    """
    made = list[Step]()
    for note in plan.notes:
        tell(f"note: {note}")
    storage.make_directory(plan.output)
    for link in plan.links:
        link.make()
    differences: list[Difference] = []
    for number, command in enumerate(plan.commands):
        _run_command(command, tell)
        step, after = command.step, plan.commands[number + 1 : number + 2]
        if after and after[0].step is step:
            continue  # the step has another command, which goes on
        made.append(step)
        place = plan.places.get_output(step)
        differences = compare_step(step, place, plan.lineage.documents)
        if differences:
            break
        tell(f"{place}: {_count_files(step)} as recorded")
    return RebuildResult(
        lineage=plan.lineage,
        commands=tuple(plan.list_lines()),
        steps=tuple(made),
        differences=tuple(differences),
    )


def _count_files(step: Step) -> str:
    """Return the number of a step's files as text."""
    number = len(step.outputs)
    return f"{number} file" if number == 1 else f"{number} files"


def _run_command(command: Command, tell: Tell) -> None:
    """Run a command in a process of its own, unless an earlier rebuild has finished it.

    Raises DataError if the command fails. It has printed the reason.
    """
    if command.done and storage.exists(command.done):
        return
    updates = 0
    if isinstance(command, TrainingCommand):
        updates = _count_updates(command)
        if updates >= command.last:
            return
    words, line = command.list_words(updates), command.format_line(updates)
    tell(f"$ {line}")
    differing = describe_versions(command.step, _find_versions())
    if differing:
        tell(f"note: {differing}; other versions may give other bytes")
    status = run_process(_make_words(words), command.environment)
    if status:
        raise DataError(f"{line}: ended with exit status {status}; nothing after it was rebuilt")


def _make_words(words: Sequence[str]) -> list[str]:
    """Return the words with this Python as the interpreter, so that they run the same installation."""
    if words[0] == "bertdata":
        return [sys.executable, "-m", *words]
    return [sys.executable, *words[1:]]


def run_process(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command and return its exit status. After Ctrl-C, wait until the command has ended by itself.

    The command gets the same Ctrl-C, and keeps what it has finished.

    environment: variables that the command needs besides those of this process.
    """
    process = subprocess.Popen(words, env={**os.environ, **environment})
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise


def _count_updates(command: TrainingCommand) -> int:
    """Return the number of updates of the command's phase that an earlier rebuild has made already."""
    folder = storage.join(command.output, CHECKPOINTS)
    numbers = [name for name in storage.list_files(folder) if name.endswith(f"/{STATE_NAME}")]
    phase = command.step.facts["phase"]
    for name in sorted(numbers, reverse=True):
        state = parse_json_text(storage.read_bytes(storage.join(folder, name)))
        if isinstance(state, dict) and state.get("phase") == phase:
            return int(state["step"])
    return 0


def _find_versions() -> Mapping[str, str]:
    """Return the versions of the packages on which the bytes of a step may depend, as installed here."""
    found = {}
    for name, package in (
        ("torch", "torch"),
        ("tokenizers", "tokenizers"),
        ("sentencepiece", "sentencepiece"),
    ):
        try:
            found[name] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
