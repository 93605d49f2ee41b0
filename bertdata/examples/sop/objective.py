"""The objective of ALBERT: predict masked n-grams, and whether the segments were swapped."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bertdata._native import Engine
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.examples.objective import Objective
from bertdata.examples.pair_report import PairCounts, PairWords, describe_pair
from bertdata.examples.sop.batch import SopBatch
from bertdata.examples.sop.make import make_sop_examples
from bertdata.examples.sop.settings import SopSettings
from bertdata.records import Documents, MadeExamples, ShardLayout, Vocabulary
from schemas import load_schema

if TYPE_CHECKING:
    from bertdata.examples.dynamic_masking.masker import Masker

_ORDER = PairWords("sentence order", "kept", "swapped", "sentence_order")


class SopObjective(Objective):
    """ALBERT's objective: predict masked n-grams of words in two segments, and whether the segments were
    swapped.
    """

    settings_type = SopSettings
    batch_type = SopBatch
    task = "pretraining"
    pair_words = ("in order", "swapped")

    def make(
        self, documents: Documents, vocabulary: Vocabulary, settings: Any, engine: Engine | None = None
    ) -> MadeExamples:
        return make_sop_examples(documents, vocabulary, settings, engine)

    def masker(
        self,
        vocabulary: Vocabulary,
        masking: MaskingSettings,
        of_data: Mapping[str, Any],
        engine: Engine | None = None,
    ) -> "Masker":
        """Return the object that masks n-grams at load.

        The dataset's settings determine the n-grams' lengths.
        """
        from bertdata.examples.sop.load_masker import make_ngram_masker

        return make_ngram_masker(vocabulary, masking, of_data, engine)

    def most_masks(self, settings: Mapping[str, Any], length: int) -> int:
        known = {name: settings[name] for name in SopSettings.__dataclass_fields__ if name in settings}
        return SopSettings(**known).most_masks(length)

    def warnings(self, documents: Documents, name: str) -> list[str]:
        if documents.documents != documents.sentences:
            return []
        return [
            f"{name}: every document is a single sentence, so no pair has two halves to swap, and its label "
            "is always 1; put blank lines between documents only"
        ]

    def counts(self) -> PairCounts:
        return PairCounts(_ORDER)

    def describe(self, example: Any, words: list[str], mask_id: int | None, layout: ShardLayout) -> str:
        return describe_pair(example, SopBatch, _ORDER, words, mask_id, layout)


SOP = SopObjective("sop", load_schema("example")["sop"])
