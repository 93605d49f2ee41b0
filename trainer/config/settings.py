"""The trainer's configuration: one frozen object of sections.

Each key is a field of its section, which declares type, range, meaning and default. A JSON file and the
checkpoint have all keys side by side, in the order of the sections and of their fields.
Precedence: command line, JSON file (both read by ``trainer.config.flags``), defaults.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bertdata.config.value_check import check_names
from trainer.config.data import DataSection
from trainer.config.keys import (
    CORE,
    DEVICE_OPTIONS,
    DEVICES,
    SECTIONS,
    device_properties,
    find_section,
    properties,
    section_keys,
)
from trainer.config.model import MODEL_SECTION, ModelKeys
from trainer.config.run import ReportsSection, RunSection
from trainer.config.schedule import Schedule, ScheduleKind, ScheduleSection, Warmup
from trainer.config.section import PRETRAINING, Section, check
from trainer.config.update import UpdateSection
from trainer.registry import find

if TYPE_CHECKING:
    from trainer.config.loading import LoadingSection
    from trainer.config.recipe import RecipeSection

SectionKind = TypeVar("SectionKind", bound=Section)


@dataclass(frozen=True, kw_only=True)
class Config:
    """All keys by section, valid alone and together."""

    run: RunSection = field(default_factory=RunSection)
    data: DataSection = field(default_factory=DataSection)
    model: ModelKeys = field(default_factory=MODEL_SECTION)
    update: UpdateSection = field(default_factory=UpdateSection)
    schedule: ScheduleSection = field(default_factory=ScheduleSection)
    reports: ReportsSection = field(default_factory=ReportsSection)
    others: Mapping[str, Any] = field(default_factory=dict)
    """The other sections by name, of which keys are given that differ from their defaults."""

    def __post_init__(self) -> None:
        for name in self.schedule_kind.needed:
            given = self._of_formula.get(name) is not None
            check(given, f"lr_schedule {self.schedule_name} needs {name}")
        if not self.counts_updates:
            self.find_warmup(self.schedule.steps)

    @classmethod
    def of(cls, **given: Any) -> "Config":
        """The configuration with the given keys, side by side as in a JSON file. The rest are defaults."""
        keys = deepcopy(given)
        keys |= keys.pop(DEVICE_OPTIONS, {})
        known = properties() | device_properties()
        check_names(keys, known)
        parts: dict[str, Any] = {}
        others: dict[str, Section] = {}
        for section in (*SECTIONS, *DEVICES):
            values = {name: keys[name] for name in section_keys(section) if name in keys}
            if section in CORE:
                parts[section] = CORE[section](**values)
            elif any(_differs(value, known[name].get("default")) for name, value in values.items()):
                others[section] = find_section(section)(**values)
        return cls(**parts, others=others)

    def changed(self, **given: Any) -> "Config":
        """A copy with the given keys changed."""
        return Config.of(**self.as_json() | given)

    def as_json(self) -> dict[str, Any]:
        """All keys side by side, the given device options in a dictionary of their own."""
        keys: dict[str, Any] = {name: item.get("default") for name, item in properties().items()}
        options: dict[str, Any] = {}
        for name in CORE:
            keys |= getattr(self, name).values()
        for name, section in self.others.items():
            if name in DEVICES:
                options |= section.given()
            else:
                keys |= section.values()
        return deepcopy(keys | {DEVICE_OPTIONS: options})

    def section(self, kind: type[SectionKind]) -> SectionKind:
        """The section of that kind, with defaults where none of its keys is given."""
        return next((one for one in self.others.values() if isinstance(one, kind)), None) or kind()

    @property
    def recipe(self) -> "RecipeSection | None":
        """The end of the schedule, growing updates and counts of tokens, where any is given."""
        return cast("RecipeSection | None", self.others.get("recipe"))

    @property
    def loading(self) -> "LoadingSection | None":
        """Padded rows, length bins and packing at load, where any is asked for."""
        return cast("LoadingSection | None", self.others.get("loading"))

    @property
    def has_rows(self) -> bool:
        """True if padded rows are asked for in the place of flat batches."""
        return self.loading is not None and self.loading.rows

    @property
    def phase(self) -> int:
        """The phase of pre-training, 1 or 2."""
        return 2 if "start" in self.others and self.others["start"].phase2 else 1

    @property
    def averages_each(self) -> bool:
        """True if the workers average the gradients of each micro-batch, not once an update."""
        return not getattr(self.others.get("workers"), "allreduce_post_accumulation", True)

    @property
    def counts_updates(self) -> bool:
        """True if the data give the number of updates."""
        by_tokens = self.recipe is not None and self.recipe.train_tokens is not None
        return by_tokens or self.schedule.num_train_epochs is not None

    @property
    def task(self) -> str:
        """The name of what is learned."""
        return str(self.others["finetuning"].task) if "finetuning" in self.others else PRETRAINING

    @property
    def is_finetuning(self) -> bool:
        return "finetuning" in self.others and bool(self.others["finetuning"].is_finetuning)

    @property
    def plan(self) -> str | None:
        """The plan to divide the model by, where one is given."""
        return getattr(self.others.get("split"), "plan", None)

    @property
    def masking_at_load(self) -> str | None:
        """The kind of masks that are drawn when examples are loaded. None: none are."""
        keys = self.others.get("masking")
        return str(keys.masking) if keys is not None and keys.is_at_load else None

    @property
    def model_settings(self) -> dict[str, Any]:
        """The keys of a ModelConfig: those of the model's file, overridden by keys that are given."""
        own = self.others["modernbert"].values() if "modernbert" in self.others else {}
        return self.model.settings() | {name: value for name, value in own.items() if value is not None}

    @property
    def schedule_name(self) -> str:
        """The name of the learning-rate schedule, by default the optimiser's usual one."""
        return self.schedule.lr_schedule or str(find("preset", self.update.optimiser).schedule)

    @property
    def sums_micro_batches(self) -> bool:
        """True if the gradients of a replica's micro-batches are added up, not averaged."""
        return getattr(self.others.get("ipu"), "reduction_type", None) == "sum"

    @property
    def schedule_kind(self) -> ScheduleKind:
        """The learning-rate schedule's formula, and how it reads the settings."""
        kind: ScheduleKind = find("schedule", self.schedule_name)
        return kind

    @property
    def _of_formula(self) -> dict[str, Any]:
        """The numbers of schedules' formulas that are given, by key."""
        sections = [self.others[name] for name in ("formula", "recipe") if name in self.others]
        return {name: value for section in sections for name, value in section.values().items()}

    def find_warmup(self, steps: int) -> Warmup:
        """The warm-up of a training of so many updates. SettingsError where it does not end in them."""
        return self.schedule_kind.find_warmup(self.schedule.warmup, steps)

    def make_schedule(self, workers: int) -> Schedule:
        """The learning rate as a function of the update, counted from 0."""
        kind, steps = self.schedule_kind, self.schedule.steps
        rate = self.schedule.base_learning_rate * (workers if kind.rate_of_one_worker else 1)
        values = self._of_formula | {"adam": self.update.optimiser.startswith("adam")}
        given = {name: values[name] for name in kind.defaults if values.get(name) is not None}
        return kind.formula(rate, steps, self.find_warmup(steps), **given)

    def require(self, *names: str) -> None:
        """SettingsError for the first of the keys that is not given."""
        keys = self.as_json()
        for name in names:
            check(keys[name] is not None, f"{name} is missing: give --{name.replace('_', '-')}")


def _differs(value: Any, default: Any) -> bool:
    """True for a value that is not the default, or of another type: 0 differs from 0.0 and from False."""
    return type(value) is not type(default) or bool(value != default)
