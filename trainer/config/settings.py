"""The trainer's configuration: the class Config, and the names and JSON Schemas of its keys.

Each key is a field of its section, which declares type, range, help and default. A JSON file and a checkpoint
hold all keys in a single flat object, in the order of the sections and their fields. Command line flags
override the JSON file, which overrides defaults. ``trainer.config.flags`` reads flags and file.
"""

from argparse import SUPPRESS
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import cache, partial
from inspect import Parameter
from typing import Any

from bertdata.config.declared import derive_schemas
from bertdata.config.settings import require
from bertdata.config.value_check import check_names, list_types, read_value
from bertdata.errors import SettingsError
from trainer.config.schedules.form import Schedule, ScheduleKind, Warmup
from trainer.config.sections.data import DataSection, LoadingSection
from trainer.config.sections.devices import CudaSection, HpuSection, IpuSection, XlaSection
from trainer.config.sections.evaluation import EvaluationSection
from trainer.config.sections.finetuning import FinetuningSection
from trainer.config.sections.masking import MaskingSection
from trainer.config.sections.model import MODEL_SECTION, MODERNBERT_SECTION, ModelKeys
from trainer.config.sections.reports import LoggersSection, ReportsSection
from trainer.config.sections.run import RunSection, StartSection, WorkersSection
from trainer.config.sections.schedule import FormulaSection, RecipeSection, ScheduleSection
from trainer.config.sections.section import Section
from trainer.config.sections.split import SplitSection
from trainer.config.sections.update import OptimiserSection, ScalingSection, UpdateSection
from trainer.plugins import find

DEVICES = ("cuda", "hpu", "ipu", "xla")
"""Names of the sections whose keys affect only some devices."""

DEVICE_OPTIONS = "device_options"
"""Key of the configuration's JSON under which the keys of devices are stored. Its value is an object with all
such keys that are set.
"""

_IS_ADAM = "adam"
"""Name of an argument that a schedule's formula may have: whether the optimiser is a form of Adam. It is not
a key.
"""


