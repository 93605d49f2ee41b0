"""The command line of ``python -m trainer split``."""

import json
from argparse import Namespace
from dataclasses import replace
from typing import Any

from bertdata.cli.common.parser import Parser, add_overwrite, positive
from bertdata.dataset.mixture.weights import split_paths
from bertdata.dataset.reader import open_dataset
from bertdata.errors import MissingInputError, SettingsError, UsageError
from bertdata.io import storage
from bertdata.io.outputs import SVG, check_output
from bertdata.io.terminal import say, say_error, say_text
from bertdata.records import DEFAULT_OBJECTIVE
from trainer.commands.pretrain import tell_contradictions
from trainer.config.flags import make_layered
from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.config.sections.split import PLAN_FORM, SplitSection
from trainer.config.settings import Config
from trainer.splitting.plan.plan import Plan, read_plan, write_plan
from trainer.splitting.plan.rates import SHEETS, USUAL, find_hardware
from trainer.splitting.plan.request import PlanRequest, configured_examples
from trainer.splitting.show.picture import draw_schedule
from trainer.splitting.show.table import plan_lines

PROG = "python -m trainer split"
_EXAMPLE = f"""\
  {PROG} --config rannc_4.9b --devices 8 --memory 32
  {PROG} --config rannc_4.9b --devices 8 --memory 80 --output plan.json --picture plan.svg
  {PROG} --plan plan.json --picture plan.svg"""
_SUMMARY = """\
Divides a model over devices that cannot hold it alone, without training: prints stages, their times and
memory, and what an update takes. No device is needed: times are computed from the model's operations and the
rates of --hardware; with --profile-layers the layers are timed on --device. Any key of pretrain may be given:
--strategy pipelined, --stages 4, --recompute always, --max-seq-length 128 (default: the model's longest),
--objective mlm (masked words alone; default: that of --train-data, else bert), --bandwidth 25 (GB/s between
devices; default: half of the data sheet's). With --plan FILE that plan is shown, and none is made."""


def run(arguments: list[str]) -> None:
    """Print the plan, keep it and draw it as the command line says."""
    given, rest = _parser().parse_known_args(arguments)
    own = {"--device-memory": given.memory, "--save-plan": given.output}
    words = [*rest, *(f"{flag}={text}" for flag, text in own.items() if text is not None)]
    layered = make_layered(words, PROG)
    tell_contradictions(layered)
    config = layered[-1].config
    say_error(*(f"trainer: warning: {warning}" for warning in config.model.warnings()))
    # Else RaNNC's name, or the workers that the run is to have.
    devices = given.devices or config.workers.world_size
    if given.picture and not given.picture.lower().endswith(".svg"):
        raise UsageError(f"{given.picture}: expected a name that ends in .svg")
    split = config.split
    _check_outputs(given, _config_file(rest), config, split)
    if split.plan:
        plan, memory, source = (
            _read(split.plan, config, devices),
            split.memory_bytes,
            f"read from {split.plan}",
        )
    else:
        plan, memory, source = _make(config, devices, given.hardware)
    if split.save_plan:
        write_plan(split.save_plan, plan)
    if given.picture:
        with storage.open_output(given.picture) as file:
            file.write(draw_schedule(plan).encode())
    if given.json:
        say_text(json.dumps(_as_json(plan), indent=1))
        return
    say(*plan_lines(plan, memory, split.memory_margin, source))


def _config_file(words: list[str]) -> str | None:
    """Return the file of --config among the words, or None."""
    for place, word in enumerate(words):
        if word == "--config":
            return words[place + 1] if place + 1 < len(words) else None
        if word.startswith("--config="):
            return word.removeprefix("--config=")
    return None


def _check_outputs(given: Namespace, config_file: str | None, config: Config, split: SplitSection) -> None:
    """Check the files to write: no inputs, not one file twice, and in the place of older ones alone."""
    data = split_paths(config.data.train_data) if config.data.train_data else []
    inputs = [split.plan, config_file, config.model.model_config, *data]
    if split.save_plan:
        check_output(split.save_plan, inputs, PLAN_FORM, overwrite=given.overwrite)
    if given.picture:
        check_output(given.picture, [*inputs, split.save_plan], SVG, overwrite=given.overwrite)


