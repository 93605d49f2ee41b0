"""Counts of labels: the guesses that look at no text, and their probabilities."""

import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import bertdata
from bertdata.config.settings import FORMATS
from bertdata.dataset import label_counts
from bertdata.dataset.label_counts import Frequencies, LabelSurvey, report_baseline, survey_labels
from bertdata.dataset.reader import open_dataset
from bertdata.examples.groups import get_masks, get_pair_labels
from trainer.config.settings import Config
from trainer.data.generated import make_configured_data
from trainer.data.opening import open_configured, prepare_for_training


def test_the_most_frequent_label_is_the_smallest_among_equals():
    assert Frequencies([1, 4, 4]).most_frequent == 1
    assert Frequencies([1, 4, 4]).share == 4 / 9


def test_a_label_that_was_never_counted_has_a_probability_too():
    losses = Frequencies([6, 1, 0]).compute_losses()
    assert np.exp(-losses) == pytest.approx([7 / 10, 2 / 10, 1 / 10])


def test_a_survey_counts_masked_words_and_pairs(training_set):
    data = open_dataset(str(training_set))
    words, pairs = Counter(), Counter()
    for batch in (batch for shard in data.shards for batch in data.batches(shard)):
        words.update(get_masks(batch).originals.tolist())
        pairs.update(get_pair_labels(batch).tolist())
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
    report_baseline(data, lines.append)
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
    for special in ("[CLS]", "[SEP]", "[UNK]"):
        del words[special]
    found = survey_labels(data)
    assert Counter({spellings[i]: n for i, n in enumerate(found.words.counts) if n}) == words
    assert found.word == f'"{max(words, key=lambda word: words[word])}"'


def test_the_unknown_token_of_unmasked_examples_is_no_guess(tmp_path):
    """Masks at load leave [UNK] out, however often the text has it."""
    spellings = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "tower"]
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in spellings))
    (tmp_path / "part").write_text("qx the qy qz\nqa tower the qb\n")
    made = {"vocab": tmp_path / "vocab.txt", "objective": "mlm", "max_seq_length": 16, "workers": 1}
    bertdata.create(tmp_path / "part", tmp_path / "out", masks=False, **made)
    found = survey_labels(open_dataset(str(tmp_path / "out")))
    assert [(spellings[i], n) for i, n in enumerate(found.words.counts) if n] == [("the", 2), ("tower", 1)]
    assert found.word == '"the"'


def test_the_first_examples_are_counted_exactly_in_every_container(
    corpus, small_vocabulary_file, tmp_path, monkeypatch
):
    monkeypatch.setattr(label_counts, "_SURVEYED_EXAMPLES", 7)
    found = []
    for container in FORMATS:
        made = {"vocab": small_vocabulary_file, "objective": "mlm", "max_seq_length": 32, "format": container}
        bertdata.create(corpus, tmp_path / container, masks=False, workers=1, **made)
        data = open_dataset(str(tmp_path / container))
        found.append(survey_labels(data).words.counts)
    ids = [token for batch in data.read_range(range(7)) for token in np.asarray(batch.ids).tolist()]
    special = {0, 1, 2, 3, 4} if Path(small_vocabulary_file).read_text().startswith("[PAD]") else set()
    assert special, "the vocabulary's first tokens are the special ones"
    counts = Counter(token for token in ids if token not in special)
    for one in found:
        assert {token: n for token, n in enumerate(one) if n} == counts


def test_masks_at_load_tell_what_is_never_masked(corpus, small_vocabulary_file, tmp_path):
    made = {"vocab": small_vocabulary_file, "objective": "mlm", "max_seq_length": 32, "workers": 1}
    bertdata.create(corpus[:1], tmp_path / "out", masks=False, **made)
    config = Config.of(train_data=str(tmp_path / "out"), masking="dynamic")
    data = prepare_for_training(config, open_configured(config, str(tmp_path / "out")))
    assert data.never_masked is not None
    counts = survey_labels(data).words.counts
    assert sum(data.never_masked) == 5
    assert not any(n for n, never in zip(counts, data.never_masked, strict=True) if never)


def test_generated_examples_are_not_spelt_by_a_dataset_in_the_working_directory(
    training_set, tmp_path, monkeypatch
):
    shutil.copytree(training_set, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    keys = {"vocab_size": 50_000, "max_seq_length": 16, "max_predictions_per_seq": 2}
    (line,) = told_guess(make_configured_data(Config.of(generated_data=True, **keys)))
    assert "(always token " in line


def test_without_a_vocabulary_the_guessed_word_is_told_by_its_number():
    keys = {"vocab_size": 50, "max_seq_length": 16, "max_predictions_per_seq": 2}
    found = survey_labels(make_configured_data(Config.of(generated_data=True, **keys)))
    assert found.word == f"token {found.words.most_frequent}"


def test_a_survey_survives_json(training_set):
    found = survey_labels(open_dataset(str(training_set)))
    assert LabelSurvey.from_json(found.as_json()) == found