@dataclass(frozen=True, kw_only=True)
class Config:
    """The trainer's configuration: all keys, grouped in sections. Every value, and every combination of
    values, is checked.
    """

    run: RunSection = field(default_factory=RunSection)
    workers: WorkersSection = field(default_factory=WorkersSection)
    start: StartSection = field(default_factory=StartSection)
    evaluation: EvaluationSection = field(default_factory=EvaluationSection)
    data: DataSection = field(default_factory=DataSection)
    loading: LoadingSection = field(default_factory=LoadingSection)
    masking: MaskingSection = field(default_factory=MaskingSection)
    model: ModelKeys = field(default_factory=MODEL_SECTION)
    modernbert: Section = field(default_factory=MODERNBERT_SECTION)
    update: UpdateSection = field(default_factory=UpdateSection)
    optimiser: OptimiserSection = field(default_factory=OptimiserSection)
    scaling: ScalingSection = field(default_factory=ScalingSection)
    split: SplitSection = field(default_factory=SplitSection)
    schedule: ScheduleSection = field(default_factory=ScheduleSection)
    formula: FormulaSection = field(default_factory=FormulaSection)
    recipe: RecipeSection = field(default_factory=RecipeSection)
    reports: ReportsSection = field(default_factory=ReportsSection)
    loggers: LoggersSection = field(default_factory=LoggersSection)
    finetuning: FinetuningSection = field(default_factory=FinetuningSection)
    cuda: CudaSection = field(default_factory=CudaSection)
    hpu: HpuSection = field(default_factory=HpuSection)
    ipu: IpuSection = field(default_factory=IpuSection)
    xla: XlaSection = field(default_factory=XlaSection)

    def __post_init__(self) -> None:
        # A schedule's formula is a function whose keyword arguments have the names of keys. A key must be set
        # if its argument has no default, such as lr_schedule_by_step of the schedule "custom".
        keys, asked = self.values(), self.schedule_kind.defaults
        check_names(asked, {*keys, _IS_ADAM}, f"lr_schedule {self.schedule_name}: a keyword of its formula, ")
        for name, default in asked.items():
            given = default is not Parameter.empty or keys[name] is not None
            require(given, f"lr_schedule {self.schedule_name} needs {name}")
        if not self.counts_updates:
            self.find_warmup(self.schedule.steps)
        budget, multiple = self.data.token_budget or 0, self.update.token_multiple
        require(
            budget % multiple == 0,
            f"token_budget is {budget}, expected a multiple of {multiple}, because precision is "
            f"{self.update.precision}",
        )

    @classmethod
    def of(cls, **given: Any) -> "Config":
        """Return a configuration in which the named keys have the given values. All other keys have their
        defaults.

        given: values by the names that the keys have in a JSON file.
        """
        given = deepcopy(given)
        given |= given.pop(DEVICE_OPTIONS, {})
        given = rename_to_keys(given)
        check_names(given, get_key_schemas() | get_device_key_schemas())
        sections: dict[str, Any] = {
            section: kind(**{name: given[name] for name in derive_schemas(kind) if name in given})
            for section, kind in get_section_classes().items()
        }
        return cls(**sections)

    def changed(self, **given: Any) -> "Config":
        """Return a copy of the configuration in which the named keys have the given values."""
        return Config.of(**{**self.values(), **rename_to_keys(given)})

    def values(self) -> dict[str, Any]:
        """Return the values of all keys, in the order of the sections.

        Keys that affect only some devices come last, in a nested dictionary ``device_options``.
        """
        keys: dict[str, Any] = {}
        for section in SECTIONS:
            keys |= getattr(self, section).values()
        options: dict[str, Any] = {}
        for section in DEVICES:
            options |= getattr(self, section).values()
        keys[DEVICE_OPTIONS] = {name: value for name, value in options.items() if value is not None}
        return keys

    def as_json(self) -> dict[str, Any]:
        """Return a copy of ``values`` that the caller may change."""
        return deepcopy(self.values())

    def require(self, *names: str) -> None:
        """Raise SettingsError for the first of these keys that the user has not set, so that its value is
        None.
        """
        keys = self.values()
        for name in names:
            require(keys[name] is not None, f"{name} is missing: give --{name.replace('_', '-')}")

    @property
    def phase(self) -> int:
        """Phase of pre-training, 1 or 2."""
        return 2 if self.start.phase2 else 1

    @property
    def steps_of_update(self) -> int:
        """Number of steps that an update counts as in logs and in names of checkpoints. It is 1, or with
        MLPerf's way of counting the number of micro-batches.
        """
        return self.formula.steps_per_update

    @property
    def counts_updates(self) -> bool:
        """True if the number of updates is computed from a number of epochs or tokens, because ``steps`` is
        not set.
        """
        return self.recipe.train_tokens is not None or self.schedule.num_train_epochs is not None

    @property
    def task(self) -> str:
        """Name of the learning task."""
        return self.finetuning.task

    @property
    def is_finetuning(self) -> bool:
        """True if the run fine-tunes a task instead of pre-training."""
        return self.finetuning.is_finetuning

    @property
    def masking_at_load(self) -> str | None:
        """Way in which masks are drawn while examples are loaded, or None for the masks stored in the
        dataset.
        """
        return None if self.masking.masking == "static" else self.masking.masking

    @property
    def model_settings(self) -> dict[str, Any]:
        """Arguments of the model configuration: values of the model file, overridden by keys that are set."""
        own = {name: value for name, value in self.modernbert.values().items() if value is not None}
        return self.model.settings() | own

    @property
    def schedule_name(self) -> str:
        """Name of the learning-rate schedule. The default is the optimiser's usual schedule."""
        return self.schedule.lr_schedule or str(find("optimiser", self.update.optimiser).schedule)

    @property
    def schedule_kind(self) -> ScheduleKind:
        """Formula of the learning-rate schedule, and how its program reads the settings."""
        kind: ScheduleKind = find("schedule", self.schedule_name)
        return kind

    def find_warmup(self, steps: int) -> Warmup:
        """Return the warm-up of a training with ``steps`` updates.

        SettingsError if the warm-up is longer than the training.
        """
        found = Warmup.of(self.schedule.warmup, steps)
        ends = found.updates < steps or self.schedule_kind.may_end_in_warmup
        require(
            ends,
            f"warmup is {found.updates} updates, expected fewer than steps ({steps}); for a short trial run "
            "give steps_this_run",
        )
        return found

    def make_schedule(self, workers: int) -> Schedule:
        """Return the learning rate as a function of the update, counted from 0.

        workers: number of workers, by which some programs multiply the base rate.
        """
        kind, steps = self.schedule_kind, self.schedule.steps
        rate = self.schedule.base_learning_rate * (workers if kind.rate_of_one_worker else 1)
        values = {**self.values(), _IS_ADAM: self.update.optimiser.startswith("adam")}
        given = {name: values[name] for name in kind.defaults if values[name] is not None}
        return kind.formula(rate, steps, self.find_warmup(steps), **given)


