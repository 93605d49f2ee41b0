"""Hours of continued pre-training by model, corpus and card, estimated from operations and the cards' peaks.

Operations are those that the trainer counts for rows that are full, forward and backward, one pass over the
text. A card is taken to do SHARE of its dense bf16 peak, as ModernBERT base did on an H200 (docs/devices.md);
BERT-Large did 0.42. The processor's rate is one that was measured.
"""

import numpy as np

from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.model.bert import PASSES
from trainer.model.headed import count_forward_operations

SHARE = 0.28
PEAKS = {"H100": 989e12, "A100": 312e12, "L4": 121e12}
"""Dense bf16 operations a second, by the data sheets."""

MEASURED = ModelConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
SEQUENCES = 21.3
"""Sequences of 128 ids, 20 masked, of that model, that one core of an AMD EPYC trains on in a
second: measured, docs/training.md."""

BYTES = 4.3
"""Bytes of English text a token."""

MODELS: dict[str, tuple[ModelConfig, int, float]] = {
    "MiniLM, 6 layers of 384": (
        ModelConfig(hidden_size=384, num_hidden_layers=6, intermediate_size=1536),
        128,
        0.15,
    ),
    "BERT base, RoBERTa base": (ModelConfig(), 512, 0.15),
    "ModernBERT base": (ModernBertConfig(), 1024, 0.3),
    "ModernBERT large": (
        ModernBertConfig(
            hidden_size=1024, num_hidden_layers=28, num_attention_heads=16, intermediate_size=2624
        ),
        1024,
        0.3,
    ),
}
"""Shape, tokens of a row, share of masked ones."""

CORPORA = {"100 MB": 1e8, "1 GB": 1e9, "10 GB": 1e10}


def operations_of_token(shape: ModelConfig, length: int, masked: float) -> float:
    """Operations of a token in a full row, forward and backward."""
    lengths, rows = np.full(16, length), 16
    return PASSES * count_forward_operations(lengths, round(rows * length * masked), shape) / (rows * length)


def hours(tokens: float, each: float, rate: float) -> str:
    """The time in words."""
    seconds = tokens * each / rate
    if seconds < 5400:
        return f"{max(1, round(seconds / 60))} min"
    return f"{seconds / 3600:,.0f} h"


def main() -> None:
    processor = SEQUENCES * 128 * operations_of_token(MEASURED, 128, 20 / 128)
    cards = {**{name: SHARE * peak for name, peak in PEAKS.items()}, "one core": processor}
    print(f"| model | text | tokens | GFLOP a token | {' | '.join(cards)} |")
    print(f"|{'---|' * (4 + len(cards))}")
    for name, (shape, length, masked) in MODELS.items():
        each = operations_of_token(shape, length, masked)
        for text, size in CORPORA.items():
            tokens = size / BYTES
            times = " | ".join(hours(tokens, each, rate) for rate in cards.values())
            print(f"| {name} | {text} | {tokens / 1e6:,.0f} million | {each / 1e9:.2f} | {times} |")


if __name__ == "__main__":
    main()
