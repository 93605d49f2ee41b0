"""Sizes of the measured work: the sizes of the H100 presets on a GPU, or tiny sizes for a rehearsal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainer.config.flags import make_config
from trainer.config.settings import Config


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """A configuration that comes with the trainer, with generated data.

    fill: share of positions that hold a token. keys: values that replace keys of the configuration. without:
        keys to remove, which generated data do not support.
    """

    config: str
    fill: float
    keys: Mapping[str, Any] = field(default_factory=dict)
    without: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """Sizes of all stages on one device.

    updates: number of timed updates, each of ``accumulation`` micro-batches. seconds: time for which a
    product or copy is repeated. tokens, masks: per micro-batch. products: inputs and outputs of a layer's
    matrix products. head: inputs and outputs of the vocabulary's product. peak: the device's dense bf16 limit
    in TFLOP/s, if known.
    """

    device: str
    phases: Mapping[str, Phase]
    accumulation: int
    updates: int
    seconds: float
    copy_bytes: int
    tokens: int
    masks: int
    products: tuple[tuple[int, int], ...]
    head: tuple[int, int]
    layers: int
    peak: float | None = None

    def config(self, phase: str, **more: Any) -> Config:
        """Return the phase's configuration for this device. more: further keys to replace."""
        found = self.phases[phase]
        keys: dict[str, Any] = {"device": self.device, "generated_data": True, **found.keys, **more}
        given = make_config(["--config", found.config]).as_json()
        return Config.of(**{name: given[name] for name in given if name not in found.without} | keys)


def make_modernbert_phase(length: int, masks: int, batch_size: int, **keys: Any) -> Phase:
    """Return ModernBERT base on sequences without padding, with as many masked tokens as its recipe draws."""
    sizes = {"max_seq_length": length, "max_predictions_per_seq": masks, "batch_size": batch_size}
    return Phase(
        config="modernbert_base",
        fill=1.0,
        keys={"compile": True, "objective": "mlm", "global_batch_size": 8 * batch_size, **sizes, **keys},
        without=("masking", "masked_lm_prob", "eval_masked_lm_prob"),
    )


FULL = Sizes(
    device="cuda",
    phases={
        "phase1": Phase(config="bert_large_phase1_h100", fill=0.9),
        "phase2": Phase(config="bert_large_phase2_h100", fill=0.5),
        "modernbert 1024": make_modernbert_phase(1024, 307, 32),
        "modernbert 8192": make_modernbert_phase(8192, 2457, 4),
    },
    accumulation=8,
    updates=12,
    seconds=0.4,
    copy_bytes=2**31,
    tokens=29_696,
    masks=4_424,
    products=((1024, 1024), (1024, 3072), (1024, 4096), (4096, 1024)),
    head=(1024, 30_528),
    layers=24,
    peak=989.0,
)
"""BERT-Large on an H100. The peak is the limit of the SXM modules. The H200 has the same."""

_TINY = {
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
    "max_position_embeddings": 64,
    "batch_size": 8,
    "global_batch_size": 64,
    "max_seq_length": 32,
    "max_predictions_per_seq": 5,
    # number of positions of a flat batch, equal in both phases, so that only one shape is compiled
    "token_budget": 10_000,
}
_TINY_MODERNBERT = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 96,
    "local_attention": 16,
    "vocab_size": 1000,
}
SMALL = Sizes(
    device="cpu",
    phases={
        "phase1": Phase(config="bert_large_phase1_h100", fill=0.9, keys=_TINY),
        "phase2": Phase(config="bert_large_phase2_h100", fill=0.5, keys=_TINY),
        "modernbert 1024": make_modernbert_phase(32, 9, 8, **_TINY_MODERNBERT),
        "modernbert 8192": make_modernbert_phase(128, 38, 2, **_TINY_MODERNBERT),
    },
    accumulation=8,
    updates=2,
    seconds=0.01,
    copy_bytes=2**20,
    tokens=256,
    masks=32,
    products=((64, 64), (64, 192), (64, 128), (128, 64)),
    head=(64, 1008),
    layers=1,
)
"""Sizes for a rehearsal: every figure is produced, but the values mean nothing."""


def find_sizes(device: str, small: bool) -> Sizes:
    """Return the full or the small sizes for the device."""
    return replace(SMALL if small else FULL, device=device)
