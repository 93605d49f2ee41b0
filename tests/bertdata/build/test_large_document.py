"""A document that is most of a run's text is told, in create and on Beam, and small ones are not."""

from pathlib import Path

import pytest

import bertdata
from beam_pipelines import prepare
from bertdata.build.large_document import count_largest_document, make_large_document_warning
from bertdata.dataset.manifest import InputEntry
from bertdata.records import Documents

WORDS = 100 * 16
"""Words that fill a hundred examples of 16 ids."""
LINE = "the of and to " * 3
SETTINGS = {"max_seq_length": 16, "dupe_factor": 1}


def entry(name: str, tokens: int) -> InputEntry:
    return InputEntry(name=name, bytes=1, md5="", documents=1, sentences=1, tokens=tokens)


@pytest.mark.parametrize(
    ("largest", "tokens", "is_told"),
    [
        (1600, [1600, 1599], True),
        (1600, [1600, 1600], False),  # half of all
        (1599, [1599], False),  # less than a hundred examples
        (1600, [1600], True),
        (None, [1600], False),
    ],
)
def test_more_than_half_of_all_tokens_and_a_hundred_examples_are_told(largest, tokens, is_told):
    inputs = [entry(f"part-{number}", one) for number, one in enumerate(tokens)]
    found = make_large_document_warning(largest, inputs, 16)
    assert (found is not None) == is_told
    if found is not None:
        assert found.startswith(f"part-0: one document has {1600 / sum(tokens):.0%} of all tokens (1600 of ")


def test_the_largest_document_is_counted_over_its_sentences():
    # documents of 3 + 1, 2, and 0 + 5 ids
    documents = Documents(
        ids=bytes(11), sentence_ends=bytes([3, 4, 6, 6, 11]), document_ends=bytes([2, 3, 5])
    )
    assert count_largest_document(documents) == 5
    assert count_largest_document(Documents(ids=b"", sentence_ends=b"", document_ends=b"")) == 0


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A directory of two parts: three short documents, and a short one before a large one."""
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "part-0").write_text(f"{LINE}\n{LINE}\n\n" * 3)
    (folder / "part-1").write_text(f"{LINE}\n\n" + f"{LINE}\n" * (WORDS // 12 + 1))
    return folder


@pytest.mark.parametrize(
    "more", [{}, {"shuffle": "global", "num_shards": 2}, {"objective": "electra", "as_original": True}]
)
def test_create_tells_once_of_a_large_document(parts, small_vocabulary_file, tmp_path, more):
    settings = {"max_seq_length": 16} if "objective" in more else SETTINGS
    given = {"vocab": small_vocabulary_file, **settings, **more, "workers": 1}
    made = bertdata.create(sorted(parts.iterdir()), tmp_path / "out", **given)
    [told] = [one for one in made.warnings if "one document" in one]
    assert told.startswith("part-1: one document has 95% of all tokens (1608 of ")
    again = bertdata.create(sorted(parts.iterdir()), tmp_path / "out", **given)
    assert not [one for one in again.warnings if "one document" in one], "the shards are kept, not made"


@pytest.mark.parametrize("shuffle", [[], ["--shuffle=global", "--num-shards=2"]])
def test_beam_tells_once_of_a_large_document(parts, small_vocabulary_file, tmp_path, capsys, shuffle):
    flags = ["--recipe=google", "--max-seq-length=16", "--dupe-factor=1", *shuffle]
    words = ["--input", f"{parts}/part-*", "--input-kind=parts", "--output", str(tmp_path / "out")]
    assert prepare.main([*words, "--vocab", str(small_vocabulary_file), *flags]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "one document" in line]
    assert [line.partition(" (")[0] for line in told] == [
        "beam_pipelines.prepare: warning: part-1: one document has 95% of all tokens"
    ]
