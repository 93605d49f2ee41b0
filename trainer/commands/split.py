"""The command line of ``python -m trainer split``: plan how to split a model over devices."""

import json
from argparse import Namespace
from dataclasses import replace
from typing import Any

from bertdata.cli.common.parser import Parser, add_overwrite, parse_positive
from bertdata.dataset.mixture.weights import split_paths
from bertdata.dataset.reader import open_dataset
from bertdata.errors import MissingInputError, SettingsError, UsageError
from bertdata.io import storage
from bertdata.io.outputs import SVG, check_output
from bertdata.io.terminal import say, say_error, say_text
from bertdata.records import DEFAULT_OBJECTIVE
from trainer.commands.pretrain import warn_of_contradictions
from trainer.config.flags import make_layered
from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.config.sections.split import PLAN_FORM, SplitSection
from trainer.config.settings import Config
from trainer.splitting.plan.plan import Plan, read_plan, write_plan
from trainer.splitting.plan.rates import DEFAULT_DEVICE, SHEETS, find_hardware
from trainer.splitting.plan.request import PlanRequest, count_configured_examples
from trainer.splitting.show.picture import draw_schedule
from trainer.splitting.show.table import format_plan_lines

PROG = "python -m trainer split"
_EXAMPLE = f"""\
  {PROG} --config rannc_4.9b --devices 8 --memory 32
  {PROG} --config rannc_4.9b --devices 8 --memory 80 --output plan.json --picture plan.svg
  {PROG} --plan plan.json --picture plan.svg"""
_SUMMARY = """\
Plans how to split a model that is too large for one device, without training. Prints the stages with their
times and memory, and the time of an update. No device is needed: times are computed from the model's
operations and the rates of --hardware. With --profile-layers they are measured on --device. The objective is
that of --train-data, else --objective (default: bert); the length is --max-seq-length (default: the longest
that the model supports). With --plan FILE, that plan is shown instead. All flags of pretrain are accepted:
--help-all."""


def run(arguments: list[str]) -> None:
    """Plan how to split a model over devices, or read a plan from a file. Print the plan.

    Further flags write the plan to a file and draw a picture of it.
    """
    parser = _make_parser()
    if not {"-h", "--help"}.isdisjoint(arguments):
        _add_keys_help(parser)
    given, rest = parser.parse_known_args(arguments)
    own = {"--device-memory": given.memory, "--save-plan": given.output}
    words = [*rest, *(f"{flag}={text}" for flag, text in own.items() if text is not None)]
    layered = make_layered(words, PROG)
    warn_of_contradictions(layered)
    config = layered[-1].config
    say_error(*(f"trainer: warning: {warning}" for warning in config.model.warnings()))
    # Without --devices, plan for as many devices as the configured run has workers (world_size).
    devices = given.devices or config.workers.world_size
    if given.picture and not given.picture.lower().endswith(".svg"):
        raise UsageError(f"{given.picture}: expected a name that ends in .svg")
    split = config.split
    _check_outputs(given, _find_config_file(rest), config, split)
    if split.plan:
        plan, memory, source = (
            _read_fitting_plan(split.plan, config, devices),
            split.memory_bytes,
            f"read from {split.plan}",
        )
    else:
        plan, memory, source = _make_plan(config, devices, given.hardware)
    if split.save_plan:
        write_plan(split.save_plan, plan)
    if given.picture:
        with storage.open_output(given.picture) as file:
            file.write(draw_schedule(plan).encode())
    if given.json:
        say_text(json.dumps(_as_json(plan), indent=1))
        return
    say(*format_plan_lines(plan, memory, split.memory_margin, source))


def _find_config_file(words: list[str]) -> str | None:
    """Return the file named by --config, or None."""
    for place, word in enumerate(words):
        if word == "--config":
            return words[place + 1] if place + 1 < len(words) else None
        if word.startswith("--config="):
            return word.removeprefix("--config=")
    return None


def _check_outputs(given: Namespace, config_file: str | None, config: Config, split: SplitSection) -> None:
    """Raise an error if an output is an input, is named twice, or would replace another type of file."""
    data = split_paths(config.data.train_data) if config.data.train_data else []
    inputs = [split.plan, config_file, config.model.model_config, *data]
    if split.save_plan:
        check_output(split.save_plan, inputs, PLAN_FORM, overwrite=given.overwrite)
    if given.picture:
        check_output(given.picture, [*inputs, split.save_plan], SVG, overwrite=given.overwrite)


