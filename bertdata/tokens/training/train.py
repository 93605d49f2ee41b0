"""A tokenizer.json trained on text: WordPiece as BERT has it, BPE as RoBERTa, Unigram as XLM-RoBERTa."""

from collections.abc import Callable
from functools import partial
from typing import Any

from bertdata.tokens.training.bpe import train_bpe
from bertdata.tokens.training.library import import_tokenizers
from bertdata.tokens.training.special_tokens import Kind, SpecialTokens, check_size
from bertdata.tokens.training.texts import OnRead, VocabularyText, ignore_read
from bertdata.tokens.training.unigram import train_unigram
from bertdata.tokens.training.word_counts import OnCounted, ignore_counts
from bertdata.tokens.training.wordpiece import train_wordpiece


def train_tokenizer(
    text: VocabularyText,
    *,
    kind: Kind,
    size: int,
    lower_case: bool,
    special: SpecialTokens,
    keep_accents: bool = False,
    on_read: OnRead = ignore_read,
    on_counted: OnCounted = ignore_counts,
) -> Any:
    """Return a ``tokenizers.Tokenizer`` of at most ``size`` tokens.

    keep_accents: of WordPiece, which strips accents of text that it lower-cases; the others keep them.
    on_read: told how many more bytes of text were read. on_counted: told the words, before they are learned
    from. SettingsError for a size that the special tokens and single characters fill. InputError for text
    that cannot be read, or has no words.
    """
    check_size(size)
    trainers: dict[str, Callable[..., Any]] = {
        "wordpiece": partial(train_wordpiece, keep_accents=keep_accents),
        "bpe": train_bpe,
        "unigram": train_unigram,
    }
    train = trainers[kind]
    tokenizer = train(
        text, size=size, lower_case=lower_case, special=special, on_read=on_read, on_counted=on_counted
    )
    tokenizers = import_tokenizers()
    mask = special.roles["mask"]
    for token in special.all:
        # RoBERTa's mask takes the blank before it, as the words that it stands for do.
        takes_blank = kind != "wordpiece" and token == mask
        tokenizer.add_special_tokens([tokenizers.AddedToken(token, lstrip=takes_blank)])
    sep, cls = ((special.roles[role], tokenizer.token_to_id(special.roles[role])) for role in ("sep", "cls"))
    if kind == "wordpiece":
        tokenizer.post_processor = tokenizers.processors.BertProcessing(sep, cls)
    else:
        tokenizer.post_processor = tokenizers.processors.RobertaProcessing(
            sep, cls, trim_offsets=kind == "bpe", add_prefix_space=False
        )
    return tokenizer
