"""Lines of text to token ids, one thread each: ours, TensorFlow Text's FastBertTokenizer, tokenizers."""

import os
from typing import Any

from benchmarks import corpus, measure

TEXT_BYTES = 10_000_000


def ours(text: bytes) -> float:
    from bertdata.config.dialects import find_dialect
    from bertdata.tokens.vocabulary import parse_vocabulary
    from bertdata.tokens.wordpiece import WordPieceTokenizer

    dialect = find_dialect("google")
    vocabulary = parse_vocabulary(corpus.vocabulary().read_bytes(), "vocabulary", dialect)

    def run() -> Any:  # a new tokeniser each time: its cache of words starts empty
        return WordPieceTokenizer(vocabulary, dialect, lower_case=True, engine="native").tokenize(
            [text], ["text"]
        )

    return measure.best_cpu(run)


def tensorflow_text(text: bytes) -> float:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    import tensorflow_text as tft

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    words = corpus.vocabulary().read_text(encoding="utf-8").splitlines()
    tokenizer = tft.FastBertTokenizer(vocab=words, token_out_type=tf.int32, lower_case_nfd_strip_accents=True)
    lines = tf.constant(text.split(b"\n"))
    return measure.best_cpu(lambda: tokenizer.encode(lines))


def tokenizers_library(text: bytes) -> float:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(str(corpus.vocabulary()), lowercase=True)
    lines = text.decode().split("\n")
    return measure.best_cpu(lambda: tokenizer.encode_batch(lines, add_special_tokens=False), repeats=2)


def main() -> None:
    text = corpus.long_text(TEXT_BYTES)
    seconds = {
        "bertdata": ours(text),
        "TensorFlow Text FastBertTokenizer": tensorflow_text(text),
        "tokenizers": tokenizers_library(text),
    }
    print(f"tokenising {len(text) / 1e6:.1f} MB, one thread:")
    for name, spent in seconds.items():
        ratio = spent / seconds["bertdata"]
        print(f"  {name:<34} {len(text) / 1e6 / spent:7.1f} MB/s   bertdata is {ratio:.1f} times as fast")
    print("  (wanted: 3 times FastBertTokenizer, 30 times tokenizers)")


if __name__ == "__main__":
    main()
