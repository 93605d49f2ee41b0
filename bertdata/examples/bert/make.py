"""Makes BERT's examples with the C++ kernel or its pure-Python twin."""

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.examples.bert.batch import BertBatch
from bertdata.examples.bert.reference import ReferenceExamples
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.groups import WORD_STARTS, has_group
from bertdata.examples.made_examples import KernelExamples
from bertdata.examples.masking.prepared_settings import starts_of
from bertdata.examples.random_stream import make_seed_key
from bertdata.records import Documents, MadeExamples, Vocabulary


def make_bert_examples(
    documents: Documents,
    vocabulary: Vocabulary,
    settings: BertSettings,
    engine: Engine | None = None,
    batch_type: type[BertBatch] = BertBatch,
) -> MadeExamples:
    """Make all examples of the documents, in the order in which they are written.

    The documents are shuffled and then read dupe_factor times. Each pair of segments is masked before the
    next pair is drawn. At the end the examples are shuffled. All random numbers come from one stream with the
    seed random_seed.

    batch_type: class of the returned batches, BertBatch or BertBatchOfWords, which also stores where words
        start.
    """
    native = use_native(engine or default_engine())
    maker = NativeExamples if native else ReferenceExamples
    return maker(documents, vocabulary, settings, batch_type)


class NativeExamples(KernelExamples):
    """BERT's examples, made by the C++ kernel.

    To save memory, the kernel stores an example as ranges of ``documents.ids`` and its masks.
    """

    def __init__(
        self,
        documents: Documents,
        vocabulary: Vocabulary,
        settings: BertSettings,
        batch_type: type[BertBatch],
    ) -> None:
        masking = settings.masking
        made = kernels.BertExamples(
            documents.ids,
            documents.sentence_ends,
            documents.document_ends,
            rules=kernels.BertRules(
                max_seq_length=settings.max_seq_length,
                # An example cannot have more masks than ids.
                max_predictions=min(settings.max_predictions_per_seq, settings.max_seq_length),
                dupe_factor=settings.dupe_factor,
                masked_lm_prob=masking.masked_lm_prob,
                mask_share=masking.mask_share,
                kept_of_unchanged=masking.kept_of_unchanged,
                short_seq_prob=settings.short_seq_prob,
                whole_word_mask=settings.whole_word_mask,
                masks=settings.masks,
                fills_predictions=settings.dialect_rules.fills_predictions,
                own_next_label=settings.dialect_rules.own_next_label,
                cls=vocabulary.role("cls"),
                sep=vocabulary.role("sep"),
                mask=vocabulary.role("mask") if settings.masks else 0,
                replacements=list(vocabulary.replacements),
                continues_word=vocabulary.continues_word or bytes(vocabulary.size),
            ),
            seed=make_seed_key(settings.random_seed),
            word_starts=starts_of(documents, vocabulary, masking, batch_type),
            tells_words=has_group(batch_type, WORD_STARTS),
        )
        super().__init__(made, batch_type)
