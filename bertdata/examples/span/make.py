"""Makes masked spans with the C++ kernel or its pure-Python twin."""

from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.examples.dynamic_masking.counter_stream import make_pass_keys
from bertdata.examples.groups import WORD_STARTS, has_group
from bertdata.examples.made_examples import KernelExamples
from bertdata.examples.masking.prepared_settings import starts_of
from bertdata.examples.random_stream import make_seed_key
from bertdata.examples.span.batch import SpanBatch
from bertdata.examples.span.masking import SpanRules, prepare_span_rules
from bertdata.examples.span.reference import ReferenceSpans
from bertdata.examples.span.settings import SpanSettings
from bertdata.records import Documents, MadeExamples, Vocabulary


def make_spans(
    documents: Documents,
    vocabulary: Vocabulary,
    settings: SpanSettings,
    engine: Engine | None = None,
    batch_type: type[SpanBatch] = SpanBatch,
) -> MadeExamples:
    """Make all blocks of the documents with masked spans, in the order in which they are written.

    The text is cut into blocks once. Each of the dupe_factor passes masks all blocks anew. Each block has its
    own random stream. At the end the examples are shuffled with the seed random_seed. If
    ``settings.as_original`` is True, one NumPy stream masks all blocks instead, and the blocks stay in the
    order of the text.

    batch_type: class of the returned batches, SpanBatch or SpanBatchOfWords, which also stores where words
        start.
    """
    native = use_native(engine or default_engine())
    maker = NativeSpans if native else ReferenceSpans
    return maker(documents, vocabulary, settings, batch_type)


class NativeSpans(KernelExamples):
    """Blocks with masked spans, made by the C++ kernel.

    To save memory, the kernel stores a block as a range of the text and its masks.
    """

    def __init__(
        self,
        documents: Documents,
        vocabulary: Vocabulary,
        settings: SpanSettings,
        batch_type: type[SpanBatch],
    ) -> None:
        made = kernels.SpanExamples(
            documents.ids,
            documents.sentence_ends,
            documents.document_ends,
            starts_of(documents, vocabulary, settings.masking, batch_type),
            rules=make_kernel_rules(prepare_span_rules(settings), vocabulary.role("mask")),
            continues_word=vocabulary.continues_word or bytes(vocabulary.size),
            replacements=vocabulary.replacements,
            max_seq_length=settings.max_seq_length,
            cls=vocabulary.role("cls"),
            sep=vocabulary.role("sep"),
            masked_lm_prob=settings.masked_lm_prob,
            masks=settings.masks,
            as_original=settings.as_original,
            tells_words=has_group(batch_type, WORD_STARTS),
            keys=make_pass_keys(documents, settings.random_seed, settings.dupe_factor),
            seed=make_seed_key(settings.random_seed),
            numpy_seed=settings.numpy_seed,
        )
        super().__init__(made, batch_type)


def make_kernel_rules(rules: SpanRules, mask: int) -> Any:
    """Convert the rules for spans to the C++ kernel's class.

    mask: id of [MASK].
    """
    return kernels.SpanRules(
        most=rules.most,
        shortest=rules.shortest,
        lengths=rules.lengths,
        mask_limit=rules.mask_limit,
        random_limit=rules.random_limit,
        by_id=rules.by_id,
        are_external=rules.are_external,
        mask=mask,
    )
