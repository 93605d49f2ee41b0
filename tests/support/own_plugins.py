"""A user's own objects, of every kind that a configuration names as package.module:NAME."""

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
    """The base rate in the first half of the updates, half of it in the second."""
    return lambda update: rate if update < steps / 2 else rate / 2


HALVES = ScheduleKind(formula=halves)


def of_another_key(rate: float, steps: int, warmup: Warmup, *, base_learning_rates: float = 1.0) -> Schedule:
    """A formula with a keyword that is no key."""
    return lambda update: rate * base_learning_rates


OF_ANOTHER_KEY = ScheduleKind(formula=of_another_key)

OPTIMISER = replace(ADAMW, weight_decay=0.02, schedule=f"{HERE}:HALVES")

MASKING = DRAWN_BY_RATE


class Processor(Cpu):
    """A device."""

    def describe(self) -> str:
        return f"{super().describe()}, by another class"


class Alone(Collective):
    """A collective of one worker."""

    name = "alone"


class Counting(Strategy):
    """A strategy that counts its updates."""

    updates = 0

    def update(self, *given: object, **more: object) -> object:
        Counting.updates += 1
        return super().update(*given, **more)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape(ModelConfig):
    """A kind of model: BERT with another encoder."""

    encoder = f"{HERE}:Encoder"
    model_type: str = repeat_setting(ModelConfig, "model_type", default=f"{HERE}:Shape")


class Encoder(Bert):
    """BERT's encoder as a class of its own."""
