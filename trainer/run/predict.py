"""Predictions of a trained model on a text: the words at its [MASK]s."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bertdata.config.dialects import find_dialect
from bertdata.config.value_check import read_object
from bertdata.errors import DataError, MissingInputError, SettingsError, UsageError
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.tokens.load import load_vocabulary
from bertdata.tokens.vocabulary import WordPieceVocabulary
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.config.model import ModelConfig
from trainer.data.batches import FlatBatch
from trainer.model.bert import BertForPreTraining, new_model
from trainer.model.huggingface import import_weights, read_config
from trainer.run.checkpoint import STATE, choose_checkpoint, read_state
from trainer.run.convert import find_tokenizer
from trainer.run.runtime import read_weights_into

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
    """The model of a run, a checkpoint or a directory in Hugging Face form, with its tokeniser.

    vocabulary, train_data, lower_case: as ``convert`` takes them. MissingInputError where the vocabulary is
    not at hand, DataError for an encoder without a masked-word head.
    """
    if (Path(source) / "checkpoints").is_dir():
        source = str(choose_checkpoint(source))
    if (Path(source) / STATE).is_file():
        state = read_state(Path(source))
        shape = ModelConfig.from_dict(state.model, source)
        found: Any = find_tokenizer(state, shape, vocabulary, train_data, lower_case)
        if found is None:
            raise MissingInputError(
                f"{source}: its vocabulary is not at hand; give --vocab, or --train-data where it has moved"
            )
        model = new_model(shape)
        read_weights_into(model, source)
        words, lower = found
        return WordModel(model, words, lower_case=lower)
    if not storage.exists(storage.join(source, "config.json")):
        raise MissingInputError(f"{source}: holds no checkpoint: neither {STATE} nor config.json")
    model = new_model(read_config(source))
    missing = import_weights(model, source)
    if any(name.startswith(_WORD_HEAD) for name in missing):
        raise DataError(f"{source}: is an encoder without a masked-word head, which guesses no words")
    words, lower = _tokenizer_beside(source, vocabulary, lower_case)
    if words.size > model.config.vocab_size:
        raise DataError(
            f"{words.name}: has {words.size} tokens, the model has vocab_size {model.config.vocab_size}"
        )
    return WordModel(model, words, lower_case=lower)


def _tokenizer_beside(source: str, given: str | None, lower_case: bool | None) -> tuple[Any, bool]:
    """The vocabulary that is given or lies beside the model, and whether text is lower-cased."""
    beside = storage.join(source, "vocab.txt")
    if given is None and not storage.exists(beside):
        raise MissingInputError(f"{source}: holds no vocab.txt; give --vocab")
    config = storage.join(source, "tokenizer_config.json")
    if lower_case is None:
        lower_case = not storage.exists(config) or read_object(config).get("do_lower_case") is not False
    return load_vocabulary(find_vocabulary(given) if given else beside, _DIALECT), lower_case


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
