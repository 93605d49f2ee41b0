"""Estimate of the hours that continued pre-training takes, for several models, corpora and devices.

The estimate divides the number of operations by the speed of a device. Operations are counted as in the
trainer's logs: forward and backward, for one pass over the text in rows without padding. It is assumed that a
GPU reaches the share SHARE of its dense bf16 peak, because ModernBERT base did so on an H200
(docs/devices.md). BERT-Large reached 0.42. The speed of the processor was measured.
"""

import numpy as np

from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.model.bert import PASSES
from trainer.model.headed import count_forward_operations

SHARE = 0.28
PEAKS = {"H100": 989e12, "A100": 312e12, "L4": 121e12}
"""Dense bf16 operations per second of each GPU, from its data sheet."""

MEASURED = ModelConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
SEQUENCES = 21.3
"""Sequences per second with which one core of an AMD EPYC trains the MiniLM model (docs/training.md).

A sequence has 128 ids, of which 20 are masked.
"""

BYTES = 4.3
"""Bytes of English text that a token stands for on average."""

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
"""For each model: its shape, the number of tokens of a row, and the share of tokens that are masked."""

CORPORA = {"100 MB": 1e8, "1 GB": 1e9, "10 GB": 1e10}


def count_token_operations(shape: ModelConfig, length: int, masked: float) -> float:
    """Return the operations per token of a row without padding, for the forward and the backward pass.

    length: number of tokens of the row.
    masked: share of the tokens that are masked.
    """
    lengths, rows = np.full(16, length), 16
    return PASSES * count_forward_operations(lengths, round(rows * length * masked), shape) / (rows * length)


def format_hours(tokens: float, each: float, rate: float) -> str:
    """Return the time of one pass over a corpus as text, such as "3 h".

    tokens: number of tokens of the corpus.
    each: number of operations per token.
    rate: number of operations per second.
    """
    seconds = tokens * each / rate
    if seconds < 5400:
        return f"{max(1, round(seconds / 60))} min"
    return f"{seconds / 3600:,.0f} h"


def main() -> None:
    """Print the table of hours for all models, corpora and devices."""
    processor = SEQUENCES * 128 * count_token_operations(MEASURED, 128, 20 / 128)
    cards = {**{name: SHARE * peak for name, peak in PEAKS.items()}, "one core": processor}
    print(f"| model | text | tokens | GFLOP a token | {' | '.join(cards)} |")
    print(f"|{'---|' * (4 + len(cards))}")
    for name, (shape, length, masked) in MODELS.items():
        each = count_token_operations(shape, length, masked)
        for text, size in CORPORA.items():
            tokens = size / BYTES
            times = " | ".join(format_hours(tokens, each, rate) for rate in cards.values())
            print(f"| {name} | {text} | {tokens / 1e6:,.0f} million | {each / 1e9:.2f} | {times} |")


if __name__ == "__main__":
    main()
