"""Predictions of a pre-trained model for a text: the words that could stand in place of its [MASK]s."""

from argparse import Namespace
from collections.abc import Sequence

import torch

from bertdata.errors import UsageError
from bertdata.tokens.readable import make_words_readable
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.data.single import make_single_batch
from trainer.model.bert import WORD_HEAD, check_memory
from trainer.model.headed import BertForMaskedLM
from trainer.remote.copies import bring_checkpoint
from trainer.run.trained_model import open_trained
from trainer.tasks.fine_tuned import predict_task
from trainer.tasks.prediction import Prediction, Trained, WordGuess, get_single_text, refuse_flags

MASK = "[MASK]"


WORDS = "words"
"""Name of the task of predicting masked words, on the command line of ``predict``."""

_USUAL_COUNT = 5  # words that are predicted for each mask


def predict_text(given: Namespace) -> Prediction:
    """Open the model and return its prediction for the text, as the command ``predict`` prints it.

    given: the flags of the command, by name. given.task is set to the name of the task.
    """
    opened = open_trained(
        bring_checkpoint(given.model),
        model_config=given.model_config,
        vocabulary=given.vocab,
        train_data=given.train_data,
        lower_case=given.lower_case,
    )
    _refuse_empty_texts(opened, given.text)
    task = given.task or (opened.config.task if opened.config.is_finetuning else WORDS)
    if task.lower() != WORDS:
        return predict_task(given, opened, task)
    given.task = WORDS
    refuse_flags(given, ("context", "labels"))
    count = _USUAL_COUNT if given.num is None else given.num
    return Prediction(task=WORDS, words=guess_words(opened, get_single_text(given), count))


def _refuse_empty_texts(opened: Trained, texts: Sequence[str]) -> None:
    """Raise UsageError for a text without any token, such as a text of blanks only.

    A model would answer such a text too, although there is nothing to read.
    """
    for number, text in enumerate(texts, 1):
        # Blanks are tokens of a byte-level tokeniser, but no words.
        if not text.strip() or not len(opened.tokenizer.encode_each([text]).ids):
            which = f"text {number} of {len(texts)}" if len(texts) > 1 else "the text"
            raise UsageError(f"{which} is empty: it holds no word that {opened.source} could read")


def guess_words(opened: Trained, text: str, count: int) -> tuple[tuple[WordGuess, ...], ...]:
    """Return for each mask of the text the ``count`` most probable words with their probabilities, best
    first.

    Raises DataError for a model without a masked-word head, UsageError for a text without masks, and
    SettingsError for a text that is too long for the model.
    """
    with torch.device("meta"):
        check_memory(BertForMaskedLM(opened.shape).count_weights())
    model, vocabulary = BertForMaskedLM(opened.shape).eval(), opened.vocabulary
    opened.fill(model, WORD_HEAD, "is an encoder without a masked-word head, which guesses no words")
    ids, mask = _encode_with_masks(opened, text), vocabulary.role("mask")
    masks = [row for row, token in enumerate(ids) if token == mask]
    if not masks:
        raise UsageError(f"the text has no {MASK}: write {MASK} where a word is to be guessed")
    opened.warn_of_length(len(ids))
    with torch.no_grad():
        logits = model(make_single_batch(ids, masks=masks)).masked_lm
    # As in transformers, the softmax includes the entries of the output layer that have no token (the
    # vocabulary's padding).
    shares = logits.float().softmax(1)
    tokens = torch.tensor(vocabulary.replacements)
    best = shares[:, tokens].topk(min(count, len(tokens)))
    readable = make_words_readable(vocabulary)
    words = [[readable[token] for token in chosen] for chosen in tokens[best.indices].tolist()]
    return tuple(tuple(map(WordGuess, *of_mask)) for of_mask in zip(words, best.values.tolist(), strict=True))


def _encode_with_masks(opened: Trained, text: str) -> list[int]:
    """Return the ids of [CLS], the text with a single token for each mask, and [SEP].

    A mask is written as [MASK] or as the tokeniser's own mask token. Some mask tokens absorb the space before
    them, so the text is encoded as a whole. If the tokeniser does not recognise its mask token in a text, the
    pieces of text between the masks are encoded separately.
    """
    vocabulary, tokenizer = opened.vocabulary, opened.tokenizer
    mask = vocabulary.role("mask")
    own = vocabulary.words[mask]
    pieces = text.replace("\n", " ").replace(own, MASK).split(MASK)
    ids: list[int] = []
    if not isinstance(tokenizer, WordPieceTokenizer):
        ids = list(tokenizer.encode_each([own.join(pieces)]).ids)
    if ids.count(mask) != len(pieces) - 1 or not ids:
        ids = []
        for number, found in enumerate(tokenizer.encode_each(pieces).lists()):
            ids += [mask] * (number > 0) + found
    return [vocabulary.role("cls"), *ids, vocabulary.role("sep")]