def _make_parser() -> Parser:
    parser = Parser(PROG, _EXAMPLE, _SUMMARY)
    parser.usage = "%(prog)s --devices N --memory GB [--config FILE] [--KEY VALUE ...]"
    parser.add_argument("--devices", type=parse_positive, metavar="N", help="number of devices")
    memory = "memory of a device in GB of 10^9 bytes (default: the memory of the device in --hardware)"
    parser.add_argument("--memory", metavar="GB", help=memory)
    hardware = (
        f"device whose speed is assumed: {', '.join(SHEETS)}, or a number, the TFLOP/s that a device reaches "
        f"(default: {DEFAULT_DEVICE})"
    )
    parser.add_argument("--hardware", metavar="NAME", help=hardware)
    parser.add_argument(
        "--output", metavar="FILE", help="write the plan as JSON, for the flag --plan of pretrain and split"
    )
    parser.add_argument(
        "--picture",
        metavar="FILE",
        help="draw the order and times of an update's passes in this SVG file, whose name ends in .svg",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    add_overwrite(parser)
    return parser


def _add_keys_help(parser: Parser) -> None:
    """List the common configuration keys in the help. ``trainer.config`` parses them, not this parser."""
    from trainer.config.help import add_keys_help  # not needed without --help
    from trainer.config.help_keys import list_common_keys

    parser.add_argument(
        "--config",
        metavar="FILE",
        help="JSON file with configuration keys, or the name of a configuration that comes with the trainer",
    )
    add_keys_help(parser, list_common_keys("split"), "split", {})


def _make_plan(config: Config, devices: int | None, named: str | None) -> tuple[Plan, int, str]:
    """Plan how to split the configured model over the devices.

    Return the plan, the memory of a device in bytes, and a text that says where the figures of the hardware
    come from.

    With the key profile_layers, the model's layers are timed on this machine's device, which takes some
    seconds.
    devices: number of devices.
    named: value of --hardware, or None.
    """
    from trainer.splitting.plan.planner import make_plan  # imports torch

    is_profiled = config.split.profile_layers
    if is_profiled:
        from trainer.devices.choice import choose_device
        from trainer.devices.opening import find_device, set_device
        from trainer.splitting.plan.profile import find_attention, measure_costs
        from trainer.workers.choice import find_collective

        config = set_device(config, choose_device(config).name)
    hardware, model = find_hardware(named, config), _find_model(config)
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
        examples=count_configured_examples(config, devices),
        devices=devices,
        memory=hardware.memory,
        bandwidth=hardware.bandwidth,
        rate=hardware.rate,
        head=_find_task(config),
    )
    costs = None
    if is_profiled:
        device = find_device(config)
        request = replace(request, attention=find_attention(device))
        say_error(f"trainer: timing the model's layers on device {device.name}")
        costs = measure_costs(request, device, find_collective("single", device))
    return make_plan(request, costs), hardware.memory, hardware.source


def _read_fitting_plan(path: str, config: Config, devices: int | None) -> Plan:
    """Read a plan from a file, and check that it fits the configured model and number of devices."""
    from trainer.splitting.plan.fit import check_fits  # imports torch
    from trainer.splitting.plan.parts import find_head

    plan = read_plan(path)
    model = _find_model(config)
    says_task = config.is_finetuning or config.data.objective or config.data.train_data
    check_fits(
        plan,
        model=model or read_model_config(plan.model, path),
        devices=devices or plan.devices,
        sequence_length=config.data.max_seq_length or plan.sequence_length,
        precision=config.update.precision if model else plan.precision,
        optimiser=config.update.optimiser if model else plan.optimiser,
        where=path,
        head=find_head(_find_task(config)) if says_task else None,
    )
    return plan


def _find_model(config: Config) -> ModelConfig | None:
    """Return the configured model, or None if no key that describes a model is set."""
    settings = config.model_settings
    return read_model_config(settings, config.model.model_config or "model") if settings else None


def _find_task(config: Config) -> str:
    """Return the task that the planned run will learn, which determines the heads of the model.

    It is the configured task. Without it, the objective or the training data determine the task.
    SettingsError if no task belongs to the objective, or if the data have another objective than configured.
    """
    from trainer.tasks.choice import find_objective_task

    if config.is_finetuning:
        return config.task
    objective, paths = config.data.objective, config.data.train_data
    if paths is None or config.data.generated_data:
        return find_objective_task(objective or DEFAULT_OBJECTIVE, "objective is")
    try:
        data = open_dataset(split_paths(paths), unverified=config.data.unverified, split="training")
    # with --objective, a plan can be made on a machine that does not have the data
    except MissingInputError as error:
        if objective is None:
            raise MissingInputError(f"{error}; give --objective NAME to plan without the data") from None
        return find_objective_task(objective, "objective is")
    found = data.layout.objective
    if objective not in (None, found):
        raise SettingsError(
            f"{data.name}: has the objective {found}, objective is {objective}; leave out --objective"
        )
    return find_objective_task(found, f"{data.name}: has the objective")


def _as_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as a JSON object, with figures about it such as an update's seconds and a stage's
    memory.
    """
    from trainer.splitting.plan.parts import count_weights  # imports torch

    return {
        "strategy": plan.strategy,
        "parameters": count_weights(plan),
        "devices": plan.devices,
        "examples": plan.examples,
        "seconds": plan.seconds,
        "bubble": plan.bubble,
        "sequences_per_second": plan.examples / plan.seconds,
        "fullest_stage": plan.fullest_stage,
        "fullest_bytes": plan.stages[plan.fullest_stage].memory.total,
        "plan": plan.as_json(),
    }
