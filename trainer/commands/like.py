"""The command line of ``python -m trainer like``: do what another program's command line means."""

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
from trainer.config.phases import choose_steps_or_epochs, select_phase_values
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

_LARGE = 1e15
"""A larger number in another program's command line is taken for a mistake. No setting needs it, not even a
number of seconds or bytes.
"""

_OF_EVALUATION = (
    "device",
    "eval_data",
    "output_dir",
    "eval_examples",
    "max_seq_length",
    "max_predictions_per_seq",
)
"""Keys of training that an evaluation uses too, so that a user may change them by flags of this trainer."""


def _list_odd_numbers(flags: ParsedCommandLine) -> str:
    """Return the flags whose numbers are 0 or very large, as text for an error message."""
    odd = []
    for name in sorted(flags.explicit):
        values = flags[name] if isinstance(flags[name], list) else [flags[name]]
        odd += [f"--{name} {one}" for one in values if _is_odd_number(str(one))]
    return ", ".join(odd) or "the numbers of this command line"


def _is_odd_number(text: str) -> bool:
    """Return whether the text of a flag's value is 0 or a very large number. Lists of numbers never are."""
    try:
        found = abs(float(text))
    except ValueError:
        return False
    return found == 0 or found > _LARGE


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
    except ArithmeticError:  # 0 or a very large number in a computation
        raise UsageError(f"{program.name}: nothing can be computed with {_list_odd_numbers(given)}") from None
    tuned = any(keys.get("task") for keys in meaning.phases)
    changed_keys, contradictions = _override_keys(
        meaning.phases, expand_task_flags(ours) if tuned else ours, f"{DOOR.command} {program.name} ... --"
    )
    if not line.printing and find_spec("mlperf_logging") is None:
        changed_keys = [_drop_unavailable_log(keys, given) for keys in changed_keys]
    keys, missing = replace_missing_model_files(changed_keys, asks_elsewhere=not line.printing)
    phases = [Config.of(**of_phase) for of_phase in keys]
    if not line.printing:
        _check_files(missing, phases)
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
    """Apply flags of this trainer to the keys of each phase.

    Return the keys and warnings about contradictions.

    If a flag has two values, the first applies to phase 1 and the second to phase 2. The key ``unverified``
    is set by default, because other programs' data have no manifest with md5s to verify the files by.
    """
    flags = read_flags(arguments, prog)
    if flags.pop("config", None) is not None:
        raise SettingsError(
            f"{prog} --config: another program's command has no file of ours; give its keys as flags"
        )
    # A command line for phase 2 alone has a single entry, which takes the second of two values.
    numbers = [1 if len(phases) == 1 and keys.get("phase2") else number for number, keys in enumerate(phases)]
    changed, contradictions = list[dict[str, Any]](), list[str]()
    for number, keys in zip(numbers, phases, strict=True):
        upper = read_keys(select_phase_values(flags, number, number))
        lower, lines = drop_keys_of_model_file(keys, upper, "the program's command line")
        changed.append(choose_steps_or_epochs({"unverified": True, **lower}, upper))
        contradictions += lines
    return changed, contradictions


def _drop_unavailable_log(keys: Mapping[str, Any], flags: ParsedCommandLine) -> dict[str, Any]:
    """Return the keys without MLPerf's log, after a warning, if the log's package is not installed."""
    if keys.get("mllog"):
        flags.warn("mlperf-logging is not installed, so that MLPerf's log is not written (extra mllog)")
    return {**keys, "mllog": False}


def _check_files(missing: Iterable[str], phases: Sequence[Config]) -> None:
    """Raise an error for a missing input file, and for an output directory on another machine."""
    for path in missing:
        where = "no such file" if is_remote(path) else "is not on this machine; name a file that is"
        raise MissingInputError(f"{path}: {where}")
    for output_dir in (config.run.output_dir for config in phases):
        if output_dir is not None and is_remote(output_dir):
            raise SettingsError(
                f"{output_dir}: checkpoints are written to a directory of this machine; append -- "
                "--output-dir DIR"
            )


def _print_meaning(
    program: str, meaning: TranslatedCommand, phases: Sequence[Config], sources: Sequence[Mapping[str, str]]
) -> None:
    """Print the configuration, or the settings of an evaluation or conversion."""
    if meaning.convert is not None:
        print_config(program, [], convert=meaning.convert)
    elif meaning.evaluate is not None:
        keys = phases[0].as_json()
        changed = {name: keys[name] for name in _OF_EVALUATION}
        print_config(program, [], world_size=keys["world_size"], evaluate=meaning.evaluate | changed)
    else:
        print_config(program, phases, sources)


def _run_phases(meaning: TranslatedCommand, phases: Sequence[Config], arguments: Sequence[str]) -> None:
    """Pre-train, fine-tune or evaluate, after starting the program's workers."""
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
    """Return the configuration with verification of the data switched on, if manifests list all data files.

    Otherwise warn that the data are not verified.
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
    """Raise SettingsError, with a remedy, if the program's device is missing."""
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
    """Convert a checkpoint as ``trainer convert`` does, or as MLPerf's two checkpoint programs do.

    The names of the settings show which of these programs to imitate.
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
