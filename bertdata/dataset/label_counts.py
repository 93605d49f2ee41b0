"""Counts of a dataset's labels, from which the accuracy and loss of a trivial baseline follow.

The baseline ignores the text and always predicts the most frequent label. A trained model must be better.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bertdata.dataset.discover import find_datasets
from bertdata.dataset.reader import OpenedDataset
from bertdata.dataset.vocabulary import load_dataset_vocabulary
from bertdata.errors import BertDataError
from bertdata.examples.groups import MASKS, PAIR_LABEL, get_masks, get_pair_labels, has_group
from bertdata.examples.masking.prepared_settings import prepare_masking_rules
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.records import ExampleBatch, Vocabulary
from bertdata.tokens.readable import make_words_readable

if TYPE_CHECKING:
    from typing_extensions import Self

_SURVEYED_EXAMPLES = 20_000
_PAIR_LABELS = 2


class Frequencies(NamedTuple):
    """Number of occurrences of each label.

    counts: number of occurrences, indexed by label.
    """

    counts: Sequence[int]

    @property
    def most_frequent(self) -> int:
        """The most frequent label. If several labels are equally frequent, it is the smallest of them."""
        return int(np.argmax(self.counts))

    @property
    def share(self) -> float:
        """Share of the most frequent label among all labels, from 0 to 1."""
        return max(self.counts) / max(sum(self.counts), 1)

    def compute_losses(self) -> npt.NDArray[np.float64]:
        """Return the cross-entropy loss of each label for a model that predicts labels with their observed
        frequency.

        The loss of a label is -log of its share. Each count is increased by 1, so that no loss is infinite.
        """
        counts = np.array(self.counts, np.float64) + 1
        found: npt.NDArray[np.float64] = -np.log(counts / counts.sum())
        return found

    @property
    def loss(self) -> float:
        """Mean loss over all labels that were counted, for a model that ignores the text."""
        return float(self.compute_losses() @ np.array(self.counts, np.float64) / sum(self.counts))


class LabelSurvey(NamedTuple):
    """Counts of the labels in the first 20,000 examples of a dataset, and texts that describe the labels.

    words: how often each token id is the label of a masked position.
    word: spelling of the most frequent masked token. It is a text such as ``token 17`` if the vocabulary is
        not available.
    pairs: counts of the labels of sentence pairs. None if the examples have no such labels.
    pair_words: descriptions of the pair labels 0 and 1.
    """

    words: Frequencies
    word: str
    pairs: Frequencies | None
    pair_words: tuple[str, str]

    @property
    def pair_word(self) -> str:
        """Description of the most frequent pair label."""
        return quote_baseline(self.pair_words[self.pairs.most_frequent]) if self.pairs else ""

    @property
    def guess(self) -> str:
        """Text with the accuracy and loss of the baseline that always predicts the most frequent label.

        It is empty if no labels were counted.
        """
        told = []
        for head, labels, word in (("mlm", self.words, self.word), ("nsp", self.pairs, self.pair_word)):
            if labels and sum(labels.counts):
                told += [f"{head} accuracy {labels.share:.4f} (always {word}), {head} loss {labels.loss:.4f}"]
        return ", ".join(told)

    def as_json(self) -> dict[str, Any]:
        pairs = self.pairs and self.pairs.counts
        return {"words": self.words.counts, "word": self.word, "pairs": pairs, "pair_words": self.pair_words}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Self":
        pairs = None if found["pairs"] is None else Frequencies(found["pairs"])
        return cls(Frequencies(found["words"]), found["word"], pairs, tuple(found["pair_words"]))


def survey_labels(data: OpenedDataset) -> LabelSurvey:
    """Count the labels in the first 20,000 examples of the dataset.

    If the examples have no masks, every token that may be masked while reading counts as a label.
    """
    objective = find_objective(data.layout.objective)
    has_pairs = has_group(objective.batch_type, PAIR_LABEL)
    has_masks = has_group(objective.batch_type, MASKS)
    words, pairs, texts = Counter[int](), Counter[int](), _IdCounter()
    for batch in data.read_range(range(min(data.examples, _SURVEYED_EXAMPLES))):
        if has_masks:
            words.update(get_masks(batch).originals.tolist())
            if not words:
                texts.update(batch)
        if has_pairs:
            pairs.update(get_pair_labels(batch).tolist())
    vocabulary = _find_vocabulary(data)
    words = words or texts.count_words(_find_never_masked(data, vocabulary))
    size = data.vocabulary_size or max(words, default=0) + 2  # includes at least one label that never occurs
    counts = Frequencies([words[token] for token in range(size)])
    return LabelSurvey(
        words=counts,
        word=_format_token(vocabulary, counts.most_frequent),
        pairs=Frequencies([pairs[label] for label in range(_PAIR_LABELS)]) if has_pairs else None,
        pair_words=objective.pair_words,
    )


def report_baseline(data: OpenedDataset, tell: Callable[[str], object]) -> None:
    """Report the accuracy of the baseline that always predicts the most frequent label and ignores the text.

    Nothing is reported if the objective has no labels, or if the files cannot be read. The report is only a
    hint, so there is no error.

    tell: function that is called with a line of text.
    """
    batch_type = find_objective(data.layout.objective).batch_type
    has_labels = has_group(batch_type, MASKS) or has_group(batch_type, PAIR_LABEL)
    with suppress(BertDataError):
        if has_labels and (guess := survey_labels(data).guess):
            tell(f"a guess that reads nothing: {guess}")


class _IdCounter:
    """Counter of the token ids in examples without masks.

    Each of these ids may become a label, because masks are drawn when the examples are loaded.
    """

    def __init__(self) -> None:
        self._ids, self._edges = Counter[int](), Counter[int]()

    def update(self, batch: ExampleBatch) -> None:
        """Count the token ids of a batch.

        The first and the last id of each example are also counted separately.
        """
        ids, ends = np.asarray(batch.ids), np.asarray(batch.ends).astype(np.int64)
        values, counts = np.unique(ids, return_counts=True)
        self._ids.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        self._edges.update(ids[np.concatenate([np.append(0, ends[:-1]), ends - 1])].tolist())

    def count_words(self, never_masked: bytes | None) -> Counter[int]:
        """Return how often each id that may be masked occurs.

        never_masked: one byte per id, which is 1 if the id is never masked. None if this is unknown. The two
            ids that are most frequent at the ends of examples, usually [CLS] and [SEP], are then left out.
        """
        if never_masked is None:
            special = {token for token, _ in self._edges.most_common(2)}
        else:
            special = {token for token, is_never in enumerate(never_masked) if is_never}
        return Counter({token: n for token, n in self._ids.items() if token not in special})


def quote_baseline(guess: str) -> str:
    """Return a label in quotation marks, as the text about the baseline shows it."""
    return f'"{guess}"'


def _find_vocabulary(data: OpenedDataset) -> Vocabulary | None:
    """Return the vocabulary of the dataset, or None if it is not available.

    Generated examples have no file. Their empty path must not be taken for the working directory.
    """
    path = data.shards[0].path if data.shards else ""
    if not path:
        return None
    with suppress(BertDataError):
        dataset = next(iter(find_datasets(storage.get_parent(path))), None)
        if dataset and dataset.manifest and any(shard.path == path for shard in dataset.shards):
            return load_dataset_vocabulary(None, dataset)
    return None


def _find_never_masked(data: OpenedDataset, vocabulary: Vocabulary | None) -> bytes | None:
    """Return one byte per token id, which is 1 if the id is never masked. Returns None if this is unknown.

    The ids come from the dataset's masking rules or, if it has none, from the default rules for its
    vocabulary.
    """
    if data.never_masked is not None or vocabulary is None:
        return data.never_masked
    return prepare_masking_rules(vocabulary, MaskingSettings(), masks=False).never_masked


def _format_token(vocabulary: Vocabulary | None, token: int) -> str:
    """Return the spelling of a token in quotes, or a text such as ``token 17`` without a vocabulary."""
    if vocabulary is None:
        return f"token {token}"
    return quote_baseline(make_words_readable(vocabulary)[token].strip())
