"""The trainer's configuration: its keys and their names, and one frozen object of sections.

Each key is a field of its section, which declares type, range, meaning and default. A JSON file and the
checkpoint have all keys side by side, in the order of the sections and of their fields.
Precedence: command line, JSON file (both read by ``trainer.config.flags``), defaults.
"""

from argparse import SUPPRESS
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, fields
from functools import cache, partial
from inspect import Parameter
from typing import Any, TypeVar

from bertdata.config.value_check import check_names, read_value, types_of
from schemas import load_schema
from trainer.config.model import ModelKeys
from trainer.config.section import (
    DataSection,
    ReportsSection,
    RunSection,
    ScheduleSection,
    Section,
    UpdateSection,
    check,
)
from trainer.config.updates import Schedule, ScheduleKind, Warmup
from trainer.plugins import TABLE as CORE
from trainer.plugins import find

DEVICES = ("cuda", "hpu", "ipu", "xla")
"""The sections of keys that have an effect on some devices only."""

SECTIONS = tuple(name for name in CORE["keys"] if name not in DEVICES)
"""The other sections, in the order of their keys."""

DEVICE_OPTIONS = "device_options"
"""The key that holds, in JSON, the keys of devices' sections that are given."""


def properties() -> dict[str, dict[str, Any]]:
    """The schema of each key, in the order of the sections."""
    return load_schema("trainer")["properties"]


def device_properties() -> dict[str, dict[str, Any]]:
    """The schema of each key that has an effect on some devices only."""
    return properties()[DEVICE_OPTIONS]["properties"]


@cache
def known_names() -> dict[str, dict[str, Any]]:
    """The schema of every name that a file or a command line may contain."""
    own = {name: item for name, item in properties().items() if name != DEVICE_OPTIONS}
    own |= {name: own[key] for name, (key, _) in phase_names().items()}
    own |= {name: own[key] for name, key in older_names().items()}
    return own | device_properties()


@cache
def older_names() -> dict[str, str]:
    """The key of each name that this trainer used before."""
    return {name: key for key, item in properties().items() for name in item.get("older_names", ())}


@cache
def phase_names() -> dict[str, tuple[str, int]]:
    """The names that give a key's value for one phase: the key, and the phase counted from 0."""
    keys = [name for name, item in properties().items() if "phases" in item]
    return {f"{key}_phase{phase + 1}": (key, phase) for key in keys for phase in range(2)}


def section_keys(section: str) -> list[str]:
    """The keys of a section. A device's section has the keys that have an effect on it."""
    own = [name for name, item in properties().items() if item.get("section") == section]
    return own or [name for name, item in device_properties().items() if section in item["devices"]]


def flag(name: str) -> str:
    """The flag of a key or of another name."""
    return f"--{name.replace('_', '-')}"


def add_flag(parser: Any, name: str, help: str = SUPPRESS) -> None:
    """Add the flag of a name. Its value keeps the name as its destination."""
    item = known_names()[name]
    more: dict[str, Any] = {}
    if "boolean" in types_of(item):
        more = {"nargs": "?", "const": True}
    elif "phases" in item:
        more = {"action": "append"}
    elif "by_phase" in item:
        more = {"nargs": "+"}
    more |= {"type": partial(read_word, name), "metavar": "X", "default": SUPPRESS, "help": help}
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


SectionKind = TypeVar("SectionKind", bound=Section)


@dataclass(frozen=True, kw_only=True)
class Config:
    """All keys by section, valid alone and together."""

    keys: Mapping[str, Any]
    """The value of every key, side by side as in a JSON file."""
    run: RunSection
    data: DataSection
    model: ModelKeys
    update: UpdateSection
    schedule: ScheduleSection
    reports: ReportsSection
    others: Mapping[str, Any]
    """The other sections by name, of which keys are given that differ from their defaults."""

    def __post_init__(self) -> None:
        for name, default in self.schedule_kind.defaults.items():
            given = default is not Parameter.empty or self.keys[name] is not None
            check(given, f"lr_schedule {self.schedule_name} needs {name}")
        if not self.counts_updates:
            self.find_warmup(self.schedule.steps)

    @classmethod
    def of(cls, **given: Any) -> "Config":
        """The configuration with the given keys, side by side as in a JSON file. The rest are defaults."""
        given = deepcopy(given)
        given |= given.pop(DEVICE_OPTIONS, {})
        known = properties() | device_properties()
        check_names(given, known)
        keys = {name: given.get(name, item.get("default")) for name, item in properties().items()}
        options = {name: given.get(name) for name in device_properties()}
        keys[DEVICE_OPTIONS] = {name: value for name, value in options.items() if value is not None}
        always = {field.name for field in fields(cls)}
        sections: dict[str, Any] = {}
        for section in (*SECTIONS, *DEVICES):
            values = {name: given[name] for name in section_keys(section) if name in given}
            if section in always or any(
                _differs(value, known[name].get("default")) for name, value in values.items()
            ):
                sections[section] = find("keys", section)(**values)
        own = {name: sections.pop(name) for name in always & sections.keys()}
        return cls(keys=keys, others=sections, **own)

    def changed(self, **given: Any) -> "Config":
        """A copy with the given keys changed."""
        return Config.of(**{**self.keys, **given})

    def as_json(self) -> dict[str, Any]:
        """A copy of all keys, the given device options in a dictionary of their own."""
        return deepcopy(dict(self.keys))

    def section(self, kind: type[SectionKind]) -> SectionKind:
        """The section of that kind, with defaults where none of its keys is given."""
        return next((one for one in self.others.values() if isinstance(one, kind)), None) or kind()

    def require(self, *names: str) -> None:
        """SettingsError for the first of the keys that is not given."""
        for name in names:
            check(self.keys[name] is not None, f"{name} is missing: give --{name.replace('_', '-')}")

    @property
    def phase(self) -> int:
        """The phase of pre-training, 1 or 2."""
        return 2 if self.keys["phase2"] else 1

    @property
    def counts_updates(self) -> bool:
        """True if the data give the number of updates."""
        return self.keys["train_tokens"] is not None or self.schedule.num_train_epochs is not None

    @property
    def task(self) -> str:
        """The name of what is learned."""
        return str(self.keys["task"])

    @property
    def is_finetuning(self) -> bool:
        return "finetuning" in self.others and bool(self.others["finetuning"].is_finetuning)

    @property
    def masking_at_load(self) -> str | None:
        """The kind of masks that are drawn when examples are loaded. None: none are."""
        return None if self.keys["masking"] == "static" else str(self.keys["masking"])

    @property
    def model_settings(self) -> dict[str, Any]:
        """The keys of a ModelConfig: those of the model's file, overridden by keys that are given."""
        own = {name: self.keys[name] for name in section_keys("modernbert")}
        return self.model.settings() | {name: value for name, value in own.items() if value is not None}

    @property
    def schedule_name(self) -> str:
        """The name of the learning-rate schedule, by default the optimiser's usual one."""
        return self.schedule.lr_schedule or str(find("preset", self.update.optimiser).schedule)

    @property
    def schedule_kind(self) -> ScheduleKind:
        """The learning-rate schedule's formula, and how it reads the settings."""
        return find("schedule", self.schedule_name)

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
        values = {**self.keys, "adam": self.update.optimiser.startswith("adam")}
        given = {name: values[name] for name in kind.defaults if values[name] is not None}
        return kind.formula(rate, steps, self.find_warmup(steps), **given)


def _differs(value: Any, default: Any) -> bool:
    """True for a value that is not the default, or of another type: 0 differs from 0.0 and from False."""
    return type(value) is not type(default) or bool(value != default)
