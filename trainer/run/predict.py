"""Predictions of a trained model on a text: the words at its [MASK]s."""

import json
from typing import NamedTuple

import torch

from bertdata.config.dialects import find_dialect
from bertdata.errors import DataError, SettingsError, UsageError
from bertdata.tokens.vocabulary import WordPieceVocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.checkpoint.filling import fill_model
from trainer.data.single import single_sequence
from trainer.model.bert import WORD_HEAD, BertForMaskedLM, check_memory
from trainer.run.trained_model import Trained

MASK = "[MASK]"
_DIALECT = "google"


class Guess(NamedTuple):
    """A word that may stand at a mask, and its probability."""

    word: str
    probability: float


class WordModel:
    """A model with its masked-word head, and the tokeniser that it was trained with."""

    def __init__(self, model: BertForMaskedLM, vocabulary: WordPieceVocabulary, *, lower_case: bool) -> None:
        self._model = model.eval()
        self._vocabulary = vocabulary
        self._tokenizer = WordPieceTokenizer(vocabulary, find_dialect(_DIALECT), lower_case=lower_case)

    def guess(self, text: str, count: int = 5) -> list[list[Guess]]:
        """For each [MASK] of the text the ``count`` most probable words, most probable first.

        UsageError for a text without [MASK], SettingsError for one that is too long for the model.
        """
        ids = self._encode(text)
        masks = [row for row, token in enumerate(ids) if token == self._vocabulary.mask]
        if not masks:
            raise UsageError(f"the text has no {MASK}: write {MASK} where a word is to be guessed")
        with torch.no_grad():
            logits = self._model(single_sequence(ids, masks=masks)).masked_lm
        found = logits.float().softmax(1).topk(min(count, self._vocabulary.size))
        return [
            [
                Guess(self._vocabulary.words[token], probability)
                for token, probability in zip(*one, strict=True)
            ]
            for one in zip(found.indices.tolist(), found.values.tolist(), strict=True)
        ]

    def _encode(self, text: str) -> list[int]:
        """[CLS], the text's ids with [MASK] as one token, [SEP]."""
        ids = [self._vocabulary.cls]
        for number, piece in enumerate(text.replace("\n", " ").split(MASK)):
            ids += [self._vocabulary.mask] * (number > 0)
            ids += map(int, self._tokenizer.encode([piece.encode()], ["the text"]).ids)
        return [*ids, self._vocabulary.sep]


def word_model(opened: Trained) -> WordModel:
    """The model with its tokeniser. DataError for an encoder without a masked-word head."""
    check_memory(opened.shape)
    model = BertForMaskedLM(opened.shape)
    missing = fill_model(model, opened.checkpoint)
    if any(name.startswith(WORD_HEAD) for name in missing):
        raise DataError(f"{opened.source}: is an encoder without a masked-word head, which guesses no words")
    return WordModel(model, opened.vocabulary, lower_case=opened.lower_case)


def predict_lines(opened: Trained, text: str, *, count: int, as_json: bool) -> list[str]:
    """The words at each [MASK], a line each. As JSON, one list that holds lists of (word, probability)."""
    if count < 1:
        raise SettingsError(f"--num {count}: expected 1 or more")
    guesses = word_model(opened).guess(text, count)
    if as_json:
        return [json.dumps(guesses, ensure_ascii=False)]
    return [", ".join(f"{one.word} {one.probability:.1%}" for one in words) for words in guesses]
