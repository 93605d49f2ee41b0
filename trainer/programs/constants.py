"""Constants that several programs have in common, in this trainer's keys, and the size of a micro-batch."""

from typing import Any

from bertdata.errors import UsageError
from trainer.checkpoints.formats.config_file import GOOGLES_KEYS
from trainer.config.model import ModelConfig


def bert_shape(layers: int, width: int, heads: int) -> dict[str, Any]:
    """The model's keys of an uncased BERT (Devlin et al. 2018)."""
    others = ModelConfig().as_json()
    shape = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {name: others[name] for name in GOOGLES_KEYS} | shape | {"intermediate_size": 4 * width}


BERT_BASE, BERT_LARGE = bert_shape(12, 768, 12), bert_shape(24, 1024, 16)

MOMENTS: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "optimiser_epsilon": 1e-6, "weight_decay": 0.01}
"""Settings of Google's optimiser, which most programs keep."""

CLIPPED = {"clipping": "per_update", "max_grad_norm": 1.0}
"""Clipping of an update's gradient as a whole."""

NVLAMB: dict[str, Any] = {
    "optimiser": "lamb-nvidia",
    **MOMENTS,
    **CLIPPED,
    "decay_skips": ["bias", "gamma", "beta", "LayerNorm"],
    "lr_schedule": "nvidia-poly",
    "power": 0.5,
    "keep_checkpoints": 3,
}
"""Settings of NVIDIA's pre-training, of which Habana's and RaNNC's are made.

Habana's FusedLamb is a binary that is given the rate and two groups, of decay 0.01 and 0.0. Its betas,
epsilon, clipping and trust ratio are taken from NVLAMB, Habana's optimiser without --use_fused_lamb.
"""

TRANSFORMERS_ADAMW: dict[str, Any] = {
    "optimiser": "adamw",
    **MOMENTS,
    "optimiser_epsilon": 1e-8,
    "weight_decay": 0.0,
    **CLIPPED,
    "lr_schedule": "polynomial_decay",
    "warmup": 0,
}
"""The optimiser of transformers' examples: AdamW without decay, a linear rate without warm-up."""

TENSORFLOW: dict[str, Any] = {
    "gelu": "tanh",
    **MOMENTS,
    "decay_skips": ["LayerNorm", "layer_norm", "bias"],
    "max_grad_norm": 1.0,
    "eval_every": 0,
}
"""Settings of NVIDIA's and Habana's programs for TensorFlow."""

TENSORFLOW_LAMB = TENSORFLOW | {
    "optimiser": "lamb-habana-tf",
    "clipping": "per_micro_batch_divided",
    "lr_schedule": "habana-tf",
    "keep_checkpoints": 5,
}
"""Those of their pre-training. The schedule multiplies the rate of one worker by their number."""

HDF5_DATA = (
    "hdf5_lower_case_1_seq_len_{}_max_pred_{}_masked_lm_prob_0.15_random_seed_12345_dupe_factor_5/"
    "books_wiki_en_corpus"
)
"""The directory of NVIDIA's data for sequences of so many ids and masked ids."""


def micro_batch(update: int, count: int, *, divides: bool = True) -> int:
    """Examples of a micro-batch, of which an update has ``count``. UsageError in NVIDIA's words.

    divides: False for a program that takes an update that they do not divide.
    """
    found = f"Invalid gradient_accumulation_steps parameter: {count}"
    if count < 1:
        raise UsageError(f"{found}, should be >= 1")
    if divides and update % count:
        raise UsageError(f"{found}, batch size {update} should be divisible")
    return update // count
