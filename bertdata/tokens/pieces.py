"""Splits words into word pieces by WordPiece (Wu et al. 2016), in the same way as BERT's program."""

from bertdata.tokens.vocabulary import WordPieceVocabulary


def split_pieces(word: str, vocabulary: WordPieceVocabulary, max_word_chars: int) -> list[int]:
    """Split a word into word pieces, and return their ids.

    From left to right, the longest piece that is in the vocabulary is taken each time. A piece after the
    first is looked up with ``##`` in front. If no piece fits, or if the word has more than max_word_chars
    characters, the result is the id of [UNK] alone.
    """
    if len(word) > max_word_chars:
        return [vocabulary.unk]
    pieces: list[int] = []
    start = 0
    while start < len(word):
        # Try the whole rest of the word first, and then shorter and shorter beginnings of it. For example,
        # "unaffable" is split into "un", "##aff" and "##able".
        for end in range(len(word), start, -1):
            piece = word[start:end] if start == 0 else "##" + word[start:end]
            if piece in vocabulary.ids:
                pieces.append(vocabulary.ids[piece])
                start = end
                break
        else:
            return [vocabulary.unk]
    return pieces
