"""Words to ids of word pieces (WordPiece, Wu et al. 2016, as the BERT release applies it)."""

from bertdata.tokens.vocabulary import WordPieceVocabulary


def split_pieces(word: str, vocabulary: WordPieceVocabulary, max_word_chars: int) -> list[int]:
    """Ids of the longest known pieces from left to right. One [UNK] where nothing fits.

    Every piece but the first is looked up with ``##`` before it. A word of more than
    max_word_chars characters is [UNK].
    """
    if len(word) > max_word_chars:
        return [vocabulary.unk]
    pieces: list[int] = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = word[start:end] if start == 0 else "##" + word[start:end]
            if piece in vocabulary.ids:
                pieces.append(vocabulary.ids[piece])
                start = end
                break
        else:
            return [vocabulary.unk]
    return pieces
