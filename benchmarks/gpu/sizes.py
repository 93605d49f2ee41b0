"""Sizes of the measured work: those of the configurations for an H100, or tiny sizes for a rehearsal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainer.config.flags import make_config
from trainer.config.settings import Config


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """A configuration that comes with the trainer, changed to train on generated data.

    config: name of the configuration.
    fill: share of the positions of the generated data that contain a token.
    keys: configuration keys whose values are replaced.
    without: configuration keys to remove, because generated data do not support them.
    """

    config: str
    fill: float
    keys: Mapping[str, Any] = field(default_factory=dict)
    without: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """Sizes of the work of all stages on one device.

    phases: the configurations to train with, by name.
    accumulation: number of micro-batches of an update.
    updates: number of updates that are timed.
    seconds: seconds for which a matrix product or a copy is repeated.
    copy_bytes: bytes of a copy.
    tokens: number of tokens of a micro-batch.
    masks: number of masked tokens of a micro-batch.
    products: numbers of inputs and outputs of the matrix products of a layer.
    head: numbers of inputs and outputs of the product with the vocabulary.
    layers: number of layers.
    peak: dense bf16 limit of the device in TFLOP/s. None if it is not known.
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
        """Return the configuration of a phase for this device.

        more: further keys to replace.
        """
        found = self.phases[phase]
        keys: dict[str, Any] = {"device": self.device, "generated_data": True, **found.keys, **more}
        given = make_config(["--config", found.config]).as_json()
        return Config.of(**{name: given[name] for name in given if name not in found.without} | keys)


def make_modernbert_phase(length: int, masks: int, batch_size: int, **keys: Any) -> Phase:
    """Return ModernBERT base on sequences without padding, with as many masked tokens as its recipe draws.

    length: number of tokens of a sequence.
    masks: number of masked tokens of a sequence.
    keys: further configuration keys to replace.
    """
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
    updates=6,
    seconds=0.4,
    copy_bytes=2**31,
    tokens=29_696,
    masks=4_424,
    products=((1024, 1024), (1024, 3072), (1024, 4096), (4096, 1024)),
    head=(1024, 30_528),
    layers=24,
    peak=989.0,
)
"""Sizes for an H100, mainly of BERT-Large. The peak is the limit of the SXM module, and an H200 has the same.
"""

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
    # This is the number of positions of a flat batch. It is the same in both phases, so that only one shape
    # is compiled.
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
"""Sizes for a rehearsal on a processor: every value is produced, but the values mean nothing."""


def find_sizes(device: str, small: bool) -> Sizes:
    """Return the sizes for the device.

    small: True for the sizes of a rehearsal.
    """
    return replace(SMALL if small else FULL, device=device)
