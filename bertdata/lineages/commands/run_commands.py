"""The commands that train a model again and export it: the trainer's pretrain, finetune and convert.

A run is made again with the settings in its checkpoint. If it was resumed with other settings, it is trained
in as many parts, each with its own settings, and it stops where the checkpoint was saved.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertdata.dataset.mixture.weights import split_weighted
from bertdata.errors import SettingsError
from bertdata.io import storage
from bertdata.io.assets import is_published_vocabulary
from bertdata.lineages.commands.command import (
    Command,
    Places,
    TrainingCommand,
    expect_setting,
    make_flag,
    make_option,
)
from bertdata.lineages.exported_model import LINEAGE_NAME, TRAINING_DATA
from bertdata.lineages.flag_files import FILE_ROLES, FOLDER_ROLES, MODEL_CONFIGURATION, TOKENIZER_JSON
from bertdata.lineages.run_state import CHECKPOINTS, FROM_PHASE_1, NEW, STATE_NAME
from bertdata.lineages.shown_settings import list_changed_keys
from bertdata.lineages.step import EXPORT, FEATURES, FINETUNE, Input, Step
from schemas import load_schema

TRAINER = ("python", "-m", "trainer")

_MADE_FROM_LINEAGE = (
    *("train_data", "eval_data", "start_from_ckpt", "model_config", "vocab", "plan", "dist", "world_size"),
    *("task_dir", "task_train_file", "task_eval_file", "task_predict_file", "do_predict", "steps"),
    *("num_train_epochs", "train_tokens", "executable_cache_dir"),
)
"""Keys that name places, or the length of the training, whose flags are made from the lineage."""

_TRAINING, _EVALUATION, _START = "training data", "evaluation data", "start"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """A part of a phase that was trained with the same settings.

    until: number of updates of the phase after which the part ended.
    config: the trainer's configuration.
    """

    until: int
    config: Mapping[str, Any]
    workers: int
    threads: int


def find_checkpoint(run: str, step: Step) -> str:
    """Return the directory of a rebuilt checkpoint.

    run: directory of the rebuilt run.
    """
    return storage.join(run, f"{CHECKPOINTS}/step-{step.facts['checkpoint']:08d}")


def make_run_commands(step: Step, places: Places, output: str) -> Iterator[Command]:
    """Yield the commands that train a run again up to its checkpoint.

    output: directory of the run.

    Raises SettingsError if the run cannot be made again, for example because its start is not known.
    """
    command = "finetune" if step.name == FINETUNE else "pretrain"
    expect_setting(step, "steps")
    files = [one for one in step.inputs if one.role in FILE_ROLES]
    # Without its file, which earlier versions did not record, the model's settings replace --model-config.
    has_model_file = any(one.role == MODEL_CONFIGURATION for one in files)
    model = {} if has_model_file else step.settings["model"]
    first = 0
    for part in _list_parts(step):
        words = [*TRAINER, command, *_make_data_flags(step, places, part.config), "--output-dir", output]
        words += _make_start_flags(step, places)
        for one in files:
            words += _make_file_flag(step, one, places)
        words += _make_key_flags(part.config, model)
        if part.workers > 1:
            words += ["--dist", "--world-size", str(part.workers)]
        yield TrainingCommand(
            words=tuple(words),
            environment={"OMP_NUM_THREADS": str(part.threads)} if part.threads else {},
            step=step,
            output=output,
            done=storage.join(find_checkpoint(output, step), STATE_NAME),
            first=first,
            last=part.until,
            steps=int(part.config["steps"]),
        )
        first = part.until


def _list_parts(step: Step) -> list[_Part]:
    """Return the parts of a phase that were trained with other settings, in the order of training.

    A phase that was never resumed, or only with the same settings, has a single part.
    """
    config: Mapping[str, Any] = {name: value for name, value in step.settings.items() if name != "model"}
    part = _Part(
        until=int(step.facts["updates"]),
        config=config,
        workers=int(step.facts.get("workers", 1)),
        threads=int(step.facts.get("threads", 0)),
    )
    found = [part]
    for earlier in reversed(step.facts.get("history", ())):
        if not {"settings", "workers", "threads"} & earlier.keys():
            continue  # only the versions were others, for which there is no flag
        part = _Part(
            until=int(earlier["until"]),
            config={**part.config, **earlier.get("settings", {})},
            workers=int(earlier.get("workers", part.workers)),
            threads=int(earlier.get("threads", part.threads)),
        )
        found.insert(0, part)
    return found


def _make_data_flags(step: Step, places: Places, config: Mapping[str, Any]) -> list[str]:
    """Return the flags that name the rebuilt datasets of a run, or the files of its task."""
    if step.name == FINETUNE:
        return _make_task_flags(step, places)
    words: list[str] = []
    for role, key in ((_TRAINING, "train_data"), (_EVALUATION, "eval_data")):
        if config.get(key) and not (key == "train_data" and config.get("generated_data")):
            words += [make_flag(key), _join_datasets(step, places, role, str(config[key]))]
    return words


def list_datasets(step: Step, role: str) -> list[Input]:
    """Return the datasets of a run with this role, in the order in which the run names them."""
    return [one for one in step.inputs if one.role == role]


def _join_datasets(step: Step, places: Places, role: str, given: str) -> str:
    """Return the rebuilt datasets as a run names them, such as ``A*0.7+B*0.3``.

    given: the value of the run's key, whose weights and patterns are kept.
    """
    datasets, named = list_datasets(step, role), split_weighted(given)
    if len(datasets) != len(named):
        raise SettingsError(
            f"{step.program}, record {step.record}: its {role} {given} are {len(named)} paths, but it names "
            f"{len(datasets)} manifests"
        )
    found = []
    for one, (path, weight) in zip(datasets, named, strict=True):
        if one.made_by is None:
            raise SettingsError(f"{step.program}, record {step.record}: {role}: {one.remark}")
        rebuilt, chosen = places.get_output(one.made_by), storage.get_base_name(path)
        is_file = any(file.name == chosen for file in one.made_by.outputs)
        if is_file or any(mark in chosen for mark in "*?["):  # the run has read only some of the shards
            rebuilt = storage.join(rebuilt, chosen)
        found.append(rebuilt if weight is None else f"{rebuilt}*{weight}")
    return "+".join(found)


def _make_task_flags(step: Step, places: Places) -> list[str]:
    """Return the flags that name the files of a fine-tuning task."""
    words: list[str] = []
    for role, key in ((_TRAINING, "task_train_file"), (_EVALUATION, "task_eval_file")):
        for one in list_datasets(step, role):
            if one.made_by is None or one.made_by.name != FEATURES:
                raise SettingsError(f"{step.program}, record {step.record}: {role}: {one.remark}")
            [path] = places.list_files(one.made_by.inputs[0])
            words += [make_flag(key), path]
    return words


def _make_start_flags(step: Step, places: Places) -> list[str]:
    """Return the flag that names the checkpoint from which a run starts.

    Phase 2 of a run continues from phase 1 in the same directory, and needs no such flag.
    """
    started = step.facts.get("started")
    given = step.settings.get("start_from_ckpt")
    if started in (NEW, FROM_PHASE_1) or (started is None and not given and not step.settings.get("phase2")):
        return []
    starts = list_datasets(step, _START)
    if len(starts) != 1 or not (starts[0].source or starts[0].made_by):
        remark = starts[0].remark if starts else "the checkpoint that it started from is not known"
        raise SettingsError(f"{step.program}, record {step.record}: {remark}")
    return ["--start-from-ckpt", _find_start(starts[0], places)]


def _find_start(start: Input, places: Places) -> str:
    """Return the path of the checkpoint from which a run starts, as a flag names it."""
    made_by = start.made_by
    if made_by is not None:
        rebuilt = places.get_output(made_by)
        return rebuilt if made_by.name == EXPORT else find_checkpoint(rebuilt, made_by)
    paths = places.list_files(start)
    for path in paths:
        if path.endswith(".index"):
            return path.removesuffix(".index")
        if path.endswith((".pt", ".pth")):
            return path
    weights = [path for path in paths if not path.endswith("config.json")]
    return storage.get_parent(weights[0] if weights else paths[0])


def _make_key_flags(config: Mapping[str, Any], model: Mapping[str, Any]) -> list[str]:
    """Return the flags of all keys that are not the default.

    model: the model's settings, which replace the file that ``model_config`` names. Empty if the command has
        --model-config.
    """
    known = load_schema("trainer")["properties"]
    keys = list_changed_keys(config)
    if config.get("model_config") is not None:
        keys |= {name: value for name, value in model.items() if name in known}
    # A record comes from others. Only keys of devices may become flags here, and not --config or --objective.
    options = dict(keys.pop("device_options", {}))
    keys |= {name: value for name, value in options.items() if name in known["device_options"]["properties"]}
    words = ["--steps", str(config["steps"])]
    for name, value in keys.items():
        if name not in _MADE_FROM_LINEAGE:
            words += _make_key_flag(name, value)
    return words


def _make_key_flag(name: str, value: Any) -> Sequence[str]:
    """Return the flag of a key of the trainer with its value."""
    if value is True:
        return [make_flag(name)]
    if value is False:
        return [make_flag(f"no_{name}")]
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value)
    return make_option(make_flag(name), text)


def make_export_command(step: Step, places: Places, output: str) -> Command:
    """Return the command that exports a model again.

    Raises SettingsError if the checkpoint that was exported is not known, and ManifestError if the record
    lacks a setting.
    """
    source = step.inputs[0]
    if source.made_by is None and not source.source:
        raise SettingsError(f"{step.program}, record {step.record}: {source.remark}")
    words = [
        *TRAINER,
        "convert",
        _find_start(source, places),
        output,
        "--to",
        str(expect_setting(step, "to")),
    ]
    if not expect_setting(step, "moments"):
        words.append("--without-moments")
    task = step.settings.get("task")
    if isinstance(task, str) and ":" in task:  # convert imports a user's task only if its flag names it
        words += make_option("--task", task)
    lower_case = step.settings.get("lower_case")
    if lower_case is not None:
        words.append("--lower-case" if lower_case else "--no-lower-case")
    if (kind := step.settings.get("from")) is not None:
        words += make_option("--from", kind)
    for one in step.inputs[1:]:
        words += _make_input_flag(step, one, places)
    return Command(words=tuple(words), step=step, output=output, done=storage.join(output, LINEAGE_NAME))


def _make_input_flag(step: Step, given: Input, places: Places) -> list[str]:
    """Return the flag of an export that names an input other than the checkpoint."""
    if given.role != TRAINING_DATA:
        return _make_file_flag(step, given, places)
    if given.made_by is None:
        raise SettingsError(f"{step.program}, record {step.record}: {given.role}: {given.remark}")
    # Features belong to a fine-tuned run, which keeps their tokeniser.
    is_kept = given.made_by.name == FEATURES
    return [] if is_kept else ["--train-data", places.get_output(given.made_by)]


def _make_file_flag(step: Step, given: Input, places: Places) -> list[str]:
    """Return the flag ``--vocab`` or ``--model-config`` with the files that it named."""
    if given.role in FOLDER_ROLES:
        folder = places.folders[step.record, given.role]
        return ["--vocab", storage.join(folder, TOKENIZER_JSON) if given.role == TOKENIZER_JSON else folder]
    flag = "--model-config" if given.role == MODEL_CONFIGURATION else "--vocab"
    [file] = given.files
    is_published = is_published_vocabulary(file.name, str(file.md5))
    return make_option(flag, file.name if is_published else places.find_file(given, file))
