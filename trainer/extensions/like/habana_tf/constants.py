"""Constants of Habana's programs for TensorFlow, in this trainer's keys."""

from typing import Any

from trainer.extensions.like.constants import MOMENTS, TENSORFLOW_DECAY_SKIPS, bert_shape

ALWAYS: dict[str, Any] = {
    "gelu": "tanh",
    **MOMENTS,
    "decay_skips": TENSORFLOW_DECAY_SKIPS,
    "max_grad_norm": 1.0,
    "unverified": True,
}
"""Keys that no flag of any of the programs changes."""

LAMB: dict[str, Any] = ALWAYS | {
    "optimiser": "lamb-habana-tf",
    "clipping": "per_micro_batch_divided",
    "lr_schedule": "habana-tf",
    "keep_checkpoints": 5,
    "eval_every": 0,
}
"""Pre-training. The schedule multiplies the rate of one worker by their number."""

FINETUNING: dict[str, Any] = ALWAYS | {
    "optimiser": "adamw-bert",
    "clipping": "per_update",
    "lr_schedule": "mlperf",
    "power": 1.0,
    "warmup": 0.1,
    "accumulation": 1,
    "eval_batch_size": 8,
    "checkpoint_every": 1000,
    "do_eval": True,
    "eval_every": 0,
    "lower_case": True,
}
"""Fine-tuning, whose rate is not multiplied by the workers."""

_SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
"""Layers, width and attention heads of Google's published models by variant."""

SHAPES = {variant: bert_shape(*size) for variant, size in _SIZES.items()}
FOLDERS = {
    variant: f"{'wwm_' * (variant == 'large')}uncased_L-{layers}_H-{width}_A-{heads}"
    for variant, (layers, width, heads) in _SIZES.items()
}
"""The directories that the programs unpack them into; large is the one with whole-word masking."""
