"""Makes masked blocks with the C++ kernel or its pure-Python twin."""

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.examples.dynamic_masking.counter_stream import make_pass_keys
from bertdata.examples.groups import WORD_STARTS, has_group
from bertdata.examples.made_examples import KernelExamples
from bertdata.examples.masking.prepared_settings import prepare_masking_rules, starts_of
from bertdata.examples.mlm.batch import MlmBatch
from bertdata.examples.mlm.blocks import BREAKS
from bertdata.examples.mlm.reference import ReferenceBlocks
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.examples.random_stream import make_seed_key
from bertdata.records import Documents, MadeExamples, Vocabulary


def make_blocks(
    documents: Documents,
    vocabulary: Vocabulary,
    settings: MlmSettings,
    engine: Engine | None = None,
    batch_type: type[MlmBatch] = MlmBatch,
) -> MadeExamples:
    """Make all masked blocks of the documents, in the order in which they are written.

    The text is cut into blocks once. Each of the dupe_factor passes masks all blocks anew. Each block has its
    own random stream. At the end the examples are shuffled with the seed random_seed.

    batch_type: class of the returned batches, MlmBatch or MlmBatchOfWords, which also stores where words
        start.
    """
    native = use_native(engine or default_engine())
    maker = NativeBlocks if native else ReferenceBlocks
    return maker(documents, vocabulary, settings, batch_type)


class NativeBlocks(KernelExamples):
    """Masked blocks, made by the C++ kernel.

    To save memory, the kernel stores a block as a range of the text and its masks.
    """

    def __init__(
        self, documents: Documents, vocabulary: Vocabulary, settings: MlmSettings, batch_type: type[MlmBatch]
    ) -> None:
        made = kernels.MlmExamples(
            documents.ids,
            documents.sentence_ends,
            documents.document_ends,
            rules=kernels.MlmRules(
                breaks=BREAKS.index(settings.blocks),
                max_seq_length=settings.max_seq_length,
                cls=vocabulary.role("cls"),
                sep=vocabulary.role("sep"),
                masked_lm_prob=settings.masked_lm_prob,
                masks=settings.masks,
                **prepare_masking_rules(
                    vocabulary, settings.masking, masks=settings.masks
                ).make_kernel_arguments(),
            ),
            word_starts=starts_of(documents, vocabulary, settings.masking, batch_type),
            tells_words=has_group(batch_type, WORD_STARTS),
            keys=make_pass_keys(documents, settings.random_seed, settings.dupe_factor),
            seed=make_seed_key(settings.random_seed),
        )
        super().__init__(made, batch_type)
