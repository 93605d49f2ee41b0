"""Makes ALBERT's examples with the C++ kernel or its pure-Python twin."""

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.errors import SettingsError
from bertdata.examples.made_examples import KernelExamples
from bertdata.examples.random_stream import make_seed_key
from bertdata.examples.sop.batch import SopBatch
from bertdata.examples.sop.reference import ReferenceSop
from bertdata.examples.sop.settings import SopSettings
from bertdata.records import Documents, MadeExamples, Vocabulary


def make_sop_examples(
    documents: Documents, vocabulary: Vocabulary, settings: SopSettings, engine: Engine | None = None
) -> MadeExamples:
    """Make all examples of the documents, in the order in which they are written.

    As for BERT, the documents are shuffled and then read dupe_factor times. At the end the examples are
    shuffled. All random numbers come from one stream with the seed random_seed, except the lengths of
    n-grams, which have a separate stream. Raises SettingsError if it is unknown where words start.
    """
    if vocabulary.continues_word is None and documents.word_starts is None:
        raise SettingsError(f"{vocabulary.name}: sop needs a tokeniser that tells where words start")
    native = use_native(engine or default_engine())
    kind = NativeSop if native else ReferenceSop
    return kind(documents, vocabulary, settings)


class NativeSop(KernelExamples):
    """ALBERT's examples, made by the C++ kernel.

    To save memory, the kernel stores an example as ranges of ``documents.ids`` and its masks.
    """

    def __init__(self, documents: Documents, vocabulary: Vocabulary, settings: SopSettings) -> None:
        masking, pairs = settings.masking, settings.pair_rules
        made = kernels.SopExamples(
            documents.ids,
            documents.sentence_ends,
            documents.document_ends,
            rules=kernels.BertRules(
                max_seq_length=settings.max_seq_length,
                max_predictions=masking.max_predictions_per_seq,
                dupe_factor=settings.dupe_factor,
                masked_lm_prob=masking.masked_lm_prob,
                mask_share=masking.mask_share,
                kept_of_unchanged=masking.kept_of_unchanged,
                short_seq_prob=pairs.short_seq_prob,
                whole_word_mask=masking.whole_word_mask,
                masks=settings.masks,
                fills_predictions=False,
                own_next_label=pairs.own_label,
                cls=vocabulary.role("cls"),
                sep=vocabulary.role("sep"),
                mask=vocabulary.role("mask"),
                replacements=list(vocabulary.replacements),
                continues_word=vocabulary.continues_word or bytes(vocabulary.size),
                swaps_halves=pairs.swaps_halves,
                ngram_limits=settings.ngram_limits,
                ngram_seed=settings.ngram_seed,
                permutes=settings.permutation,
            ),
            seed=make_seed_key(settings.random_seed),
            word_starts=documents.word_starts,
        )
        super().__init__(made, SopBatch)
