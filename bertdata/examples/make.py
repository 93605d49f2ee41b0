"""Documents to examples: the step, by either engine."""

from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.config.recipes import ExampleSettings
from bertdata.records import BATCH_COLUMNS, Documents, ExampleBatch, ExampleSource, Vocabulary


def make_examples(
    documents: Documents, vocabulary: Vocabulary, settings: ExampleSettings, *, engine: Engine | None = None
) -> ExampleSource:
    """All examples of the documents, in final order.

    The documents are shuffled, gone through dupe_factor times, each pair masked as it is made, and
    the examples shuffled, all with one random stream seeded by random_seed.
    """
    if use_native(engine or default_engine()):
        return NativeExamples(documents, vocabulary, settings)
    from bertdata.examples.reference import PythonExamples  # not needed otherwise

    return PythonExamples(documents, vocabulary, settings)


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


def seed_key(seed: int) -> list[int]:
    """The seed's absolute value in 32-bit digits, least significant first: MT19937's key."""
    rest = abs(seed)
    key = [rest & 0xFFFFFFFF]
    while rest := rest >> 32:
        key.append(rest & 0xFFFFFFFF)
    return key


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
