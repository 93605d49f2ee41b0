"""Microseconds per example of each step of making a shard, such as tokenising and writing, in one process."""

import hashlib
import tempfile
import time

from benchmarks import corpus
from bertdata.config.dialects import find_dialect
from bertdata.examples.bert.make import make_bert_examples
from bertdata.examples.bert.settings import BertSettings
from bertdata.shards.tfrecord import encode_batch
from bertdata.shards.write import BATCH
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer

PART_BYTES = 10_000_000


def main() -> None:
    """Print the time of each stage."""
    settings, dialect = BertSettings(), find_dialect("mlperf")
    text = corpus.make_long_text(PART_BYTES)
    vocabulary = parse_vocabulary(corpus.find_vocabulary().read_bytes(), "vocabulary", dialect)
    tokenizer = WordPieceTokenizer(vocabulary, dialect, lower_case=True)
    seconds: dict[str, float] = dict.fromkeys(
        ("tokenise", "draw and mask", "gather", "encode", "write", "md5"), 0.0
    )
    last = time.process_time()

    def add_lap(stage: str) -> None:
        """Add the time since the last call to the time of this step."""
        nonlocal last
        now = time.process_time()
        seconds[stage] += now - last
        last = now

    documents = tokenizer.encode([text], ["text"])
    add_lap("tokenise")
    examples = make_bert_examples(documents, vocabulary, settings)
    add_lap("draw and mask")
    digest = hashlib.md5(usedforsecurity=False)
    with tempfile.TemporaryFile() as file:
        for start in range(0, len(examples), BATCH):
            batch = examples.batch(start, start + BATCH)
            add_lap("gather")
            records = encode_batch(batch, settings.layout)
            add_lap("encode")
            file.write(records)
            add_lap("write")
            digest.update(records)
            add_lap("md5")
    parts = ", ".join(f"{stage} {spent / len(examples) * 1e6:.1f}" for stage, spent in seconds.items())
    print(f"microseconds an example of 512 ids, {len(examples)} examples: {parts}")


if __name__ == "__main__":
    main()
