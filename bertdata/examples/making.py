"""Documents to examples: the step, and its specification."""

from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.examples.masking import mask
from bertdata.examples.pairs import Document, pair_document
from bertdata.examples.random_stream import RandomStream, seed_key
from bertdata.recipes import ExampleSettings
from bertdata.records import BATCH_COLUMNS, Documents, Example, ExampleBatch, ExampleSource, Vocabulary


def make_examples(
    documents: Documents, vocabulary: Vocabulary, settings: ExampleSettings, *, engine: Engine | None = None
) -> ExampleSource:
    """All examples of the documents, in final order.

    The documents are shuffled, gone through dupe_factor times, each pair masked as it is made, and
    the examples shuffled, all with one random stream seeded by random_seed.
    """
    if use_native(engine or default_engine()):
        return NativeExamples(documents, vocabulary, settings)
    return PythonExamples(documents, vocabulary, settings)


class PythonExamples:
    """The specification, run as it reads."""

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: ExampleSettings) -> None:
        self._wide = vocabulary.size > 1 << 16
        self._examples: list[Example] = []
        stream = RandomStream(settings.random_seed)
        shuffled = _as_lists(documents)
        stream.shuffle(shuffled)
        continues_word = vocabulary.continues_word()
        for _ in range(settings.dupe_factor):
            for index in range(len(shuffled)):
                pairs = pair_document(
                    shuffled,
                    index,
                    stream,
                    max_tokens=settings.max_seq_length - 3,
                    short_seq_prob=settings.short_seq_prob,
                    dialect=settings.rules,
                )
                for pair in pairs:
                    self._examples.append(mask(pair, vocabulary, continues_word, settings, stream))
        stream.shuffle(self._examples)

    def __len__(self) -> int:
        return len(self._examples)

    @property
    def tokens(self) -> int:
        return sum(len(example.ids) for example in self._examples)

    @property
    def masked(self) -> int:
        return sum(len(example.positions) for example in self._examples)

    def batch(self, start: int, stop: int, step: int = 1) -> ExampleBatch:
        return ExampleBatch.of(self._examples[start:stop:step], wide=self._wide)


def _as_lists(documents: Documents) -> list[Document]:
    """Documents as lists of sentences, sentences as lists of ids."""
    sentences: list[list[int]] = []
    start = 0
    for end in documents.sentence_ends:
        sentences.append(list(documents.ids[start:end]))
        start = end
    lists: list[Document] = []
    start = 0
    for end in documents.document_ends:
        lists.append(sentences[start:end])
        start = end
    return lists


class NativeExamples:
    """The kernel's compact examples: spans of the documents' ids, and masks."""

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: ExampleSettings) -> None:
        self._set = kernels.ExampleSet(
            documents.ids,
            documents.sentence_ends,
            documents.document_ends,
            rules=_kernel_rules(vocabulary, settings),
            seed=seed_key(settings.random_seed),
        )

    def __len__(self) -> int:
        return len(self._set)

    @property
    def tokens(self) -> int:
        return int(self._set.tokens)

    @property
    def masked(self) -> int:
        return int(self._set.masked)

    def batch(self, start: int, stop: int, step: int = 1) -> ExampleBatch:
        columns = self._set.batch(start, stop, step)
        return ExampleBatch(**dict(zip(BATCH_COLUMNS, columns, strict=True)))


def _kernel_rules(vocabulary: Vocabulary, settings: ExampleSettings) -> Any:
    return kernels.ExampleRules(
        max_seq_length=settings.max_seq_length,
        max_predictions=settings.max_predictions_per_seq,
        dupe_factor=settings.dupe_factor,
        masked_lm_prob=settings.masked_lm_prob,
        short_seq_prob=settings.short_seq_prob,
        whole_word_mask=settings.whole_word_mask,
        fills_predictions=settings.rules.fills_predictions,
        skips_special_ids=settings.rules.keeps_special_tokens,
        own_next_label=settings.rules.own_next_label,
        cls=vocabulary.cls,
        sep=vocabulary.sep,
        mask=vocabulary.mask,
        replacements=list(vocabulary.replacements),
        continues_word=vocabulary.continues_word(),
    )
