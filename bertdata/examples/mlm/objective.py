"""The objective of RoBERTa: predict masked words in blocks of text."""

from typing import Any

from bertdata._native import Engine
from bertdata.examples.groups import WORD_STARTS
from bertdata.examples.mask_report import MaskCounts, describe_masks
from bertdata.examples.mlm.batch import MlmBatch, MlmBatchOfWords
from bertdata.examples.mlm.make import make_blocks
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.examples.objective import Objective, ObjectiveCounts, join_tokens
from bertdata.examples.word_starts import with_word_starts
from bertdata.records import Documents, MadeExamples, ShardLayout, Vocabulary
from schemas import load_schema


class MlmCounts(MaskCounts, ObjectiveCounts):
    """Counts of masked blocks: how many masked positions became [MASK], became random or were kept."""


class MlmObjective(Objective):
    """RoBERTa's objective: predict masked words in blocks, which have one segment."""

    settings_type = MlmSettings
    batch_type: type[MlmBatch] = MlmBatch
    task = "masked_words"
    of_words = "mlm_word_starts"

    def make(
        self, documents: Documents, vocabulary: Vocabulary, settings: Any, engine: Engine | None = None
    ) -> MadeExamples:
        return make_blocks(documents, vocabulary, settings, engine, self.batch_type)

    def counts(self) -> MlmCounts:
        return MlmCounts()

    def describe(self, example: Any, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
        """Return the tokens of the block, then a line for each mask.

        The line has the mask's position, what replaced the token, the original token and the random one:

        ::

            12 ids and 116 of padding, 2 masks
              [CLS] a lighthouse [MASK] a tower [SEP] its keeper kept stone [SEP]
              3   [MASK]  is
              10  random  bees -> stone
        """
        padding = layout.max_seq_length - len(example.ids)
        lines = [
            f"{len(example.ids)} ids and {padding} of padding, {len(example.positions)} masks",
            f"  {join_tokens(example.ids, words)}",
            *describe_masks(example.ids, example.positions, example.labels, words, mask_id),
        ]
        return "\n".join(lines) + "\n"


class MlmObjectiveOfWords(MlmObjective):
    """RoBERTa's objective whose examples also store where words start."""

    batch_type = MlmBatchOfWords
    of_words = ""
    unlearned = (WORD_STARTS,)


MLM = MlmObjective("mlm", load_schema("example")["mlm"])
MLM_OF_WORDS = MlmObjectiveOfWords(MlmObjective.of_words, with_word_starts(load_schema("example")["mlm"]))