def _parser() -> Parser:
    parser = Parser(PROG, _EXAMPLE, _SUMMARY)
    parser.usage = "%(prog)s --devices N --memory GB [--config FILE] [--KEY VALUE ...]"
    parser.add_argument("--devices", type=positive, metavar="N", help="number of devices")
    memory = "memory of a device in GB of 10^9 bytes (default: that of the device which --hardware names)"
    parser.add_argument("--memory", metavar="GB", help=memory)
    hardware = f"{', '.join(SHEETS)}, or the TFLOP/s that a device reaches (default: rates of {USUAL})"
    parser.add_argument("--hardware", metavar="NAME", help=hardware)
    parser.add_argument("--output", metavar="FILE", help="write the plan as JSON, for --plan")
    parser.add_argument("--picture", metavar="FILE", help="draw the schedule of an update as .svg")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    add_overwrite(parser)
    return parser


def _make(config: Config, devices: int | None, named: str | None) -> tuple[Plan, int, str]:
    """A new plan, the bytes of a device's memory, and the source of its times. named: the hardware.

    Layers are timed by the device's kind of attention, in some seconds, where that is configured.
    """
    from trainer.splitting.plan.planner import make_plan  # imports torch

    is_profiled = config.split.profile_layers
    if is_profiled:
        from trainer.devices.choice import choose_device
        from trainer.devices.opening import find_device, on_device
        from trainer.splitting.plan.profile import attention_of, profiled_costs
        from trainer.workers.choice import find_collective

        config = on_device(config, choose_device(config).name)
    hardware, model = find_hardware(named, config), _model(config)
    if model is None:
        raise SettingsError(
            "the model is missing: give --config, --model-config or keys such as --hidden-size"
        )
    if devices is None:
        raise SettingsError("the number of devices is missing: give --devices N")
    request = PlanRequest(
        config=config,
        model=model,
        sequence_length=config.data.max_seq_length or model.max_position_embeddings,
        examples=configured_examples(config, devices),
        devices=devices,
        memory=hardware.memory,
        bandwidth=hardware.bandwidth,
        rate=hardware.rate,
        head=_task(config),
    )
    costs = None
    if is_profiled:
        device = find_device(config)
        request = replace(request, attention=attention_of(device))
        say_error(f"trainer: timing the model's layers on device {device.name}")
        costs = profiled_costs(request, device, find_collective("single", device))
    return make_plan(request, costs), hardware.memory, hardware.source


def _read(path: str, config: Config, devices: int | None) -> Plan:
    """The plan of a file, which fits the model and the devices that are given."""
    from trainer.splitting.plan.fit import check_fits  # imports torch
    from trainer.splitting.plan.parts import head_of

    plan = read_plan(path)
    model = _model(config)
    says_task = config.is_finetuning or config.data.objective or config.data.train_data
    check_fits(
        plan,
        model=model or read_model_config(plan.model, path),
        devices=devices or plan.devices,
        sequence_length=config.data.max_seq_length or plan.sequence_length,
        precision=config.update.precision if model else plan.precision,
        optimiser=config.update.optimiser if model else plan.optimiser,
        where=path,
        head=head_of(_task(config)) if says_task else None,
    )
    return plan


def _model(config: Config) -> ModelConfig | None:
    """The configured model, or None where no key of it is given."""
    settings = config.model_settings
    return read_model_config(settings, config.model.model_config or "model") if settings else None


def _task(config: Config) -> str:
    """The task that the model is to learn: the configured one, or that of the objective or of train_data.

    SettingsError for an objective that nothing learns, or that is not the data's.
    """
    from trainer.tasks.choice import task_of_objective

    if config.is_finetuning:
        return config.task
    objective, paths = config.data.objective, config.data.train_data
    if paths is None or config.data.generated_data:
        return task_of_objective(objective or DEFAULT_OBJECTIVE, "objective is")
    try:
        data = open_dataset(split_paths(paths), unverified=config.data.unverified, split="training")
    except MissingInputError as error:  # a plan may be made where the data are not
        if objective is None:
            raise MissingInputError(f"{error}; give --objective NAME to plan without the data") from None
        return task_of_objective(objective, "objective is")
    found = data.layout.objective
    if objective not in (None, found):
        remedy = "leave out --objective"
        raise SettingsError(f"{data.name}: has the objective {found}, objective is {objective}; {remedy}")
    return task_of_objective(found, f"{data.name}: has the objective")


def _as_json(plan: Plan) -> dict[str, Any]:
    """The plan, and what follows from it: seconds, bytes, fractions."""
    from trainer.splitting.plan.parts import count_weights  # imports torch

    return {
        "strategy": plan.strategy,
        "parameters": count_weights(plan),
        "devices": plan.devices,
        "examples": plan.examples,
        "seconds": plan.seconds,
        "bubble": plan.bubble,
        "sequences_per_second": plan.examples / plan.seconds,
        "fullest_stage": plan.fullest,
        "fullest_bytes": plan.stages[plan.fullest].memory.total,
        "plan": plan.as_json(),
    }
