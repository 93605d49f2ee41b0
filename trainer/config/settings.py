"""The trainer's configuration: one frozen object of sections.

Each key is a field of its section, which declares type, range, meaning and default. A JSON file and the
checkpoint have all keys side by side, in the order of the sections and of their fields.
Precedence: command line, JSON file (both read by ``trainer.config.flags``), defaults.
"""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import Any

from bertdata.config.declared import schema_of
from bertdata.config.value_check import check_names
from trainer.config.data import DataSection
from trainer.config.devices import CudaSection, DeviceSection, HpuSection, IpuSection, XlaSection
from trainer.config.finetuning import FinetuningSection
from trainer.config.masking import MaskingSection
from trainer.config.model import ModelSection
from trainer.config.optimisers import PRESETS
from trainer.config.reports import ReportsSection
from trainer.config.run import RunSection
from trainer.config.schedule import SCHEDULES, Schedule, ScheduleKind, ScheduleSection, Warmup
from trainer.config.section import Section, check
from trainer.config.split import SplitSection
from trainer.config.update import UpdateSection

DEVICE_OPTIONS = "device_options"
"""The key that holds, in JSON, the keys that have an effect on some devices only."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """All keys by section, valid alone and together."""

    run: RunSection = field(default_factory=RunSection)
    data: DataSection = field(default_factory=DataSection)
    masking: MaskingSection = field(default_factory=MaskingSection)
    model: ModelSection = field(default_factory=ModelSection)
    update: UpdateSection = field(default_factory=UpdateSection)
    split: SplitSection = field(default_factory=SplitSection)
    schedule: ScheduleSection = field(default_factory=ScheduleSection)
    reports: ReportsSection = field(default_factory=ReportsSection)
    finetuning: FinetuningSection = field(default_factory=FinetuningSection)
    cuda: CudaSection = field(default_factory=CudaSection)
    hpu: HpuSection = field(default_factory=HpuSection)
    ipu: IpuSection = field(default_factory=IpuSection)
    xla: XlaSection = field(default_factory=XlaSection)

    def __post_init__(self) -> None:
        for name in self.schedule_kind.needed:
            given = getattr(self.schedule, name) is not None
            check(given, f"lr_schedule {self.schedule_name} needs {name}")
        if self.schedule.num_train_epochs is None:  # else the data give the number of updates
            self.find_warmup(self.schedule.steps)

    @classmethod
    def of(cls, **given: Any) -> "Config":
        """The configuration with the given keys, side by side as in a JSON file; the rest are defaults."""
        keys = deepcopy(given)
        keys |= keys.pop(DEVICE_OPTIONS, {})
        sections = SECTIONS | DEVICE_SECTIONS
        check_names(keys, {DEVICE_OPTIONS}.union(*map(schema_of, sections.values())))
        parts: dict[str, Any] = {
            section: kind(**{name: keys[name] for name in schema_of(kind) if name in keys})
            for section, kind in sections.items()
        }
        return cls(**parts)

    def changed(self, **given: Any) -> "Config":
        """A copy with the given keys changed."""
        return Config.of(**self.as_json() | given)

    def as_json(self) -> dict[str, Any]:
        """All keys side by side, the given device options in a dictionary of their own."""
        keys: dict[str, Any] = {}
        for section in SECTIONS:
            keys |= getattr(self, section).values()
        options: dict[str, Any] = {}
        for section in DEVICE_SECTIONS:
            options |= getattr(self, section).given()
        return deepcopy(keys | {DEVICE_OPTIONS: options})

    @property
    def schedule_name(self) -> str:
        """The name of the learning-rate schedule; by default the optimiser's usual one."""
        return self.schedule.lr_schedule or PRESETS[self.update.optimiser].schedule

    @property
    def sums_micro_batches(self) -> bool:
        """True if the gradients of a replica's micro-batches are added up, not averaged."""
        return self.ipu.reduction_type == "sum"

    @property
    def schedule_kind(self) -> ScheduleKind:
        """The learning-rate schedule's formula, and how it reads the settings."""
        return SCHEDULES[self.schedule_name]

    def find_warmup(self, steps: int) -> Warmup:
        """The warm-up of a training of so many updates; SettingsError where it does not end in them."""
        return self.schedule_kind.find_warmup(self.schedule.warmup, steps)

    def make_schedule(self, workers: int) -> Schedule:
        """The learning rate as a function of the update, counted from 0."""
        kind, steps = self.schedule_kind, self.schedule.steps
        rate = self.schedule.base_learning_rate * (workers if kind.rate_of_one_worker else 1)
        values = self.schedule.values() | {"adam": self.update.optimiser.startswith("adam")}
        given = {name: values[name] for name in kind.defaults if values[name] is not None}
        return kind.formula(rate, steps, self.find_warmup(steps), **given)

    def evaluation_interval(self, workers: int, examples_per_row: float = 1.0) -> int:
        """Examples trained between two evaluations, by eval_every or MLPerf's rule; 0: only at the end."""
        batch = self.update.examples(workers, examples_per_row)
        if self.run.eval_every is not None:
            return self.run.eval_every * batch
        return int(0.05 * (230.23 * batch + 3_000_000) / 25_000) * 25_000

    def keys_without_effect(self, device: str, idle_there: Iterable[str] = ()) -> list[str]:
        """The given keys that have no effect on the device, for one line of the log.

        idle_there: keys that have an effect on other devices only.
        """
        keys, usual = self.as_json(), Config().as_json()
        with_effect = {
            name
            for kind, section in DEVICE_SECTIONS.items()
            for name, item in schema_of(section).items()
            if kind == device or "everywhere" in item
        }
        idle = [name for name in keys[DEVICE_OPTIONS] if name not in with_effect]
        idle += [name for name in idle_there if keys[name] != usual[name]]
        return sorted(idle + ["train_data"] * bool(self.data.generated_data and self.data.train_data))

    def require(self, *names: str) -> None:
        """SettingsError for the first of the keys that is not given."""
        keys = self.as_json()
        for name in names:
            check(keys[name] is not None, f"{name} is missing: give --{name.replace('_', '-')}")


_KINDS: dict[str, Any] = {item.name: item.type for item in fields(Config)}
SECTIONS: dict[str, type[Section]] = {
    name: kind for name, kind in _KINDS.items() if not issubclass(kind, DeviceSection)
}
DEVICE_SECTIONS: dict[str, type[DeviceSection]] = {
    name: kind for name, kind in _KINDS.items() if issubclass(kind, DeviceSection)
}