def get_section_classes() -> dict[str, type[Section]]:
    """Return the class of each section by its name, in the order of the configuration."""
    return {item.name: item.default_factory for item in fields(Config)}  # type: ignore[misc]


SECTIONS = tuple(name for name in get_section_classes() if name not in DEVICES)
"""Sections whose keys affect every device, in the order of their keys."""


@cache
def get_key_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each key: first the keys of SECTIONS, in order, then device_options."""
    found = {
        name: {"section": section, **item}
        for section in SECTIONS
        for name, item in derive_schemas(get_section_classes()[section]).items()
    }
    options = {
        "description": "keys of other trainers that have an effect on some devices only",
        "default": {},
        "type": "object",
        "additionalProperties": False,
        "properties": get_device_key_schemas(),
    }
    return found | {DEVICE_OPTIONS: options}


@cache
def get_device_key_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each key that affects only some types of devices.

    Each schema has an additional entry ``devices``, which lists the types.
    """
    found: dict[str, dict[str, Any]] = {}
    for device in DEVICES:
        for name, item in derive_schemas(get_section_classes()[device]).items():
            others = found[name]["devices"] if name in found else []
            found[name] = {**item, "devices": [*others, device]}
    return found


@cache
def get_known_names() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of every name that a configuration file or a command line may contain."""
    own = {name: item for name, item in get_key_schemas().items() if name != DEVICE_OPTIONS}
    own |= {name: own[key] for name, (key, _) in get_phase_names().items()}
    own |= {name: own[key] for name, key in get_other_names().items()}
    return own | get_device_key_schemas()


@cache
def get_other_names() -> dict[str, str]:
    """Return a table from other spellings and older names to the keys that they mean."""
    return {name: key for key, item in get_key_schemas().items() for name in item.get("other_names", ())}


def rename_to_keys(given: dict[str, Any], where: str = "") -> dict[str, Any]:
    """Replace other spellings and older names of keys, such as optimizer for optimiser. Return the values by
    key.

    SettingsError if two names of a key have different values.
    where: the file and a colon, with which the message begins.
    """
    keys: dict[str, Any] = {}
    for name, value in given.items():
        key = get_other_names().get(name, name)
        if key in keys and keys[key] != value:
            raise SettingsError(f"{where}{name} is another name of {key}: they contradict each other")
        keys[key] = value
    return keys


@cache
def get_phase_names() -> dict[str, tuple[str, int]]:
    """Return the names for the data of a single phase. For each name, return its key and the phase as 0 or 1.

    For example, train_data_phase2 gives (train_data, 1).
    """
    keys = [name for name, item in get_key_schemas().items() if "phases" in item]
    return {f"{key}_phase{phase + 1}": (key, phase) for key in keys for phase in range(2)}


def list_section_keys(section: str) -> list[str]:
    """Return the names of a section's keys, in order."""
    return list(derive_schemas(get_section_classes()[section]))


def format_flag(name: str) -> str:
    """Return the flag of a key or of another spelling: ``train_data`` gives ``--train-data``."""
    return f"--{name.replace('_', '-')}"


def add_flag(parser: Any, name: str) -> None:
    """Add the flag of a key, or of another spelling, to an argparse parser. The parsed value is called
    ``name``.
    """
    item = get_known_names()[name]
    more: dict[str, Any] = {}
    if "boolean" in list_types(item):
        more = {"nargs": "?", "const": True}
    elif "phases" in item:
        more = {"action": "append"}
    elif "by_phase" in item:
        more = {"nargs": "+"}
    more |= {"type": partial(read_word, name), "default": SUPPRESS}
    parser.add_argument(format_flag(name), dest=name, **more)


def join_values(found: dict[str, Any]) -> dict[str, Any]:
    """Join the values of a repeated dataset flag with ``+``, and unpack lists of a single value.

    found: parsed values by name, changed in place and returned.
    """
    for name, value in found.items():
        if "phases" in get_known_names().get(name, {}):
            found[name] = "+".join(filter(None, value)) or None
        elif isinstance(value, list) and "by_phase" in get_known_names()[name] and len(value) == 1:
            found[name] = value[0]
    return found


def read_word(name: str, word: str) -> Any:
    """Convert a word of the command line to a value of the key's type.

    SettingsError if the word cannot be converted. A word for a list of texts is split at its commas.

    name: the key, or another spelling of it.
    word: the text that the user typed after the flag.
    """
    item = get_known_names()[name]
    is_list = item.get("items") == {"type": "string"}
    if is_list and not word.lstrip().startswith("["):
        return word.split(",")
    return read_value(word, list_types(item), "a list of texts" if is_list else format_flag(name))
