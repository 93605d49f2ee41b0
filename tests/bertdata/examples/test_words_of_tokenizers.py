"""Whole words of a BPE through the commands: those that the library's ``word_ids`` tell of documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bertdata as face
from bertdata.cli.main import main
from bertdata.dataset.reader import open_dataset

tokenizers = pytest.importorskip("tokenizers")

DOCUMENTS = [
    [
        "The lighthouse keeper walked down to the harbour before dawn.",
        "An unfamiliar schooner had anchored there; nobody aboard answered his greetings.",
    ],
    [
        "Uncharacteristically, both thermometers of the observatory disagreed.",
        "Recalibrating them took three days (and eleven spare batteries).",
        "Afterwards everybody celebrated with buttered gingerbread.",
    ],
    ["Longer explanations, counterintuitive ones above all, are remembered."],
]
Words = dict[tuple[int, ...], list[set[int]]]
"""By a sentence's ids the positions of each of its words, counted from its first id."""


@pytest.fixture(scope="module")
def part(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("text") / "part-00000"
    path.write_text("\n\n".join("\n".join(lines) for lines in DOCUMENTS) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def bpe(tmp_path_factory) -> Path:
    """A byte-level BPE of few merges, so that most words are several ids."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([line for lines in DOCUMENTS for line in lines], trainer)
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    made.save(str(path))
    return path


@pytest.fixture(scope="module")
def words(bpe) -> Words:
    """The words of each sentence, by the library alone."""
    library, found = tokenizers.Tokenizer.from_file(str(bpe)), {}
    for lines in DOCUMENTS:
        encoded = library.encode(" ".join(lines), add_special_tokens=False)
        stops = [sum(len(line) + 1 for line in lines[: number + 1]) - 1 for number in range(len(lines))]
        sentences: list[list[int]] = [[] for _ in lines]  # a blank between two belongs to the second
        for token, (start, _) in enumerate(encoded.offsets):
            sentences[sum(start >= stop for stop in stops)].append(token)
        for sentence in sentences:
            groups: dict[Any, set[int]] = {}
            for place, token in enumerate(sentence):
                groups.setdefault(encoded.word_ids[token], set()).add(place)
            found[tuple(encoded.ids[token] for token in sentence)] = list(groups.values())
    return found


def create(part: Path, tokenizer: Path, output: Path, *more: str) -> Path:
    flags = ["--objective=mlm", "--blocks=eos", "--max-seq-length=96", "--masked-lm-prob=0.4", "--workers=1"]
    assert (
        main(["create", str(part), "--output", str(output), "--tokenizer", str(tokenizer), *flags, *more])
        == 0
    )
    return output


def objective_of(place: Path) -> str:
    name: str = json.loads((place / "manifest.json").read_text())["settings"]["objective"]["name"]
    return name


def originals(example: Any) -> list[int]:
    ids = list(example.ids)
    for position, label in zip(example.positions, example.labels, strict=True):
        ids[position] = label
    return ids


def words_of(examples: list[Any], words: Words) -> Iterator[tuple[Any, set[int]]]:
    """Each word of the examples with its positions there. All sentences are among them, once."""
    assert sorted(tuple(originals(example)[1:-1]) for example in examples) == sorted(words)
    for example in examples:
        for places in words[tuple(originals(example)[1:-1])]:
            yield example, {place + 1 for place in places}


def assert_whole(examples: list[Any], words: Words) -> None:
    masked = [(len(word & set(example.positions)), len(word)) for example, word in words_of(examples, words)]
    assert all(count in (0, size) for count, size in masked)
    assert sum(count > 2 for count, _ in masked) > 5


def test_create_masks_the_library_s_words(part, bpe, words, tmp_path):
    place = create(part, bpe, tmp_path / "whole", "--whole-word-mask", "--dupe-factor=4")
    found = list(face.open_dataset(place))
    assert objective_of(place) == "mlm"
    by_text: dict[tuple[int, ...], list[Any]] = {}
    for example in found:
        by_text.setdefault(tuple(originals(example)), []).append(example)
    for number in range(4):
        assert_whole([some[number] for some in by_text.values()], words)


def test_masks_at_load_take_the_library_s_words(part, bpe, words, tmp_path):
    place = create(part, bpe, tmp_path / "unmasked", "--no-masks")
    assert objective_of(place) == "mlm_word_starts"
    data = face.open_dataset(place)
    for example in data:
        starts = {position for position, bit in enumerate(example.word_starts) if bit}
        firsts = {min(word) + 1 for word in words[tuple(example.ids[1:-1])]}
        assert starts == {0, len(example.ids) - 1} | firsts
    for epoch in range(3):
        assert_whole(list(data.masked(whole_word_mask=True, masked_lm_prob=0.4, epoch=epoch)), words)


def test_commands_accept_the_objective_that_create_was_given(part, bpe, tmp_path, capfd):
    from trainer.__main__ import main as train

    place = create(part, bpe, tmp_path / "unmasked", "--no-masks")
    assert objective_of(place) == "mlm_word_starts"
    assert main(["show", str(place / "part-00000.tfrecord"), "--objective=mlm"]) == 0
    packed = ["--output", str(tmp_path / "packed"), "--layout=flat", "--workers=1", "--objective=mlm"]
    assert main(["pack", str(place), *packed]) == 0
    data = face.open_dataset(place, objective="mlm")
    assert list(data) == list(face.open_dataset(place))
    assert next(iter(data.numpy(batch_size=6)))["input_ids"].shape == (6, 96)
    run = ["--train-data", str(place), "--output-dir", str(tmp_path / "run"), "--masking=dynamic"]
    assert train(["pretrain", *run, "--objective=mlm", "--config=tiny", "--steps=1", "--device=cpu"]) == 0
    capfd.readouterr()
    assert main(["stats", str(place)]) == 0
    assert capfd.readouterr().out.startswith(f"{place}: mlm (stored as mlm_word_starts)\n")
    report = tmp_path / "report.html"
    assert main(["report", str(place), "--output", str(report)]) == 0
    assert "for the objective mlm (stored as mlm_word_starts)" in report.read_text(encoding="utf-8")
    assert main(["show", str(place / "part-00000.tfrecord"), "--objective=bert"]) == 2


@pytest.mark.thorough
def test_word_starts_outlive_shuffling_packing_and_bins(part, bpe, tmp_path):
    def rows(place: Path) -> list[Any]:
        opened = open_dataset(str(place))
        assert opened.layout.objective == "mlm_word_starts"
        return sorted(
            (example.ids, example.word_starts)
            for shard in opened.shards
            for batch in opened.batches(shard)
            for example in batch.examples()
        )

    plain = create(part, bpe, tmp_path / "plain", "--no-masks")
    assert {bit for _, starts in rows(plain) for bit in starts} == {0, 1}
    shuffled = create(part, bpe, tmp_path / "shuffled", "--no-masks", "--shuffle=global", "--num-shards=2")
    bins = create(part, bpe, tmp_path / "bins", "--no-masks", "--bin-size=32", "--format=parquet")
    assert (
        main(["pack", str(plain), "--output", str(tmp_path / "packed"), "--layout=flat", "--workers=1"]) == 0
    )
    for place in (shuffled, bins, tmp_path / "packed"):
        assert rows(place) == rows(plain), place.name
        assert main(["verify-md5", str(place), "--content"]) == 0


@pytest.mark.thorough
def test_training_on_shards_without_word_starts_says_how_to_make_them(part, bpe, tmp_path, capfd):
    from trainer.__main__ import main as train

    place = create(part, bpe, tmp_path / "masked")
    capfd.readouterr()
    flags = ["--masking=dynamic", "--whole-word-mask=true", "--config=tiny", "--steps=1", "--device=cpu"]
    assert train(["pretrain", "--train-data", str(place), "--output-dir", str(tmp_path / "run"), *flags]) == 2
    line = capfd.readouterr().err.splitlines()[-1]
    assert f"{place}: holds no word starts" in line
    assert line.endswith("make the shards with bertdata create --no-masks, which keeps them")
