"""Chosen examples of a dataset, their text, and batches padded to the longest example."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

import bertdata
from bertdata.errors import ChangedInputError, SettingsError
from bertdata.steps import open_dataset
from tests.support.paths import ROOT
from tests.support.tokenizer_files import train_bpe

VOCABULARY = ROOT / "golden" / "vocab.txt"
SIZES = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}
CHOSEN = [5, -1, 0, 5]


@pytest.fixture(scope="module", params=["tfrecord", "mixture"])
def data(request: Any, corpus: list[Path], tmp_path_factory: Any) -> Any:
    """Three shards of BERT's examples, and a mixture of them with themselves."""
    place: Path = tmp_path_factory.mktemp(request.param)
    bertdata.create(corpus, place / "a", vocab=VOCABULARY, workers=1, **SIZES)
    if request.param == "tfrecord":
        return bertdata.open_dataset(place / "a")
    bertdata.create(corpus[:1], place / "b", vocab=VOCABULARY, workers=1, random_seed=9, **SIZES)
    return bertdata.open_dataset({place / "a": 0.5, place / "b": 0.5})


def test_select_returns_the_examples_of_these_numbers(data):
    chosen = data.select(CHOSEN)
    wanted = [data[number] for number in CHOSEN]
    assert len(chosen) == 4
    assert list(chosen) == wanted
    assert chosen[1:] == wanted[1:]
    assert list(chosen.select([2, 0])) == [wanted[2], wanted[0]]
    assert list(pickle.loads(pickle.dumps(chosen))) == wanted
    assert list(data.select(np.array([3, 1]))) == [data[3], data[1]]


def test_chosen_examples_have_the_masks_that_they_have_in_the_whole(data):
    masked = data.masked(epoch=1, seed=7)
    wanted = [masked[number] for number in CHOSEN]
    assert list(masked.select(CHOSEN)) == wanted
    assert list(data.select(CHOSEN).masked(epoch=1, seed=7)) == wanted


def test_every_view_has_the_chosen_examples(data):
    chosen = data.select(CHOSEN)
    wanted = [data[number].ids for number in CHOSEN]
    (rows,) = chosen.numpy(batch_size=10)
    loader = DataLoader(chosen.torch(), batch_size=4, collate_fn=chosen.collator())
    tables = [
        rows["input_ids"],
        next(iter(loader))["input_ids"].numpy(),
        np.array([row["input_ids"] for row in chosen.datasets()]),
    ]
    for table in tables:
        assert [row[: len(ids)].tolist() for row, ids in zip(table, wanted, strict=True)] == wanted
    assert sorted(example.ids for rank in range(3) for example in chosen.torch(rank=rank, world=3)) == sorted(
        wanted
    )


def test_shuffle_keeps_all_examples_and_depends_on_the_seed_alone(data):
    shuffled = list(data.shuffle(seed=1))
    assert shuffled != list(data)
    assert sorted(map(repr, shuffled)) == sorted(map(repr, data))
    assert shuffled == list(data.shuffle(seed=1))
    assert shuffled != list(data.shuffle(seed=2))


@pytest.mark.parametrize("test_size", [0.25, 9])
def test_a_split_shares_no_example(data, test_size):
    found = data.train_test_split(test_size, seed=3)
    size = len(data)
    assert list(found) == ["train", "test"]
    assert len(found["test"]) == (round(size / 4) if test_size == 0.25 else 9)
    assert len(found["train"]) == size - len(found["test"])
    both = [*found["train"], *found["test"]]
    assert sorted(map(repr, both)) == sorted(map(repr, data))
    in_order = data.train_test_split(test_size, shuffle=False)
    assert [*in_order["train"], *in_order["test"]] == list(data)


