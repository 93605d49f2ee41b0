"""The objective of BERT (2018): predict masked words, and whether segment B follows segment A in the text."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from bertdata._native import Engine
from bertdata.examples.bert.batch import BertBatch, BertBatchOfWords
from bertdata.examples.bert.make import make_bert_examples
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.groups import WORD_STARTS
from bertdata.examples.masking.mask_count import compute_masks_wanted
from bertdata.examples.objective import Objective
from bertdata.examples.pair_report import PairCounts, PairWords, describe_pair
from bertdata.examples.word_starts import with_word_starts
from bertdata.records import Documents, MadeExamples, ShardLayout, Vocabulary
from schemas import load_schema

_MOST_SINGLE = 0.9
"""A warning is given if a larger share of the documents than this has only one sentence.

Segment B of such a document is always a random one, so most examples would get the same label.
"""

_NEXT_SENTENCE = PairWords("next sentence", "follows", "random", "next_sentences")


class BertObjective(Objective):
    """BERT's objective: predict masked words in two segments, and whether segment B follows segment A."""

    settings_type = BertSettings
    batch_type: type[BertBatch] = BertBatch
    task = "pretraining"
    label_one = "of next sentences random"
    pair_words = ("is next", "is random")
    of_words = "bert_word_starts"

    def make(
        self, documents: Documents, vocabulary: Vocabulary, settings: Any, engine: Engine | None = None
    ) -> MadeExamples:
        return make_bert_examples(documents, vocabulary, settings, engine, self.batch_type)

    def most_masks(self, settings: Mapping[str, Any], length: int) -> int:
        known = {name: settings[name] for name in BertSettings.__dataclass_fields__ if name in settings}
        return compute_masks_wanted(BertSettings(**known).masking, length)

    def warnings(self, documents: Documents, name: str) -> list[str]:
        return warn_of_single_sentences(documents, name)

    def counts(self) -> PairCounts:
        return PairCounts(_NEXT_SENTENCE)

    def describe(self, example: Any, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
        return describe_pair(example, BertBatch, _NEXT_SENTENCE, words, mask_id, layout)


class BertObjectiveOfWords(BertObjective):
    """BERT's objective whose examples also store where words start."""

    batch_type = BertBatchOfWords
    of_words = ""
    unlearned = (WORD_STARTS,)


BERT = BertObjective("bert", load_schema("example")["bert"])
BERT_OF_WORDS = BertObjectiveOfWords(BertObjective.of_words, with_word_starts(load_schema("example")["bert"]))


def warn_of_single_sentences(documents: Documents, name: str) -> list[str]:
    """Return a warning if most documents have only one sentence, else an empty list.

    The label that says whether segment B follows A is useful only if documents have several sentences.

    name: name of the input, for the message.
    """
    if documents.documents == 1 and documents.sentences > 1:
        return [
            f"{name}: no blank line, so the text is one document: every random next sentence comes from that "
            "same document, and next-sentence labels say little; put a blank line between documents"
        ]
    single = _count_single_sentences(documents)
    if single == documents.documents:
        return [
            f"{name}: every document is a single sentence, so every next sentence will be random; put blank "
            "lines between documents only, and make sentences: bertdata segment"
        ]
    if single > _MOST_SINGLE * documents.documents:
        return [
            f"{name}: {single / documents.documents:.1%} of the documents are a single sentence, so most "
            "next sentences will be random; put blank lines between documents only, and make sentences: "
            "bertdata segment"
        ]
    return []


def _count_single_sentences(documents: Documents) -> int:
    """Count the documents that consist of only one sentence."""
    ends = memoryview(documents.document_ends)
    return sum(end - before == 1 for before, end in pairwise((0, *ends)))
