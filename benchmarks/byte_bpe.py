"""Speed of byte-level BPE in one thread: this project, tiktoken and tokenizers, all with the same merges.

The command ``create --objective mlm`` is measured too, with BPE and with WordPiece. This project's tokenizer
has a cache of words. The speed called "cold" is that of the first pass of a new tokenizer, whose cache is
empty. The speed called "warm" is that of its second pass over the same text. tiktoken and tokenizers receive
the documents as Python strings, and this project receives their lines as bytes.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import corpus, measure

MERGES = 32_000
ROLES = ("cls=!", "sep=.", "mask=?", "pad=~")
"""Flags that say which tokens are the special ones. Any tokens will do, because only time is measured."""
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def train_tokenizer() -> dict[str, Any]:
    """Train a BPE tokenizer with MERGES merges on the benchmarks' text, and return its tokenizer.json."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=MERGES + len(alphabet), min_frequency=1, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(corpus.read_text().decode().split("\n"), trainer)
    parsed: dict[str, Any] = json.loads(tokenizer.to_str())
    return parsed


def make_our_tokenizer(parsed: dict[str, Any]) -> Any:
    """Return a new tokenizer of this project."""
    from bertdata.records import Vocabulary
    from bertdata.tokens.bpe.tokenizer import ByteBpeTokenizer

    words = list(parsed["model"]["vocab"])
    vocabulary = Vocabulary(
        name="bpe", md5="", words=words, continues_word=None, replacements=tuple(range(len(words)))
    )
    return ByteBpeTokenizer(parsed, vocabulary, engine="native")


def make_tiktoken(parsed: dict[str, Any]) -> Any:
    """Return a tiktoken encoding with the same merges.

    Its ids are the ranks of the merges, and differ from the ids of the other tokenizers. Only the number of
    ids can be compared.
    """
    from tiktoken import Encoding

    from bertdata.tokens.bpe.settings import make_byte_alphabet

    byte_of = {unit: byte for byte, unit in enumerate(make_byte_alphabet())}
    ranks = {bytes([byte]): byte for byte in range(256)}
    for merge in parsed["model"]["merges"]:
        ranks.setdefault(bytes(byte_of[unit] for unit in "".join(merge)), len(ranks))
    return Encoding("bpe", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={})


def report(text: bytes) -> None:
    """Print the speed of every tokenizer on this text, which has one sentence per line."""
    from tokenizers import Tokenizer

    from benchmarks.tokenizing import time_cold_and_warm

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    parsed = train_tokenizer()

    def new() -> Any:
        """Return a new tokenizer of this project, whose cache is empty."""
        tokenizer = make_our_tokenizer(parsed)
        return lambda: len(tokenizer.encode([text], ["text"]).ids)

    documents = [" ".join(part.split("\n")) for part in text.decode().strip("\n").split("\n\n")]
    seconds = time_cold_and_warm({"bertdata": new})
    peers = {"tiktoken": make_tiktoken(parsed), "tokenizers": Tokenizer.from_str(json.dumps(parsed))}
    counts = {
        "bertdata": new()(),
        "tiktoken": sum(len(peers["tiktoken"].encode_ordinary(document)) for document in documents),
        "tokenizers": sum(len(one.ids) for one in peers["tokenizers"].encode_batch_fast(documents)),
    }
    if len(set(counts.values())) > 1:
        sys.exit(f"benchmarks.byte_bpe: not the same number of token ids: {counts}")
    for name, work in {
        "tiktoken": lambda: [peers["tiktoken"].encode_ordinary(document) for document in documents],
        "tokenizers": lambda: peers["tokenizers"].encode_batch_fast(documents),
    }.items():
        spent = measure.measure_best_cpu(work, repeats=2)
        seconds[name] = spent, spent
    print(f"byte-level BPE of {len(parsed['model']['merges'])} merges, {len(text) / 1e6:.1f} MB, one thread,")
    print("MB a CPU second (and its ratio to bertdata):")
    print(f"  {'':<34} {'cold':>7}           {'warm':>7}")
    for name, passes in seconds.items():
        figures = (
            f"{len(text) / 1e6 / spent:7.1f} ({base / spent:5.3f})"
            for spent, base in zip(passes, seconds["bertdata"], strict=True)
        )
        print(f"  {name:<34} {'   '.join(figures)}")
    print("  (wanted: 4 times tiktoken, 30 times tokenizers)")


def report_create(text: bytes) -> None:
    """Print the CPU seconds of ``bertdata create`` on this text with each tokenizer."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "part").write_bytes(text)
        (folder / "tokenizer.json").write_text(json.dumps(train_tokenizer()))
        given = {
            "WordPiece": ["--vocab", str(corpus.find_vocabulary())],
            "byte-level BPE": [f"--tokenizer={folder / 'tokenizer.json'}", *map("--role={}".format, ROLES)],
        }
        seconds = {}
        for name, flags in given.items():
            words = ["create", str(folder / "part"), *flags, "--objective=mlm", "--workers=1"]
            runs = [
                measure.measure_command(
                    sys.executable, "-m", "bertdata", *words, f"--output={folder / name}-{run}"
                )
                for run in range(3)
            ]
            seconds[name] = min(cost.cpu for cost in runs)
    print(f"create --objective mlm of a part of {len(text) / 1e6:.1f} MB, CPU seconds of the command:")
    for name, spent in seconds.items():
        print(f"  {name:<34} {spent:7.2f} s   ({spent / seconds['WordPiece']:5.2f} times WordPiece's)")
    print("  (wanted: at most twice WordPiece's)")


def main() -> None:
    """Print the speeds of the tokenizers and of ``bertdata create``."""
    text = corpus.make_long_text(10_000_000)
    report(text)
    report_create(text)


if __name__ == "__main__":
    main()
