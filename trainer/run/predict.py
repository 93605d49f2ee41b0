"""Predictions of a trained model on a text: the words at its [MASK]s."""

import json
from typing import Any, NamedTuple

import torch

from bertdata.config.dialects import find_dialect
from bertdata.errors import DataError, MissingInputError, SettingsError, UsageError
from bertdata.tokens.vocabulary import WordPieceVocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.data.batches import FlatBatch
from trainer.model.bert import BertForPreTraining, new_model
from trainer.model.checkpoints.filling import fill_model
from trainer.model.checkpoints.kinds import is_recognised
from trainer.run.checkpoint import STATE
from trainer.run.checkpoint_source import OURS, find_own, open_checkpoint
from trainer.run.tokenizer import find_tokenizer

MASK = "[MASK]"
_DIALECT = "google"
_WORD_HEAD = "cls.predictions."


class Guess(NamedTuple):
    """A word that may stand at a mask, and its probability."""

    word: str
    probability: float


class WordModel:
    """A model with its masked-word head, and the tokeniser that it was trained with."""

    def __init__(
        self, model: BertForPreTraining, vocabulary: WordPieceVocabulary, *, lower_case: bool
    ) -> None:
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
            logits = self._model(_single_batch(ids, masks)).masked_lm
        found = logits.float().softmax(1).topk(min(count, self._vocabulary.size))
        return [
            [Guess(self._vocabulary.words[token], share) for token, share in zip(*one, strict=True)]
            for one in zip(found.indices.tolist(), found.values.tolist(), strict=True)
        ]

    def _encode(self, text: str) -> list[int]:
        """[CLS], the text's ids with [MASK] as one token, [SEP]."""
        ids = [self._vocabulary.cls]
        for number, piece in enumerate(text.replace("\n", " ").split(MASK)):
            ids += [self._vocabulary.mask] * (number > 0)
            ids += map(int, self._tokenizer.encode([piece.encode()], ["the text"]).ids)
        return [*ids, self._vocabulary.sep]


def _single_batch(ids: list[int], masks: list[int]) -> FlatBatch:
    """One sequence of these ids, with masked slots at the rows of ``masks``."""
    zeros = torch.zeros(len(ids), dtype=torch.int32)
    return FlatBatch(
        input_ids=torch.tensor(ids, dtype=torch.int32),
        token_type_ids=zeros,
        position_ids=torch.arange(len(ids), dtype=torch.int32),
        ends=torch.tensor([0, len(ids)], dtype=torch.int32),
        first_rows=zeros[:1],
        masked_lm_rows=torch.tensor(masks, dtype=torch.int32),
        masked_lm_ids=torch.zeros(len(masks), dtype=torch.int32),
        masked_lm_weights=torch.ones(len(masks)),
        next_sentence_labels=zeros[:1],
        longest=len(ids),
        tokens=len(ids),
    )


def open_word_model(
    source: str, *, vocabulary: str | None, train_data: str | None, lower_case: bool | None
) -> WordModel:
    """The model of a run or of a checkpoint of any program, with its tokeniser.

    vocabulary, train_data, lower_case: as ``convert`` takes them. MissingInputError where the vocabulary is
    not at hand, DataError for an encoder without a masked-word head.
    """
    if find_own(source) is None and not is_recognised(source):
        raise MissingInputError(f"{source}: holds no checkpoint: neither {STATE} nor another program's")
    checkpoint = open_checkpoint(source, with_moments=False)
    shape = checkpoint.expect_config()
    found: Any = find_tokenizer(checkpoint, shape, vocabulary, train_data, lower_case)
    if found is None:
        if checkpoint.kind != OURS:
            raise MissingInputError(f"{source}: holds no vocab.txt; give --vocab")
        raise MissingInputError(
            f"{source}: its vocabulary is not at hand; give --vocab, or --train-data where it has moved"
        )
    model = new_model(shape)
    missing = fill_model(model, checkpoint)
    if any(name.startswith(_WORD_HEAD) for name in missing):
        raise DataError(f"{source}: is an encoder without a masked-word head, which guesses no words")
    words, lower = found
    return WordModel(model, words, lower_case=lower)


def predict_lines(
    source: str,
    text: str,
    *,
    vocabulary: str | None,
    train_data: str | None,
    lower_case: bool | None,
    count: int,
    as_json: bool,
) -> list[str]:
    """The words at each [MASK], a line each; as JSON one line, lists of (word, probability) in a list."""
    if count < 1:
        raise SettingsError(f"--num {count}: expected 1 or more")
    model = open_word_model(source, vocabulary=vocabulary, train_data=train_data, lower_case=lower_case)
    guesses = model.guess(text, count)
    if as_json:
        return [json.dumps(guesses, ensure_ascii=False)]
    return [", ".join(f"{one.word} {one.probability:.1%}" for one in words) for words in guesses]