def test_numbers_and_shares_that_fit_no_examples_are_refused(data):
    size = len(data)
    with pytest.raises(IndexError, match=f"example {size}, expected -{size} to {size - 1}"):
        data.select([0, size])
    with pytest.raises(SettingsError, match="no examples are chosen"):
        data.select([])
    for share in (0.0, 1.0, 1.5, 0, size, -1):
        with pytest.raises(SettingsError, match=f"test_size is {share} of {size} examples"):
            data.train_test_split(share)
    with pytest.raises(SettingsError, match="chosen examples have no modernbert"):
        data.select([0]).modernbert(batch_size=1, micro_batch_size=1)


def test_a_batch_padded_to_its_longest_example_is_the_beginning_of_the_padded_batch(data):
    examples = sorted(data, key=lambda example: len(example.ids))[:3]
    longest = len(examples[-1].ids)
    assert longest < 64
    short, full = data.collator(pad_to="longest")(examples), data.collator()(examples)
    assert short["input_ids"].shape == (3, longest)
    for name, values in full.items():
        assert (short[name] == (values[:, :longest] if values.dim() == 2 else values)).all()
    assert (full["attention_mask"][:, longest:] == 0).all()
    with pytest.raises(SettingsError, match="pad_to is 'widest', expected 'max_length' or 'longest'"):
        data.collator(pad_to="widest")


def test_decode_joins_word_pieces_and_can_undo_masks(data):
    example = data[0]
    words = VOCABULARY.read_text(encoding="utf-8").splitlines()
    masked = {place: example.ids[place] for place in example.positions}
    originals = dict(zip(example.positions, example.labels, strict=True))
    assert masked != originals
    for changed, original in ((masked, False), (originals, True)):
        ids = [changed.get(place, token) for place, token in enumerate(example.ids)]
        text = " ".join(words[token] for token in ids).replace(" ##", "")
        assert data.decode(example, original=original) == text
    vocabulary = data.tokenizer.vocabulary
    ids = [vocabulary.cls, *data.tokenizer.encode_each(["The old mill"]).ids, vocabulary.sep]
    assert data.decode(ids) == "[CLS] the old mill [SEP]"
    assert data.decode(ids, skip_special_tokens=True) == "the old mill"
    with pytest.raises(SettingsError, match=f"id 99999, expected 0 to {vocabulary.size - 1}"):
        data.decode([99999])


def test_decode_looks_for_the_vocabulary_once_and_refuses_a_changed_one(corpus, tmp_path, monkeypatch):
    bertdata.create(corpus[:1], tmp_path / "set", vocab=VOCABULARY, workers=1, **SIZES)
    data = bertdata.open_dataset(tmp_path / "set")
    text = data.decode(data[0])
    with monkeypatch.context() as patch:
        patch.setattr(open_dataset, "find_datasets", None)
        assert data.decode(data[0]) == text
        assert data.tokenizer.vocabulary.size == len(VOCABULARY.read_text().splitlines())
    copy = tmp_path / "set" / "vocab.txt"
    copy.write_text(copy.read_text().replace("\nthe\n", "\nteh\n"))
    with pytest.raises(ChangedInputError, match="vocab.txt"):
        data.decode(data[0])


def test_decode_puts_the_bytes_of_a_character_together(corpus, tmp_path):
    lines = corpus[0].read_text(encoding="utf-8").splitlines()
    tokenizer = train_bpe(tmp_path / "tokenizer.json", lines)
    bertdata.create(
        corpus[:1], tmp_path / "set", tokenizer=tokenizer, objective="mlm", masks=False, workers=1
    )
    data = bertdata.open_dataset(tmp_path / "set")
    text = "Die Mühle 磨坊 steht, \U0001f600 still."
    assert data.decode(list(data.tokenizer.encode_each([text]).ids)) == text


def test_a_program_that_keeps_examples_open_ends_without_a_message(data):
    """Objects in a circle of references live until the interpreter takes its modules apart."""
    code = f"""
import pickle
data = pickle.loads({pickle.dumps(data)!r})
keep = lambda: data
data[0]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
