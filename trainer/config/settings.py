"""The trainer's configuration: its keys and their names, and one frozen object of sections.

Each key is a field of its section, which declares type, range, meaning and default. A JSON file and the
checkpoint have all keys side by side, in the order of the sections and of their fields.
Precedence: command line, JSON file (both read by ``trainer.config.flags``), defaults.
"""

from argparse import SUPPRESS
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import cache, partial
from inspect import Parameter
from typing import Any

from bertdata.config.declared import schema_of
from bertdata.config.settings import check
from bertdata.config.value_check import check_names, read_value, types_of
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
"""The sections of keys that have an effect on some devices only."""

DEVICE_OPTIONS = "device_options"
"""The key that holds, in JSON, the keys of devices' sections that are given."""

_IS_ADAM = "adam"
"""A keyword of formulas that is no key: True where the optimiser is a kind of Adam."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """All keys by section, valid alone and together."""

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
        keys, asked = self.values(), self.schedule_kind.defaults
        check_names(asked, {*keys, _IS_ADAM}, f"lr_schedule {self.schedule_name}: a keyword of its formula, ")
        for name, default in asked.items():
            given = default is not Parameter.empty or keys[name] is not None
            check(given, f"lr_schedule {self.schedule_name} needs {name}")
        if not self.counts_updates:
            self.find_warmup(self.schedule.steps)

    @classmethod
    def of(cls, **given: Any) -> "Config":
        """Return the configuration with these keys, side by side as in a JSON file. The rest are defaults."""
        given = deepcopy(given)
        given |= given.pop(DEVICE_OPTIONS, {})
        given = by_key(given)
        check_names(given, properties() | device_properties())
        sections: dict[str, Any] = {
            section: kind(**{name: given[name] for name in schema_of(kind) if name in given})
            for section, kind in section_kinds().items()
        }
        return cls(**sections)

    def changed(self, **given: Any) -> "Config":
        """Return a copy with these keys changed."""
        return Config.of(**{**self.values(), **by_key(given)})

    def values(self) -> dict[str, Any]:
        """Return all keys side by side, in the order of the sections, then the given device options."""
        keys: dict[str, Any] = {}
        for section in SECTIONS:
            keys |= getattr(self, section).values()
        options: dict[str, Any] = {}
        for section in DEVICES:
            options |= getattr(self, section).values()
        keys[DEVICE_OPTIONS] = {name: value for name, value in options.items() if value is not None}
        return keys

    def as_json(self) -> dict[str, Any]:
        """Return a copy of all keys, the given device options in a dictionary of their own."""
        return deepcopy(self.values())

    def require(self, *names: str) -> None:
        """SettingsError for the first of the keys that is not given."""
        keys = self.values()
        for name in names:
            check(keys[name] is not None, f"{name} is missing: give --{name.replace('_', '-')}")

    @property
    def phase(self) -> int:
        """The phase of pre-training, 1 or 2."""
        return 2 if self.start.phase2 else 1

    @property
    def steps_of_update(self) -> int:
        """Steps that checkpoints' numbers and logs count for an update: 1, or MLPerf's micro-steps."""
        return self.formula.steps_per_update

    @property
    def counts_updates(self) -> bool:
        """True if the data give the number of updates."""
        return self.recipe.train_tokens is not None or self.schedule.num_train_epochs is not None

    @property
    def task(self) -> str:
        """The name of what is learned."""
        return self.finetuning.task

    @property
    def is_finetuning(self) -> bool:
        return self.finetuning.is_finetuning

    @property
    def masking_at_load(self) -> str | None:
        """The kind of masks that are drawn when examples are loaded. None: none are."""
        return None if self.masking.masking == "static" else self.masking.masking

    @property
    def model_settings(self) -> dict[str, Any]:
        """The keys of a ModelConfig: those of the model's file, overridden by keys that are given."""
        own = {name: value for name, value in self.modernbert.values().items() if value is not None}
        return self.model.settings() | own

    @property
    def schedule_name(self) -> str:
        """The name of the learning-rate schedule, by default the optimiser's usual one."""
        return self.schedule.lr_schedule or str(find("optimiser", self.update.optimiser).schedule)

    @property
    def schedule_kind(self) -> ScheduleKind:
        """The learning-rate schedule's formula, and how it reads the settings."""
        kind: ScheduleKind = find("schedule", self.schedule_name)
        return kind

    def find_warmup(self, steps: int) -> Warmup:
        """The warm-up of a training of so many updates. SettingsError where it does not end in them."""
        found = Warmup.of(self.schedule.warmup, steps)
        wanted = f"expected fewer than steps ({steps}); for a short trial run give steps_this_run"
        ends = found.updates < steps or self.schedule_kind.may_end_in_warmup
        check(ends, f"warmup is {found.updates} updates, {wanted}")
        return found

    def make_schedule(self, workers: int) -> Schedule:
        """The learning rate as a function of the update, counted from 0."""
        kind, steps = self.schedule_kind, self.schedule.steps
        rate = self.schedule.base_learning_rate * (workers if kind.rate_of_one_worker else 1)
        values = {**self.values(), _IS_ADAM: self.update.optimiser.startswith("adam")}
        given = {name: values[name] for name in kind.defaults if values[name] is not None}
        return kind.formula(rate, steps, self.find_warmup(steps), **given)


