"""Splits words into word pieces (WordPiece, Wu et al. 2016, as in the BERT release)."""

from bertdata.tokens.vocabulary import WordPieceVocabulary


def split_pieces(word: str, vocabulary: WordPieceVocabulary, max_word_chars: int) -> list[int]:
    """Return the ids of a word's pieces: from left to right, always the longest piece in the vocabulary.

    Pieces after the first are looked up with ``##`` in front. If no piece fits, or if the word has more than
    max_word_chars characters, the result is a single [UNK].
    """
    if len(word) > max_word_chars:
        return [vocabulary.unk]
    pieces: list[int] = []
    start = 0
    while start < len(word):
        # unaffable -> un, ##aff, ##able: try the longest rest of the word first, then shorter ones.
        for end in range(len(word), start, -1):
            piece = word[start:end] if start == 0 else "##" + word[start:end]
            if piece in vocabulary.ids:
                pieces.append(vocabulary.ids[piece])
                start = end
                break
        else:
            return [vocabulary.unk]
    return pieces
