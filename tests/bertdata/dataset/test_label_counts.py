"""Counts of labels: the guesses that look at no text, and their probabilities."""

import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import bertdata
from bertdata.dataset.label_counts import Frequencies, LabelSurvey, survey_labels, tell_guess
from bertdata.dataset.reader import open_dataset
from bertdata.examples.groups import masks_of, pair_labels
from trainer.config.settings import Config
from trainer.data.generated import configured_data


def test_the_most_frequent_label_is_the_smallest_among_equals():
    assert Frequencies([1, 4, 4]).most_frequent == 1
    assert Frequencies([1, 4, 4]).share == 4 / 9


def test_a_label_that_was_never_counted_has_a_probability_too():
    losses = Frequencies([6, 1, 0]).losses()
    assert np.exp(-losses) == pytest.approx([7 / 10, 2 / 10, 1 / 10])


def test_a_survey_counts_masked_words_and_pairs(training_set):
    data = open_dataset(str(training_set))
    words, pairs = Counter(), Counter()
    for batch in (batch for shard in data.shards for batch in data.batches(shard)):
        words.update(masks_of(batch).originals.tolist())
        pairs.update(pair_labels(batch).tolist())
    found = survey_labels(data)
    assert Counter({token: n for token, n in enumerate(found.words.counts) if n}) == words
    assert found.pairs.counts == [pairs[0], pairs[1]]
    assert found.pair_word == f'"{["is next", "is random"][pairs[1] > pairs[0]]}"'


def test_the_guessed_word_is_told_by_its_spelling(training_set):
    data = open_dataset(str(training_set))
    found = survey_labels(data)
    spellings = (training_set / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert found.word == f'"{spellings[found.words.most_frequent]}"'


def told_guess(data) -> list[str]:
    lines: list[str] = []
    tell_guess(data, lines.append)
    return lines


def test_a_guess_is_told_with_its_accuracies_and_losses(training_set):
    data = open_dataset(str(training_set))
    (line,) = told_guess(data)
    found = re.findall(r'(\w+) accuracy ([\d.]+) \(always "[^"]+"\), \1 loss ([\d.]+)', line)
    for (name, accuracy, loss), labels in zip(found, survey_labels(data)[::2], strict=True):
        counts = np.array(labels.counts)
        losses = -np.log((counts + 1) / (counts + 1).sum())
        assert float(accuracy) == pytest.approx(counts.max() / counts.sum(), abs=1e-4), name
        assert float(loss) == pytest.approx(np.average(losses, weights=counts), abs=1e-4), name
    assert [name for name, *_ in found] == ["mlm", "nsp"]


def test_nothing_is_told_of_a_damaged_shard(training_set, tmp_path):
    shutil.copytree(training_set, tmp_path / "data")
    data = open_dataset(str(tmp_path / "data"))
    shard = Path(data.shards[0].path)
    shard.write_bytes(bytes(shard.stat().st_size))
    assert told_guess(data) == []


def test_of_unmasked_examples_all_words_are_counted_but_the_special_tokens(
    corpus, small_vocabulary_file, tmp_path
):
    made = {"vocab": small_vocabulary_file, "objective": "mlm", "max_seq_length": 64}
    bertdata.create(corpus, tmp_path / "blocks", masks=False, **made)
    data = open_dataset(str(tmp_path / "blocks"))
    spellings = small_vocabulary_file.read_text(encoding="utf-8").splitlines()
    words: Counter[str] = Counter()
    for batch in (batch for shard in data.shards for batch in data.batches(shard)):
        words.update(spellings[token] for token in np.asarray(batch.ids).tolist())
    del words["[CLS]"], words["[SEP]"]
    found = survey_labels(data)
    assert Counter({spellings[i]: n for i, n in enumerate(found.words.counts) if n}) == words
    assert found.word == f'"{max(words, key=lambda word: words[word])}"'


def test_without_a_vocabulary_the_guessed_word_is_told_by_its_number():
    keys = {"vocab_size": 50, "max_seq_length": 16, "max_predictions_per_seq": 2}
    found = survey_labels(configured_data(Config.of(generated_data=True, **keys)))
    assert found.word == f"token {found.words.most_frequent}"


def test_a_survey_survives_json(training_set):
    found = survey_labels(open_dataset(str(training_set)))
    assert LabelSurvey.of_json(found.as_json()) == found