def section_kinds() -> dict[str, type[Section]]:
    """Return the class of each section by its name, in the order of the configuration."""
    return {item.name: item.default_factory for item in fields(Config)}  # type: ignore[misc]


SECTIONS = tuple(name for name in section_kinds() if name not in DEVICES)
"""The sections whose keys have an effect on every device, in the order of their keys."""


@cache
def properties() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each key, in the order of the sections, and last of device_options."""
    found = {
        name: {"section": section, **item}
        for section in SECTIONS
        for name, item in schema_of(section_kinds()[section]).items()
    }
    options = {
        "description": "keys of other trainers that have an effect on some devices only",
        "default": {},
        "type": "object",
        "additionalProperties": False,
        "properties": device_properties(),
    }
    return found | {DEVICE_OPTIONS: options}


@cache
def device_properties() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each key that has an effect on some devices only."""
    found: dict[str, dict[str, Any]] = {}
    for device in DEVICES:
        for name, item in schema_of(section_kinds()[device]).items():
            others = found[name]["devices"] if name in found else []
            found[name] = {**item, "devices": [*others, device]}
    return found


@cache
def known_names() -> dict[str, dict[str, Any]]:
    """The schema of every name that a file or a command line may contain."""
    own = {name: item for name, item in properties().items() if name != DEVICE_OPTIONS}
    own |= {name: own[key] for name, (key, _) in phase_names().items()}
    own |= {name: own[key] for name, key in other_names().items()}
    return own | device_properties()


@cache
def other_names() -> dict[str, str]:
    """The key of each name that this trainer used before."""
    return {name: key for key, item in properties().items() for name in item.get("other_names", ())}


def by_key(given: dict[str, Any], where: str = "") -> dict[str, Any]:
    """Return the values with every other name replaced by its key: optimizer becomes optimiser.

    SettingsError for two names of a key with different values.
    where: the file, as the beginning of the message.
    """
    keys: dict[str, Any] = {}
    for name, value in given.items():
        key = other_names().get(name, name)
        if key in keys and keys[key] != value:
            raise SettingsError(f"{where}{name} is another name of {key}: they contradict each other")
        keys[key] = value
    return keys


@cache
def phase_names() -> dict[str, tuple[str, int]]:
    """The names that give a key's value for one phase: the key, and the phase counted from 0."""
    keys = [name for name, item in properties().items() if "phases" in item]
    return {f"{key}_phase{phase + 1}": (key, phase) for key in keys for phase in range(2)}


def section_keys(section: str) -> list[str]:
    """Return the keys of a section."""
    return list(schema_of(section_kinds()[section]))


def flag(name: str) -> str:
    """The flag of a key or of another name."""
    return f"--{name.replace('_', '-')}"


def add_flag(parser: Any, name: str) -> None:
    """Add the flag of a name. Its value keeps the name as its destination."""
    item = known_names()[name]
    more: dict[str, Any] = {}
    if "boolean" in types_of(item):
        more = {"nargs": "?", "const": True}
    elif "phases" in item:
        more = {"action": "append"}
    elif "by_phase" in item:
        more = {"nargs": "+"}
    more |= {"type": partial(read_word, name), "default": SUPPRESS}
    parser.add_argument(flag(name), dest=name, **more)


def united(found: dict[str, Any]) -> dict[str, Any]:
    """The values by name, where a repeated flag unites datasets, and one value of a list stands alone."""
    for name, value in found.items():
        if "phases" in known_names().get(name, {}):
            found[name] = "+".join(filter(None, value)) or None
        elif isinstance(value, list) and "by_phase" in known_names()[name] and len(value) == 1:
            found[name] = value[0]
    return found


def read_word(name: str, word: str) -> Any:
    """The value of a flag's word. SettingsError where its type is another. Texts have commas between them."""
    item = known_names()[name]
    is_list = item.get("items") == {"type": "string"}
    if is_list and not word.lstrip().startswith("["):
        return word.split(",")
    return read_value(word, types_of(item), "a list of texts" if is_list else flag(name))
