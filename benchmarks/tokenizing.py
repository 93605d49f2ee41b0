"""Speed of WordPiece in one thread: this project, nanotoken, TensorFlow Text's FastBertTokenizer, tokenizers.

This project and nanotoken have a cache of words. The speed called "cold" is that of the first pass of a new
tokenizer, whose cache is empty. The speed called "warm" is that of its second pass over the same text. The
other two have no cache, so each has a single figure.
"""

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import corpus, measure

TEXT_BYTES = 10_000_000
ROUNDS = 5
Tokenize = Callable[[], int]
"""Type of a function that tokenizes the whole text once and returns the number of ids."""


def make_our_tokenizer(text: bytes) -> Tokenize:
    """Return a function that tokenizes the text with a new tokenizer of this project."""
    from bertdata.config.dialects import find_dialect
    from bertdata.tokens.vocabulary import parse_vocabulary
    from bertdata.tokens.wordpiece import WordPieceTokenizer

    dialect = find_dialect("google")
    vocabulary = parse_vocabulary(corpus.find_vocabulary().read_bytes(), "vocabulary", dialect)
    tokenizer = WordPieceTokenizer(vocabulary, dialect, lower_case=True, engine="native")
    return lambda: len(tokenizer.encode([text], ["text"]).ids)


def make_nanotoken(path: Path) -> Tokenize:
    """Return a function that tokenizes the file with a new tokenizer of nanotoken.

    nanotoken reads the file itself, which is its fastest way.
    """
    import nanotoken

    tokenizer = nanotoken.Tokenizer.from_vocab(corpus.find_vocabulary(), lowercase=True)
    lines = nanotoken.TextFileSource(path, separator="\n")
    return lambda: tokenizer.encode_files(lines, add_special_tokens=False, parallel=False).num_tokens


def time_tensorflow_text(text: bytes) -> float:
    """Return the CPU seconds that TensorFlow Text takes for the text."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    import tensorflow_text as tft

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    words = corpus.find_vocabulary().read_text(encoding="utf-8").splitlines()
    tokenizer = tft.FastBertTokenizer(vocab=words, token_out_type=tf.int32, lower_case_nfd_strip_accents=True)
    lines = tf.constant(text.split(b"\n"))
    return measure.measure_best_cpu(lambda: tokenizer.tokenize(lines))


def time_tokenizers_library(text: bytes) -> float:
    """Return the CPU seconds that the library tokenizers takes for the text."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(str(corpus.find_vocabulary()), lowercase=True)
    lines = text.decode().split("\n")
    return measure.measure_best_cpu(
        lambda: tokenizer.encode_batch(lines, add_special_tokens=False), repeats=2
    )


def time_cold_and_warm(new: dict[str, Callable[[], Tokenize]]) -> dict[str, tuple[float, float]]:
    """Return for each tokenizer the CPU seconds of its first pass and of its second pass over the text.

    Each figure is the least over all rounds. The tokenizers run alternately, so that other work on the
    machine affects all of them. The benchmark ends with an error if two tokenizers make different numbers of
    ids.

    new: functions that make a new tokenizer, by its name.
    """
    seconds = {name: (float("inf"), float("inf")) for name in new}
    ids: dict[str, Any] = {}
    for _ in range(ROUNDS):
        for name, make in new.items():
            tokenize = make()
            passes = []
            for _ in range(2):
                gc.collect()
                start = time.process_time()
                ids[name] = tokenize()
                passes.append(time.process_time() - start)
            cold, warm = seconds[name]
            seconds[name] = min(cold, passes[0]), min(warm, passes[1])
    if len(set(ids.values())) > 1:
        sys.exit(f"benchmarks.tokenizing: not the same number of token ids: {ids}")
    return seconds


def main() -> None:
    """Print the speeds of all tokenizers."""
    text = corpus.make_long_text(TEXT_BYTES)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "text")
        path.write_bytes(text)
        seconds = time_cold_and_warm(
            {"bertdata": lambda: make_our_tokenizer(text), "nanotoken": lambda: make_nanotoken(path)}
        )
    for name, function in {
        "TensorFlow Text FastBertTokenizer": time_tensorflow_text,
        "tokenizers": time_tokenizers_library,
    }.items():
        spent = function(text)
        seconds[name] = spent, spent
    print(f"tokenising {len(text) / 1e6:.1f} MB, one thread, MB a CPU second (and its ratio to bertdata):")
    print(f"  {'':<34} {'cold':>7}           {'warm':>7}")
    for name, passes in seconds.items():
        figures = (
            f"{len(text) / 1e6 / spent:7.1f} ({base / spent:5.2f})"
            for spent, base in zip(passes, seconds["bertdata"], strict=True)
        )
        print(f"  {name:<34} {'   '.join(figures)}")
    print("  (wanted: 3 times FastBertTokenizer, 30 times tokenizers)")


if __name__ == "__main__":
    main()
