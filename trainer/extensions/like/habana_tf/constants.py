"""Constants of Habana's programs for TensorFlow, in this trainer's keys."""

from typing import Any

from trainer.extensions.like.constants import BERT_BASE, BERT_LARGE

DECAY_SKIPS = ["LayerNorm", "layer_norm", "bias"]
"""Parts of the names of weights that do not decay."""

ALWAYS: dict[str, Any] = {
    "gelu": "tanh",
    "beta1": 0.9,
    "beta2": 0.999,
    "optimiser_epsilon": 1e-6,
    "weight_decay": 0.01,
    "decay_skips": DECAY_SKIPS,
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


def _shape(layers: int, width: int, heads: int) -> dict[str, Any]:
    return BERT_BASE | {
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
    }


SHAPES: dict[str, dict[str, Any]] = {
    "tiny": _shape(2, 128, 2),
    "mini": _shape(4, 256, 4),
    "small": _shape(4, 512, 8),
    "medium": _shape(8, 512, 8),
    "base": BERT_BASE,
    "large": BERT_LARGE,
}
FOLDERS = {
    "tiny": "uncased_L-2_H-128_A-2",
    "mini": "uncased_L-4_H-256_A-4",
    "small": "uncased_L-4_H-512_A-8",
    "medium": "uncased_L-8_H-512_A-8",
    "base": "uncased_L-12_H-768_A-12",
    "large": "wwm_uncased_L-24_H-1024_A-16",
}
"""Google's published models by variant, as the directories that the programs unpack them into."""
