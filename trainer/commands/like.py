"""The command line of ``python -m trainer like``, which runs another program's command line with this
trainer.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from bertdata.cli.common.programs.choice import split_like_line
from bertdata.cli.common.programs.command_line import ParsedCommandLine
from bertdata.errors import MissingInputError, SettingsError, UsageError
from bertdata.io.storage import is_remote
from bertdata.io.terminal import say_error, say_text
from trainer.commands.pretrain import import_torch
from trainer.config.flags import read_flags, read_keys
from trainer.config.phases import merge_length_keys, select_phase_values
from trainer.config.printed import print_config
from trainer.config.settings import Config, format_flag, get_other_names
from trainer.config.task_names import expand_task_flags
from trainer.config.value_sources import drop_keys_of_model_file
from trainer.devices.choice import AUTO, examine_for_run
from trainer.programs.choice import DOOR, load_programs, translate_command_line
from trainer.programs.machine import replace_missing_model_files
from trainer.programs.translated_command import TranslatedCommand
from trainer.programs.value_sources import find_sources_by_phase
from trainer.run.path_check import check_paths, refuse_run_inputs
from trainer.workers.launch import launch_workers
from trainer.workers.launchers import find_rank, is_started_here

USAGE = f"""\
Example:
  {DOOR.command} nvidia/run_squad.py --do_train --train_file train-v1.1.json ...

Runs another program's command line, as its authors publish it, with that program's defaults, batch size
arithmetic, optimiser and device. Flags of this trainer may follow after -- and override the others.
--print-config prints the resulting configuration and does nothing else. To add your own program, give the
path of a TOML file (docs/architecture.md).

usage: {DOOR.command} PROGRAM ARGUMENTS ... [-- FLAGS]    ({DOOR.command} PROGRAM --help lists its flags)

"""

_LARGEST_NUMBER = 1e15
"""Larger numbers in another program's command line may be mistakes. No setting needs them, not even a number
of seconds or bytes.
"""

_EVALUATION_KEYS = (
    "device",
    "eval_data",
    "output_dir",
    "eval_examples",
    "max_seq_length",
    "max_predictions_per_seq",
)
"""Keys of the configuration that an evaluation uses, and that --print-config shows for an evaluation."""


def _list_suspicious_numbers(flags: ParsedCommandLine) -> str:
    """Return the flags with numbers that may have caused an arithmetic error: 0 and very large numbers.

    The result is text for the error message.
    """
    odd = []
    for name in sorted(flags.explicit):
        values = flags[name] if isinstance(flags[name], list) else [flags[name]]
        odd += [f"--{name} {one}" for one in values if _is_suspicious_number(str(one))]
    return ", ".join(odd) or "the numbers of this command line"


def _is_suspicious_number(text: str) -> bool:
    """Return whether a flag's value, as text, is 0 or a very large number. Any other text gives False."""
    try:
        found = abs(float(text))
    except ValueError:
        return False
    return found == 0 or found > _LARGEST_NUMBER


def run(arguments: Sequence[str]) -> None:
    """Run another program's command line with this trainer, or only print what it means here."""
    if not arguments or arguments[0] in ("-h", "--help"):
        width = max(map(len, load_programs())) + 2
        listed = "".join(f"  {name:<{width}}{program.purpose}\n" for name, program in load_programs().items())
        say_text(USAGE + listed)
        return
    line = split_like_line(DOOR, arguments)
    program, given, ours = line.program, line.given, line.ours
    try:
        meaning = translate_command_line(program, given)
    except ArithmeticError:  # a division by 0, or an overflow
        raise UsageError(
            f"{program.name}: nothing can be computed with {_list_suspicious_numbers(given)}"
        ) from None
    tuned = any(keys.get("task") for keys in meaning.phases)
    changed_keys, contradictions = _override_keys(
        meaning.phases, expand_task_flags(ours) if tuned else ours, f"{DOOR.command} {program.name} ... --"
    )
    if not line.printing and find_spec("mlperf_logging") is None:
        changed_keys = [_drop_unavailable_log(keys, given) for keys in changed_keys]
    keys, missing = replace_missing_model_files(changed_keys, asks_elsewhere=not line.printing)
    phases = [Config.of(**of_phase) for of_phase in keys]
    if not line.printing:
        _check_files(missing)
    if find_rank()[0] == 0 and not is_started_here():
        changed = f"; with {' '.join(ours)}" if ours else ""
        say_error(f"{program.title}: {meaning.summary}{changed}")
        for warning in dict.fromkeys([*given.warnings, *missing.values(), *contradictions]):
            say_error(f"trainer: warning: {warning}")
    if line.printing:
        if find_rank()[0] == 0:
            flags = read_flags(expand_task_flags(ours) if tuned else ours, DOOR.command)
            sources = [
                of_program | {get_other_names().get(name, name): format_flag(name) for name in flags}
                for of_program in find_sources_by_phase(program, given, meaning)
            ]
            _print_meaning(line.typed, meaning, phases, sources)
    elif meaning.convert is not None:
        _run_conversion(meaning.convert)
    else:
        _run_phases(meaning, phases, arguments)


