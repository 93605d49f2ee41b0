"""ALBERT's examples beside those that its own program made of the kit's text, byte for byte."""

import hashlib
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from bertdata.cli.main import main
from bertdata.config.dialects import find_dialect
from bertdata.examples.random_stream import NumpyStream
from bertdata.examples.sop.make import make_sop_examples
from bertdata.examples.sop.ngrams import NgramLengths
from bertdata.examples.sop.settings import SopSettings
from bertdata.records import Documents, Vocabulary
from bertdata.shards.tfrecord import encode_batch
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer

PLAIN = "eval__s128__p20__d5__ngram1"
CASES = {
    PLAIN: (),
    "eval__s512__p77__d5__ngram1__no-whole-word-mask": ("--no-whole-word-mask",),
    "eval__s128__p20__d5__ngram1__random-next-sentence": ("--random-next-sentence",),
    "eval__s128__p20__d5__ngram1__permutation": ("--permutation",),
    "eval__s128__p20__d5__ngram3__numpy-seed12345": (),
    "eval__s128__p20__d5__ngram3__favor-longer__numpy-seed1": ("--no-favor-shorter-ngram",),
}
"""The oracles that are the same in each run of the original, with our flags for what is not its default."""
BOTH = ("native", "python")


@pytest.fixture(scope="session")
def albert(kit: Path) -> dict[str, dict[str, Any]]:
    if not (kit / "albert").is_dir():
        pytest.skip("the kit has no oracles of ALBERT")
    found: dict[str, dict[str, Any]] = json.loads((kit / "albert" / "expected.json").read_text())
    return found


@pytest.fixture(scope="session")
def read(kit: Path) -> tuple[Documents, Vocabulary]:
    """The kit's text and the vocabulary."""
    path, dialect = kit / "vocab" / "bert-base-uncased.txt", find_dialect("google")
    vocabulary = parse_vocabulary(path.read_bytes(), path.name, dialect)
    tokenizer = WordPieceTokenizer(vocabulary, dialect, lower_case=True)
    return tokenizer.encode([(kit / "results" / "eval.txt").read_bytes()], ["eval.txt"]), vocabulary


def settings_of(case: dict[str, Any]) -> SopSettings:
    """Ours for an oracle's. With permutation our number of masks counts the permuted positions too."""
    given, twice = case["settings"], 2 if case["settings"]["do_permutation"] else 1
    return SopSettings(
        max_seq_length=given["max_seq_length"],
        max_predictions_per_seq=given["max_predictions_per_seq"] * twice,
        dupe_factor=given["dupe_factor"],
        random_next_sentence=given["random_next_sentence"],
        ngram=given["ngram"],
        favor_shorter_ngram=given["favor_shorter_ngram"],
        whole_word_mask=given["do_whole_word_mask"],
        permutation=given["do_permutation"],
    )


@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("name", CASES)
def test_the_examples_are_those_of_the_original(albert, read, monkeypatch, name, engine):
    case, (documents, vocabulary) = albert[name], read
    settings = settings_of(case)
    if case["numpy_seed"] is not None:
        monkeypatch.setattr(SopSettings, "ngram_seed", case["numpy_seed"])
    made = make_sop_examples(documents, vocabulary, settings, engine)
    content = encode_batch(made.batch(0, len(made)), settings.layout)
    assert (len(made), made.masked, len(content)) == (case["examples"], case["masked"], case["bytes"])
    assert hashlib.md5(content).hexdigest() == case["content_md5"]


@pytest.mark.parametrize("name", [name for name in CASES if "seed1" not in name or "seed12345" in name])
def test_create_writes_the_files_of_the_original(kit, albert, tmp_path, name):
    """Where NumPy was not seeded, or with the seed that ours has."""
    settings = settings_of(albert[name])
    flags = [f"--max-seq-length={settings.max_seq_length}", f"--ngram={settings.ngram}", "--dupe-factor=5"]
    flags += [f"--max-predictions-per-seq={settings.max_predictions_per_seq}", *CASES[name], "--workers=1"]
    words = ["create", str(kit / "results" / "eval.txt"), "--objective=sop", f"--output={tmp_path}"]
    assert main([*words, f"--vocab={kit / 'vocab' / 'bert-base-uncased.txt'}", *flags]) == 0
    content = (tmp_path / "eval.txt.tfrecord").read_bytes()
    assert hashlib.md5(content).hexdigest() == albert[name]["content_md5"]
    if name == PLAIN:
        assert content == lzma.decompress((kit / "albert" / f"{PLAIN}.tfrecord.xz").read_bytes())


def test_the_case_that_is_left_out_has_no_other_than_unseeded_lengths(albert):
    assert {name for name, case in albert.items() if case["deterministic"]} == set(CASES)


@pytest.mark.parametrize("number", [0, 1, 12345, 2**32 - 1])
def test_lengths_are_numpys_own_choices(number):
    numpy = pytest.importorskip("numpy")
    for longest in (1, 2, 3, 7):
        for favors_shorter in (True, False):
            settings = SopSettings(ngram=longest, favor_shorter_ngram=favors_shorter)
            lengths, theirs = (
                NgramLengths(settings.ngram_limits, NumpyStream(number).random),
                numpy.random.RandomState(number),
            )
            shares = 1.0 / numpy.arange(1, longest + 1)
            shares /= shares.sum()
            shares = shares if favors_shorter else shares[::-1]
            drawn = [lengths.draw() for _ in range(500)]
            sizes = numpy.arange(1, longest + 1)
            assert drawn == [theirs.choice(sizes, p=shares / shares.sum()) for _ in drawn]
