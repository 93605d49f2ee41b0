"""Shards with word starts, for a tokeniser whose ids do not show where words begin."""

from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertdata.config.dialects import DIALECTS
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.masking.prepared_settings import find_role_ids
from bertdata.examples.masking.settings import SPECIAL_ROLES
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.examples.objectives import OBJECTIVES
from bertdata.io.file_check import HashingSink
from bertdata.records import Documents
from bertdata.shards.write import write_examples
from tests.support.strategies import make_documents, small_vocabulary

VOCABULARY = replace(small_vocabulary(DIALECTS["mlperf"]), continues_word=None)
_SIZES = {"max_seq_length": 48, "max_predictions_per_seq": 12, "masks": False}
SETTINGS = {
    "bert_word_starts": BertSettings(objective="bert_word_starts", **_SIZES),
    "mlm_word_starts": MlmSettings(objective="mlm_word_starts", **_SIZES),
}


def documents() -> Documents:
    """Return documents of random ordinary ids. Every third id starts a word."""
    found = make_documents(
        [[9, 14, 30], [20, 8], [41, 17, 5, 26], [6, 4], [11]] * 4, VOCABULARY, DIALECTS["mlperf"], 5
    )
    special = find_role_ids(VOCABULARY, SPECIAL_ROLES)
    ids = array("H", (7 if token in special else token for token in found.ids))
    starts = bytes(int(place % 3 == 0) for place in range(found.tokens))
    return replace(found, ids=ids, word_starts=starts)


def write(path: Path, name: str, engine: Any = None) -> list[Any]:
    """Write a shard of this objective or of mlm. Returns its examples."""
    settings = SETTINGS.get(name, MlmSettings(**_SIZES)).with_changes(format=path.suffix[1:])
    made = OBJECTIVES[name].make(documents(), VOCABULARY, settings, engine)
    with path.open("wb") as file:
        write_examples(made, settings, HashingSink(file.write), engine=engine, name=str(path))
    return list(made.batch(0, len(made)).examples())


def words_of_example(example: Any) -> list[set[int]]:
    """Return the positions of each word, derived from the example's word starts."""
    words: list[set[int]] = []
    for position, bit in enumerate(example.word_starts):
        if bit:
            words.append(set())
        words[-1].add(position)
    return words