def _override_keys(
    phases: Sequence[Mapping[str, Any]], arguments: Sequence[str], prog: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Override keys that follow from another program's command line by flags of this trainer.

    Return the keys of each phase, and warnings about flags that contradict the command line. If a flag has
    two values, phase 1 gets the first and phase 2 the second. The key ``unverified`` is true by default,
    because the data of other programs have no manifest with md5s.
    phases: for each phase, the configuration keys that the other program's command line stands for.
    arguments: flags of this trainer, which follow ``--``.
    """
    flags = read_flags(arguments, prog)
    if flags.pop("config", None) is not None:
        raise SettingsError(
            f"{prog} --config: another program's command has no file of ours; give its keys as flags"
        )
    # If the command line trains phase 2 only, ``phases`` has a single entry, which gets the second value.
    numbers = [1 if len(phases) == 1 and keys.get("phase2") else number for number, keys in enumerate(phases)]
    changed, contradictions = list[dict[str, Any]](), list[str]()
    for number, keys in zip(numbers, phases, strict=True):
        upper = read_keys(select_phase_values(flags, number, number))
        lower, lines = drop_keys_of_model_file(keys, upper, "the program's command line")
        changed.append(merge_length_keys({"unverified": True, **lower}, upper))
        contradictions += lines
    return changed, contradictions


def _drop_unavailable_log(keys: Mapping[str, Any], flags: ParsedCommandLine) -> dict[str, Any]:
    """Warn that MLPerf's log cannot be written, if the keys ask for it. Return the keys without the log.

    It is called if the package for this log is not installed.
    """
    if keys.get("mllog"):
        flags.warn("mlperf-logging is not installed, so that MLPerf's log is not written (extra mllog)")
    return {**keys, "mllog": False}


def _check_files(missing: Iterable[str]) -> None:
    """Raise an error for the first missing input file."""
    for path in missing:
        where = "no such file" if is_remote(path) else "is not on this machine; name a file that is"
        raise MissingInputError(f"{path}: {where}")


def _print_meaning(
    program: str, meaning: TranslatedCommand, phases: Sequence[Config], sources: Sequence[Mapping[str, str]]
) -> None:
    """Print what the other program's command line means: a training's configuration, or the settings of an
    evaluation or a conversion.
    """
    if meaning.convert is not None:
        print_config(program, [], convert=meaning.convert)
    elif meaning.evaluate is not None:
        keys = phases[0].as_json()
        changed = {name: keys[name] for name in _EVALUATION_KEYS}
        print_config(program, [], world_size=keys["world_size"], evaluate=meaning.evaluate | changed)
    else:
        print_config(program, phases, sources)


def _run_phases(meaning: TranslatedCommand, phases: Sequence[Config], arguments: Sequence[str]) -> None:
    """Start the workers, then pre-train, fine-tune or evaluate as the other program would."""
    _check_device(phases[0])
    if meaning.evaluate is None:
        check_paths(phases)
    else:
        refuse_run_inputs(phases, evaluates=True)
    if launch_workers(phases[0], "like", *arguments):
        return
    import_torch()
    if meaning.evaluate is not None:
        from trainer.run.evaluate import evaluate

        poll, until = meaning.evaluate["poll"], meaning.evaluate.get("until_step")
        evaluate(_verify_listed_data(phases[0]), poll=poll, until_step=until)
    elif phases[0].is_finetuning:
        from trainer.run.finetune import finetune

        finetune(phases[0], may_be_new=True)
    else:
        from trainer.run.pretrain import pretrain

        pretrain([_verify_listed_data(config) for config in phases], may_be_new=True)


def _verify_listed_data(config: Config) -> Config:
    """Switch on the verification of the data if every dataset has a manifest. Return the changed
    configuration.

    Warn about each dataset without a manifest. Its files cannot be verified.
    """
    from bertdata.dataset.discover import find_datasets
    from bertdata.dataset.mixture.weights import split_paths

    data = None if config.data.generated_data else config.data.train_data
    paths = [path for named in (data, config.data.eval_data) if named for path in split_paths(named)]
    plain = [path for path in paths if any(found.manifest is None for found in find_datasets(path))]
    if find_rank()[0] == 0:
        for path in plain:
            say_error(f"trainer: warning: {path}: no manifest lists its files; they are taken as they are")
    return config.changed(unverified=bool(plain))


def _check_device(config: Config) -> None:
    """Raise SettingsError if this machine lacks the device that the other program uses. Suggest another
    device.
    """
    name = config.run.device
    if name == AUTO:  # only a flag of this trainer sets auto
        return
    finding = examine_for_run(name, config)
    if not finding.there:
        found = "; ".join(filter(None, (finding.found, finding.missing)))
        raise SettingsError(
            f"the program runs on {name}, which is not there ({found}); a device of another kind is ours to "
            "choose: append -- --device cpu"
        )


def _run_conversion(settings: Mapping[str, Any]) -> None:
    """Convert a checkpoint as the other program would.

    settings: with the key "added", those of MLPerf's program that adds gradient accumulators. Without it, the
        settings of a program that converts between formats.
    """
    if "added" in settings:
        from trainer.checkpoints.formats.tensorflow1 import add_accumulators

        say_error(add_accumulators(settings["source"], settings["target"]))
    elif "prefix" in settings:
        from trainer.checkpoints.formats.convert import convert_to_prefix

        say_error(convert_to_prefix(settings["source"], settings["target"], settings["model_config"]))
    else:
        from trainer.checkpoints.formats.convert import convert

        say_error(convert(**settings))
