"""Models split over several processes, whose forecasts ``split_forecast`` compares with real updates."""

from dataclasses import dataclass, field, replace
from typing import Any

from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.splitting.plan.rates import DeviceRate
from trainer.splitting.plan.request import PlanRequest

LENGTH, MASKED = 128, 20

MODEL = ModelConfig(
    vocab_size=8000, hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=2048
)
PRE_NORM = replace(MODEL, megatron_residual_connection=True)
WIDE = ModelConfig(
    vocab_size=16000, hidden_size=768, num_hidden_layers=8, num_attention_heads=12, intermediate_size=3072
)
"""Model of the cases about memory. Its weights take much memory compared with the loaded libraries."""
MEMORY_FOR_SHARDED = 950 * 10**6
"""Memory of a device in bytes, chosen so that the model must be sharded.

If the model WIDE is split into two stages with two copies of each, it fits into this memory only if the
copies of a stage share the weights between them.
"""


@dataclass(frozen=True)
class Case:
    """A case to compare: a name, a model, and values that replace those of the usual request for a plan."""

    name: str
    model: ModelConfig = MODEL
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def request(self) -> PlanRequest:
        """The request for a plan of the split.

        Without changes it asks for one device with enough memory for everything.
        """
        given = {
            "precision": "fp32",
            "optimiser": "lamb-mlperf",
            "clipping": "per_update",
            "batch_size": 8,
            "recompute": "never",
            "max_predictions_per_seq": MASKED,
        } | self.changes
        count, devices = given.pop("micro_batches", 2), given.pop("devices", 1)
        return PlanRequest(
            memory=given.pop("memory", 64 * 10**9),
            config=Config.of(**given),
            model=self.model,
            sequence_length=LENGTH,
            examples=given["batch_size"] * count * given.get("copies", 1),
            devices=devices,
            bandwidth=1e9,
            rate=DeviceRate(flops=5e10, bytes=1e10),
            attention="flat",
        )


def _make_memory_case(name: str, *, pre_norm: bool = False, **changes: Any) -> Case:
    """Return a case about memory with the model WIDE.

    pre_norm: True for a model that normalises the inputs of its layers, as ModernBERT does.
    changes: values that replace those of the usual request.
    """
    model = replace(WIDE, megatron_residual_connection=pre_norm)
    return Case(name, model, {"batch_size": 4} | changes)


MEMORY = (
    _make_memory_case("post-norm, fp32"),
    _make_memory_case("one micro-batch", micro_batches=1),
    _make_memory_case("AdamW", optimiser="adamw"),
    _make_memory_case("clipped by micro-batch", clipping="per_micro_batch"),
    _make_memory_case("recomputed", recompute="always"),
    _make_memory_case("post-norm, bf16", precision="bf16"),
    _make_memory_case("pre-norm, fp32", pre_norm=True),
    _make_memory_case("pre-norm, bf16, recomputed", pre_norm=True, precision="bf16", recompute="always"),
    _make_memory_case("2 copies", devices=2, copies=2, strategy="replicated"),
    _make_memory_case("2 copies, sharded", devices=2, copies=2, strategy="sharded"),
    _make_memory_case("2 stages", devices=2, stages=2, micro_batches=4),
    _make_memory_case(
        "3 stages, pre-norm", pre_norm=True, devices=3, stages=3, micro_batches=6, power_of_two=False
    ),
    _make_memory_case("2 stages, recomputed", devices=2, stages=2, micro_batches=4, recompute="always"),
    _make_memory_case("2 x 2", devices=4, stages=2, copies=2, micro_batches=4),
    _make_memory_case(
        "2 x 2, sharded", devices=4, stages=2, copies=2, micro_batches=4, memory=MEMORY_FOR_SHARDED
    ),
)
TIME = (
    Case("one process"),
    Case("one process, pre-norm", PRE_NORM),
    Case("one process, recomputed", changes={"recompute": "always"}),
    Case("2 stages", changes={"devices": 2, "stages": 2, "micro_batches": 4}),
    Case("2 copies", changes={"devices": 2, "copies": 2, "strategy": "replicated"}),
    Case("2 copies, sharded", changes={"devices": 2, "copies": 2, "strategy": "sharded"}),
)
