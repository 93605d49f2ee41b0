"""Golden masks drawn at load, of the case google; ``python -m golden.dynamic_masks`` writes them anew."""

import sys

import numpy as np

from bertdata._native import Engine
from bertdata.examples import columns
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.bert.objective import BERT
from bertdata.examples.dynamic_masking.counter_stream import derive_shard_key
from bertdata.examples.dynamic_masking.masker import Draws, make_masker
from bertdata.examples.masking.settings import MaskingSettings
from golden.cases import GOLDEN, load_case, make

EXPECTED = GOLDEN / "masks"
SEED, EPOCH, SHARD, EXAMPLES = 42, 3, "phase1/odd.txt.tfrecord", 6

SETTINGS = {
    "fixed": MaskingSettings(max_predictions_per_seq=20),
    "whole-words": MaskingSettings(max_predictions_per_seq=12, masked_lm_prob=0.3, whole_word_mask=True),
    "drawn": MaskingSettings(
        max_predictions_per_seq=40,
        masked_lm_prob=0.25,
        mask_counts="drawn",
        mask_share=0.5,
        random_share=0.5,
        kept_share=0,
    ),
}


def golden_draws(count: int, rate: float) -> Draws:
    """The draws of the first examples of the shard."""
    return Draws(
        keys=np.full(count, derive_shard_key(SEED, EPOCH, SHARD), np.uint64),
        numbers=np.arange(count, dtype=np.uint64),
        rates=np.full(count, rate),
    )


def masked_text(name: str, engine: Engine) -> str:
    """Return some of the examples in readable form, with newly drawn masks."""
    case = load_case("google")
    examples, vocabulary = make(case, "python")
    batch = columns.convert_to_arrays(examples.batch(0, EXAMPLES))
    assert isinstance(batch, BertBatch)
    settings = SETTINGS[name]
    masked = make_masker(vocabulary, settings, engine).mask_batch(
        batch, golden_draws(len(batch), settings.masked_lm_prob)
    )
    words, layout = list(vocabulary.words), case.settings.layout
    return "".join(
        f"example {number}: {BERT.describe(example, words, vocabulary.mask, layout)}"
        for number, example in enumerate(masked.examples())
    )


def main() -> int:
    EXPECTED.mkdir(exist_ok=True)
    for name in SETTINGS:
        (EXPECTED / f"{name}.txt").write_text(masked_text(name, "python"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
