"""``python -m trainer like PROGRAM ARGUMENTS ... [-- FLAGS]``: another program's command with its meaning."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from bertdata.errors import SettingsError
from bertdata.io.terminal import say_error, say_text
from trainer.collectives.launch import launched
from trainer.collectives.launchers import find_rank
from trainer.config.flags import override
from trainer.config.printed import print_config, take_print_config
from trainer.config.settings import Config
from trainer.config.task_config import task_flags
from trainer.devices.examine import examine_device
from trainer.like.program import DOOR, Meaning
from trainer.like.registry import PROGRAMS, find_program

USAGE = f"""\
Example:
  {DOOR} nvidia/run_squad.py --do_train --train_file train-v1.1.json ...

Runs the command line of another program, as its authors print it, with the meaning that it has there: its
defaults, its batch arithmetic, its optimiser, its device. Flags of this trainer may follow after --, and go
before all others; --print-config prints the configuration that is understood and does nothing else.

usage: {DOOR} PROGRAM ARGUMENTS ... [-- FLAGS]    ({DOOR} PROGRAM --help lists its flags)

"""


def run(arguments: Sequence[str]) -> None:
    """Run the program's command line, or print what it means."""
    words, printing = take_print_config(arguments)
    if not words or words[0] in ("-h", "--help"):
        width = max(map(len, PROGRAMS)) + 2
        say_text(USAGE + "".join(f"  {name:<{width}}{what}\n" for name, what in PROGRAMS.items()))
        return
    name, _, version = words[0].partition("@")
    program = find_program(name)
    theirs, ours = _divided(words[1:])
    given = program.read(theirs, version)
    meaning = program.resolve(given)
    phases = _configs(meaning, ours, f"{DOOR} {name} ... --")
    if find_rank()[0] == 0:
        say_error(f"{program.title}: {meaning.summary}")
        for warning in dict.fromkeys([*given.warnings, *meaning.warnings]):
            say_error(f"trainer: warning: {warning}")
    if printing:
        others = {
            key: value
            for key, value in (("evaluate", meaning.evaluate), ("convert", meaning.convert))
            if value is not None
        }
        print_config(words[0], phases, **others)
    elif meaning.convert is not None:
        _convert(meaning.convert)
    else:
        _train(phases, arguments)


def _divided(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The program's arguments, and this trainer's behind the first ``--``."""
    place = words.index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place + 1 :])


def _configs(meaning: Meaning, ours: Sequence[str], prog: str) -> list[Config]:
    """The configuration of each phase, with this trainer's flags before the program's."""
    tuned = any(keys.get("task") for keys in meaning.phases)
    flags = task_flags(ours) if tuned else list(ours)
    return [Config.of(**keys) for keys in override(meaning.phases, flags, prog)]


def _train(phases: Sequence[Config], arguments: Sequence[str]) -> None:
    """Pre-train or fine-tune; the workers that the program starts are started here."""
    _check_device(phases[0].run.device)
    if launched(phases[0], "like", *arguments):
        return
    if "torch" not in sys.modules and find_rank()[0] == 0:
        say_error("trainer: importing torch")
    if phases[0].finetuning.is_finetuning:
        from trainer.run.finetune import finetune

        finetune(phases[0])
    else:
        from trainer.run.pretrain import pretrain

        pretrain([_verified_where_listed(config) for config in phases])


def _verified_where_listed(config: Config) -> Config:
    """The configuration with its data verified where a manifest lists them; else a warning says so."""
    from bertdata.dataset.discover import find_datasets
    from trainer.data.opening import split_paths

    data = None if config.data.generated_data else config.data.train_data
    paths = [path for named in (data, config.data.eval_data) if named for path in split_paths(named)]
    plain = [path for path in paths if any(found.manifest is None for found in find_datasets(path))]
    if find_rank()[0] == 0:
        for path in plain:
            say_error(f"trainer: warning: {path}: no manifest lists its files; they are taken as they are")
    return config.changed(unverified=bool(plain))


def _check_device(name: str) -> None:
    """SettingsError, with the way around it, where the program's device is not there."""
    finding = examine_device(name)
    if not finding.there:
        found = "; ".join(filter(None, (finding.found, finding.missing)))
        remedy = "a device of another kind is ours to choose: append -- --device cpu"
        raise SettingsError(f"the program trains on {name}, which is not there ({found}); {remedy}")


def _convert(settings: dict[str, Any]) -> None:
    from trainer.run.convert import convert

    work: Callable[..., str] = convert
    say_error(work(**settings))
