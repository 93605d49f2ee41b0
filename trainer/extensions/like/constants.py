"""Constants that several programs have in common, in this trainer's keys."""

from typing import Any

BERT_BASE: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
}
BERT_LARGE = BERT_BASE | {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}
"""The shapes of Google's published models, uncased (Devlin et al. 2018)."""

PRETRAINED = {"base": "bert-base-uncased", "large": "bert-large-uncased-whole-word-masking"}
"""The checkpoints that Habana's programs name by size, as Hugging Face names them."""

NVLAMB: dict[str, Any] = {
    "optimiser": "lamb-nvidia",
    "beta1": 0.9,
    "beta2": 0.999,
    "optimiser_epsilon": 1e-6,
    "weight_decay": 0.01,
    "clipping": "per_update",
    "max_grad_norm": 1.0,
    "lr_schedule": "nvidia-poly",
    "power": 0.5,
}
"""NVIDIA's LAMB and its schedule, which Habana's PyTorch programs have too."""

TRANSFORMERS_ADAMW: dict[str, Any] = {
    "optimiser": "adamw",
    "beta1": 0.9,
    "beta2": 0.999,
    "optimiser_epsilon": 1e-8,
    "weight_decay": 0.0,
    "clipping": "per_update",
    "max_grad_norm": 1.0,
    "lr_schedule": "polynomial_decay",
    "warmup": 0,
}
"""The optimiser of transformers' examples: AdamW without decay, a linear rate without warm-up."""


APEX_DECAY_SKIPS = ["bias", "gamma", "beta", "LayerNorm"]
"""Parts of the names of weights that NVIDIA's programs put into the group without decay."""


def product(*factors: int) -> str:
    """The factors and what they make, for a summary: 8 x 64 x 128 = 65,536."""
    result = 1
    for factor in factors:
        result *= factor
    return f"{' x '.join(f'{factor:,}' for factor in factors)} = {result:,}"
