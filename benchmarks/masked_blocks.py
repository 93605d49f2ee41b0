"""Time of making masked blocks, with the C++ kernel and with the Python engine.

The kernel that makes BERT's examples is measured for comparison. The text is the same for all three. The
figure is nanoseconds per token.
"""

import time
from collections.abc import Callable

from benchmarks import corpus
from bertdata.config.dialects import find_dialect
from bertdata.examples.bert.make import make_bert_examples
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.mlm.blocks import BREAKS
from bertdata.examples.mlm.make import make_blocks
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.records import Documents, MadeExamples
from bertdata.shards.write import BATCH
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer

TEXT_BYTES = 10_000_000
TWIN_BYTES = 500_000
REPEATS = 7


def measure_cost(make: Callable[[], MadeExamples]) -> float:
    """Make all examples and collect them in batches. Return the CPU nanoseconds per token.

    make: function that makes the examples.
    """
    start = time.process_time()
    examples = make()
    for first in range(0, len(examples), BATCH):
        examples.batch(first, first + BATCH)
    return (time.process_time() - start) / examples.tokens * 1e9


def main() -> None:
    """Print the times."""
    dialect = find_dialect("mlperf")
    vocabulary = parse_vocabulary(corpus.find_vocabulary().read_bytes(), "vocabulary", dialect)
    tokenizer = WordPieceTokenizer(vocabulary, dialect, lower_case=True)

    def documents(size: int) -> Documents:
        """Return as many documents of the text as have about ``size`` tokens."""
        return tokenizer.encode([corpus.make_long_text(size)], ["text"])

    text = documents(TEXT_BYTES)
    for passes, length in ((1, 512), (10, 512), (1, 64)):
        masks = length * 76 // 512
        pairs = BertSettings(dupe_factor=passes, max_seq_length=length, max_predictions_per_seq=masks)
        makers: dict[str, Callable[[], MadeExamples]] = {
            "bert": lambda pairs=pairs: make_bert_examples(text, vocabulary, pairs)
        }
        for breaks in BREAKS:
            settings = MlmSettings(blocks=breaks, dupe_factor=passes, max_seq_length=length)
            makers[breaks] = lambda settings=settings: make_blocks(text, vocabulary, settings)
        costs: dict[str, list[float]] = {name: [] for name in makers}
        for _ in range(REPEATS):  # They are measured in turns, so that other work on the machine affects all.
            for name, make in makers.items():
                costs[name].append(measure_cost(make))
        best = {name: min(found) for name, found in costs.items()}
        told = ", ".join(f"{name} {found:.1f} ({found / best['bert']:.2f})" for name, found in best.items())
        print(f"nanoseconds a token (times bert's), passes {passes}, {length} ids: {told}")
    short = documents(TWIN_BYTES)
    native, python = (
        min(
            measure_cost(lambda engine=engine: make_blocks(short, vocabulary, MlmSettings(), engine))
            for _ in range(3)
        )
        for engine in ("native", "python")
    )
    times = python / native
    print(f"twin {python:.0f}, kernel {native:.1f} nanoseconds a token: {times:.0f} times (wanted: 30)")


if __name__ == "__main__":
    main()
