"""A tokenizer.json trained on text: WordPiece as BERT has it, BPE as RoBERTa, Unigram as XLM-RoBERTa."""

from collections import Counter
from itertools import chain
from typing import Any

from bertdata.errors import SettingsError
from bertdata.tokens.training.library import import_tokenizers
from bertdata.tokens.training.special_tokens import Kind, SpecialTokens, check_size
from bertdata.tokens.training.texts import TrainingText
from bertdata.tokens.training.unigram import SPACE, train_pieces
from bertdata.tokens.training.wordpiece import train_vocabulary


def train_tokenizer(
    text: TrainingText, *, kind: Kind, size: int, lower_case: bool, special: SpecialTokens
) -> Any:
    """A ``tokenizers.Tokenizer`` of at most ``size`` tokens.

    SettingsError for a size that the special tokens and single characters fill. InputError for text that
    cannot be read, or has no words.
    """
    check_size(size)
    train = {"wordpiece": _train_wordpiece, "bpe": _train_bpe, "unigram": _train_unigram}[kind]
    tokenizer = train(text, size, lower_case, special)
    tokenizers = import_tokenizers()
    mask = special.roles["mask"]
    for token in (*special.first, *special.last):
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


def _train_wordpiece(text: TrainingText, size: int, lower_case: bool, special: SpecialTokens) -> Any:
    tokenizers = import_tokenizers()
    tokens = train_vocabulary(text, size=size, lower_case=lower_case, special=special)
    ids = {token: number for number, token in enumerate(tokens)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token=special.roles["unk"]))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lower_case)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    return tokenizer


def _train_bpe(text: TrainingText, size: int, lower_case: bool, special: SpecialTokens) -> Any:
    """Byte-level BPE with the words of GPT-2's pattern. The library breaks its ties by id, in any process."""
    tokenizers = import_tokenizers()
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    alphabet = sorted(byte_level.alphabet())
    least = len(alphabet) + special.number
    if size < least:
        raise SettingsError(
            f"size is {size}, expected at least {least}: {len(alphabet)} bytes and {special.number} special "
            "tokens"
        )
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.normalizer = tokenizers.normalizers.Lowercase() if lower_case else None
    tokenizer.pre_tokenizer = byte_level(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size - len(special.last),
        special_tokens=list(special.first),
        min_frequency=2,
        show_progress=False,
        initial_alphabet=alphabet,
    )
    documents = text.documents()
    first = next(documents, None)
    if first is None:
        raise text.no_words()
    tokenizer.train_from_iterator(chain((first,), documents), trainer)
    return tokenizer


def _train_unigram(text: TrainingText, size: int, lower_case: bool, special: SpecialTokens) -> Any:
    tokenizers = import_tokenizers()
    if size <= special.number:
        raise SettingsError(f"size is {size}, expected more than the {special.number} special tokens")
    rules = tokenizers.normalizers
    normalizer = rules.Sequence(
        [
            rules.NFKC(),
            *([rules.Lowercase()] if lower_case else []),
            rules.Replace(tokenizers.Regex(r"\s+"), " "),
            rules.Strip(),
        ]
    )
    words: Counter[str] = Counter()
    for document in text.documents():
        words.update(normalizer.normalize_str(document).split(" "))
    del words[""]
    if not words:
        raise text.no_words()
    learned = train_pieces(words, size=size - special.number, special=(*special.first, *special.last))
    unknown = special.first.index(special.roles["unk"])
    pieces = [*((token, 0.0) for token in special.first), *learned]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=unknown, byte_fallback=False))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(replacement=SPACE)
    tokenizer.decoder = tokenizers.decoders.Metaspace(replacement=SPACE)
    return tokenizer
