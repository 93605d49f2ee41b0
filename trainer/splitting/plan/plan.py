"""The plan of a split, which says how a model, an update's micro-batches and the devices are divided."""

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
"""The three types of a model's head. The head is everything that follows the encoder.

"A small layer" stands for the head of any fine-tuning task. It includes the pooler, and has two outputs per
token or per sequence.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Memory of one device of a stage at the moment when it needs most, in bytes, by purpose.

    gradients: may be 0. With a single micro-batch, gradients are made while activations are freed, so there
        may be none yet at that moment.
    activations: those of all micro-batches under way (between forward and backward pass),
        and temporary tensors.
    """

    weights: int
    gradients: int
    moments: int
    activations: int  # including temporary tensors

    @property
    def total(self) -> int:
        """Sum over all purposes, in bytes."""
        return self.weights + self.gradients + self.moments + self.activations


@dataclass(frozen=True, kw_only=True, slots=True)
class StagePlan:
    """A pipeline stage, with forecasts of its times and memory.

    The stage has the layers ``first`` to ``last - 1`` of the encoder. The first stage also has the
    embeddings. The last stage also has the pooler and the heads. All times are in seconds.
    recomputes: whether activations are computed again, layer by layer, in the backward pass (activation
        checkpointing).
    sharded: whether each copy of the stage holds only some rows of each weight.
    forward: time of a micro-batch's forward pass. In a sharded stage it includes gathering the weights.
    backward: time of a micro-batch's backward pass, with recomputation. In a sharded stage it includes
        gathering the weights and scattering the gradients.
    transfer: time to send a micro-batch's activations to the next stage, and to receive their gradients.
    all_reduce: time to sum an update's gradients over the copies of the stage. It includes summing the
        gradients of tied word embeddings over the first and the last stage.
    step: time of the optimiser's step.
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
        """Numbers of the stage's layers, from 0."""
        return range(self.first, self.last)

    @property
    def seconds(self) -> float:
        """Seconds for which one micro-batch keeps the stage busy."""
        return self.forward + self.backward + self.transfer


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A plan: the stages, the number of copies of each stage, and the micro-batches.

    It uses stages x copies devices.

    An update with m micro-batches takes the sum of three times. The first is the sum of the stages'
    ``seconds``. The second is (m - 1) times the slowest stage's ``seconds`` (schedule 1F1B). The third is the
    longest all-reduce together with the optimiser's step.
    """

    model: Mapping[str, Any]  # result of ModelConfig.as_json
    sequence_length: int
    precision: str
    optimiser: str
    copies: int
    batch_size: int  # rows per micro-batch
    micro_batches: int  # number of micro-batches per copy and update
    stages: tuple[StagePlan, ...]
    head: str | None = None  # BOTH, WORDS or SMALL. None in plans made by older versions.

    @property
    def devices(self) -> int:
        """Number of devices that the plan uses."""
        return len(self.stages) * self.copies

    @property
    def examples(self) -> int:
        """Number of rows in an update, over all devices."""
        return self.copies * self.micro_batches * self.batch_size

    @property
    def strategy(self) -> str:
        """Name of the strategy that trains with the plan: "replicated", "sharded" or "pipelined"."""
        if len(self.stages) > 1:
            return "pipelined"
        return "sharded" if self.stages[0].sharded else "replicated"

    @property
    def fullest_stage(self) -> int:
        """Index of the stage that needs the most memory."""
        totals = [stage.memory.total for stage in self.stages]
        return totals.index(max(totals))

    @property
    def seconds(self) -> float:
        """Seconds that an update takes."""
        return self._passes_seconds() + max(stage.all_reduce + stage.step for stage in self.stages)

    @property
    def bubble(self) -> float:
        """Share of the time that devices wait, between an update's first and last pass. It is from 0 to 1."""
        busy = self.micro_batches * sum(stage.seconds for stage in self.stages)
        return 1 - busy / (len(self.stages) * self._passes_seconds())

    def _passes_seconds(self) -> float:
        """Return the seconds from the start of an update's first pass to the end of its last pass."""
        times = [stage.seconds for stage in self.stages]
        return sum(times) + (self.micro_batches - 1) * max(times)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values. ``head`` is left out if it is None."""
        values = {"format": FORMAT, **asdict(self)}
        if self.head is None:
            del values["head"]
        return values

    def text(self) -> str:
        """Return the content of a plan's file, which is JSON with the fields of ``schemas/plan.json``."""
        return json.dumps(self.as_json(), indent=1) + "\n"


PLAN_FILE = "plan.json"
"""Name of the plan's file in a run's directory."""


def read_plan(path: str) -> Plan:
    """Read a plan from a file. Raise SettingsError, with the file and the fault, if that is not possible."""
    values = read_object(path)
    if (found := values.get("format")) != FORMAT:
        if found is None:
            raise SettingsError(f"{path}: is no plan: there is no format, expected {FORMAT!r}")
        raise SettingsError(f"{path}: is no plan: its format is {found!r}, expected {FORMAT!r}")
    check_values({"plan": values}, {"plan": load_schema("plan")}, f"{path}: ")
    read_model_config(values["model"], f"{path}: model")
    return parse_plan(values, path)


def parse_plan(values: Mapping[str, Any], where: str) -> Plan:
    """Return the plan from the values that ``Plan.as_json`` returns.

    Raises SettingsError for unknown keys, and for stages that do not cover all layers without gaps.
    where: path of the plan's file, for the error message.
    """
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
    """Write the plan to a file. The file appears only when it is complete."""
    with storage.open_output(path) as file:
        file.write(plan.text().encode())
