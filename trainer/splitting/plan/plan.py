"""A plan: how a model, an update's micro-batches and the devices are divided among each other."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bertdata.config.value_check import check_values, read_object
from bertdata.errors import SettingsError
from bertdata.io import storage
from schemas import load_schema
from trainer.config.model_kinds import read_model_config

FORMAT = "bertdata plan 1"

BOTH, WORDS, SMALL = "masked words and next sentence", "masked words", "a small layer"
"""A plan's head, which is everything above the encoder.

A small layer has two outputs, for a token or for a sequence; the pooler is below it.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes on one device of a stage at the moment when they are most, by purpose.

    gradients may be 0: with one micro-batch the gradients come while the activations go.
    """

    weights: int
    gradients: int
    moments: int
    activations: int  # of all micro-batches under way, and what is there for a moment only

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.moments + self.activations


@dataclass(frozen=True, kw_only=True, slots=True)
class StagePlan:
    """A stage: layers ``first`` to ``last - 1`` of the encoder, and what is forecast of it.

    The first stage has the embeddings too, the last one the pooler and the heads. recomputes: activations
    are computed again in the backward pass, layer by layer. sharded: each copy holds a part of each weight.
    Times are in seconds: forward and backward of a micro-batch (with what is recomputed; of a sharded stage
    with the gathering of its weights and the scattering of their gradients), transfer of a micro-batch's
    activations to the next stage and of their gradients back, all_reduce of an update's gradients over the
    copies (with those of the weights tied to another stage), step of the optimiser.
    """

    first: int
    last: int
    recomputes: bool
    sharded: bool
    forward: float
    backward: float
    transfer: float
    all_reduce: float
    memory: Memory
    step: float = 0.0

    @property
    def layers(self) -> range:
        return range(self.first, self.last)

    @property
    def seconds(self) -> float:
        """The time that a micro-batch keeps the stage busy."""
        return self.forward + self.backward + self.transfer


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Stages, copies of each stage, and micro-batches. devices = stages x copies.

    An update takes, with m micro-batches and t the seconds of a stage: the sum of t over the stages, m - 1
    times the longest t (1F1B), then the longest all_reduce with the optimiser's step.
    """

    model: Mapping[str, Any]  # ModelConfig.as_json
    sequence_length: int
    precision: str
    optimiser: str
    copies: int
    batch_size: int  # rows of a micro-batch
    micro_batches: int  # of each copy in an update
    stages: tuple[StagePlan, ...]
    head: str | None = None  # None: an older plan, which does not say it

    @property
    def devices(self) -> int:
        return len(self.stages) * self.copies

    @property
    def examples(self) -> int:
        """Rows of an update over all devices."""
        return self.copies * self.micro_batches * self.batch_size

    @property
    def strategy(self) -> str:
        """The strategy that trains by the plan."""
        if len(self.stages) > 1:
            return "pipelined"
        return "sharded" if self.stages[0].sharded else "replicated"

    @property
    def fullest(self) -> int:
        """The number of the stage that takes most memory."""
        totals = [stage.memory.total for stage in self.stages]
        return totals.index(max(totals))

    @property
    def seconds(self) -> float:
        """Seconds of an update."""
        return self._span() + max(stage.all_reduce + stage.step for stage in self.stages)

    @property
    def bubble(self) -> float:
        """The share of the devices' time between the first and the last pass in which they wait."""
        busy = self.micro_batches * sum(stage.seconds for stage in self.stages)
        return 1 - busy / (len(self.stages) * self._span())

    def _span(self) -> float:
        """Seconds from the first to the last pass."""
        times = [stage.seconds for stage in self.stages]
        return sum(times) + (self.micro_batches - 1) * max(times)

    def as_json(self) -> dict[str, Any]:
        """The fields, of which head is left out where it is None."""
        values = {"format": FORMAT, **asdict(self)}
        if self.head is None:
            del values["head"]
        return values

    def text(self) -> str:
        """The file that ``read_plan`` reads: JSON of the fields in ``schemas/plan.json``."""
        return json.dumps(self.as_json(), indent=1) + "\n"


KEPT_PLAN = "plan.json"
"""The file of the plan in a run's directory."""


def read_plan(path: str) -> Plan:
    """The plan of a file. SettingsError names the file and what is wrong with it."""
    values = read_object(path)
    if (found := values.get("format")) != FORMAT:
        named = "there is no format" if found is None else f"its format is {found!r}"
        raise SettingsError(f"{path}: is no plan: {named}, expected {FORMAT!r}")
    check_values({"plan": values}, {"plan": load_schema("plan")}, f"{path}: ")
    read_model_config(values["model"], f"{path}: model")
    return parse_plan(values, path)


def parse_plan(values: Mapping[str, Any], where: str) -> Plan:
    """The plan of ``Plan.as_json``. SettingsError for other keys, and for stages with gaps."""
    known = {name: value for name, value in values.items() if name != "format"}
    try:
        stages = tuple(
            StagePlan(**{**stage, "memory": Memory(**stage["memory"])}) for stage in values["stages"]
        )
        plan = Plan(**{**known, "stages": stages})
    except TypeError as error:
        raise SettingsError(f"{where}: no plan of this trainer: {error}") from None
    ends = [0, *(stage.last for stage in stages)]
    is_whole = all(stage.first == end < stage.last for stage, end in zip(stages, ends, strict=False))
    if not (is_whole and ends[-1] == plan.model.get("num_hidden_layers")):
        raise SettingsError(f"{where}: its stages do not follow one another through the layers")
    return plan


def write_plan(path: str, plan: Plan) -> None:
    """Write the plan's file, which appears whole or not at all."""
    with storage.open_output(path) as file:
        file.write(plan.text().encode())
