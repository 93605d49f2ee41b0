"""Predictions of a pre-trained model for a text: the words that could stand in place of its [MASK]s."""

import torch

from bertdata.errors import SettingsError, UsageError
from bertdata.io.terminal import dump_printable_json
from bertdata.tokens.readable import make_words_readable
from bertdata.tokens.wordpiece import WordPieceTokenizer
from trainer.data.single import make_single_batch
from trainer.model.bert import WORD_HEAD, check_memory
from trainer.model.headed import BertForMaskedLM
from trainer.tasks.prediction import Trained

MASK = "[MASK]"


def predict_lines(opened: Trained, text: str, *, count: int, as_json: bool) -> list[str]:
    """Return the most probable words for each mask of the text, in one line per mask.

    count: number of words per mask.
    as_json: return a single line of JSON instead. It is a list per mask, of pairs [word, probability]. Only
    this form shows whether a word begins with a space.
    """
    if count < 1:
        raise SettingsError(f"--num {count}: expected 1 or more")
    guesses = guess_words(opened, text, count)
    if as_json:
        return [dump_printable_json(guesses)]
    return [
        ", ".join(f"{word.strip() or word} {probability:.1%}" for word, probability in words)
        for words in guesses
    ]


def guess_words(opened: Trained, text: str, count: int) -> list[list[tuple[str, float]]]:
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
    return [list(zip(*one, strict=True)) for one in zip(words, best.values.tolist(), strict=True)]


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
