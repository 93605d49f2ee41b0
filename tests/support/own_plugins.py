"""User-defined objects of every type that a configuration can name as ``package.module:NAME``."""

from dataclasses import dataclass, replace

from bertdata.config.declared import repeat_setting
from trainer.config.model import ModelConfig
from trainer.config.schedules.form import Schedule, ScheduleKind, Warmup
from trainer.config.schedules.pytorch import ADAMW
from trainer.data.dynamic_masks import DRAWN_BY_RATE
from trainer.devices.cpu import Cpu
from trainer.model.bert import Bert
from trainer.update.strategy import Strategy
from trainer.workers.collective import Collective

HERE = "tests.support.own_plugins"


def halves(rate: float, steps: int, warmup: Warmup) -> Schedule:
    """Return a schedule: the base rate in the first half of the updates, then half of it."""
    return lambda update: rate if update < steps / 2 else rate / 2


HALVES = ScheduleKind(formula=halves)


def of_another_key(rate: float, steps: int, warmup: Warmup, *, base_learning_rates: float = 1.0) -> Schedule:
    """Return a schedule whose keyword argument is not a key of the configuration."""
    return lambda update: rate * base_learning_rates


OF_ANOTHER_KEY = ScheduleKind(formula=of_another_key)

OPTIMISER = replace(ADAMW, weight_decay=0.02, schedule=f"{HERE}:HALVES")

MASKING = DRAWN_BY_RATE


class Processor(Cpu):
    """A user-defined device."""

    def describe(self) -> str:
        return f"{super().describe()}, by another class"


class Alone(Collective):
    """A user-defined collective of one worker."""

    name = "alone"


class Counting(Strategy):
    """A user-defined strategy that counts its updates."""

    updates = 0

    def update(self, *given: object, **more: object) -> object:
        Counting.updates += 1
        return super().update(*given, **more)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape(ModelConfig):
    """A user-defined model type: BERT with another encoder class."""

    encoder = f"{HERE}:Encoder"
    model_type: str = repeat_setting(ModelConfig, "model_type", default=f"{HERE}:Shape")


class Encoder(Bert):
    """BERT's encoder under another class name."""
