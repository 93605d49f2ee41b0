"""Hypothesis strategies for the texts, settings and examples on which both engines must agree."""

from array import array
from itertools import accumulate, pairwise
from random import Random

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bertdata.config.dialects import DIALECTS, SPECIAL_TOKENS, Dialect
from bertdata.examples.bert.batch import BertExample
from bertdata.examples.bert.settings import BertSettings
from bertdata.records import Documents, ShardLayout, Vocabulary
from bertdata.tokens.basic import split_words
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.unicode.tables import load_unicode11


def tries(factor: float) -> hypothesis_settings:
    """Return settings with the profile's number of examples times a factor, for costly or cheap tests."""
    return hypothesis_settings(max_examples=max(1, int(hypothesis_settings().max_examples * factor)))


# Text

SPACES = "\t\x0b\x0c\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2003\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
ALMOST_SPACES = "\u180e\u200b\u2060\ufeff"
CONTROLS = "\0\x01\x1b\x7f\x80\x9f\xad\u0600\u061c\u200d\u200f\u202e\ufffd\U000110bd\U0001d173\U000e0001"
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡«·»¿–—‘’“”…、。「」・\u0964\U00011047"
SYMBOLS = "€©×÷°™\u2028\U0001f600\U0001f469\u200d\U0001f680"
# Combining classes 230, 220, 202, 240, 10, 8, 129, 9, 1, 234, and marks that are not Mn: 224, 216, 226.
MARKS = "\u0300\u0308\u0316\u0327\u0345\u05b0\u3099\u0f71\u094d\u0334\u0360\u302e\U0001d165\U0001d16d"
# Mappings of one to many, of many levels, of compatibility ideographs; Kelvin and Ångström.
LETTERS = "éÅắǘİıẞßﬁǅKÅΩ\u0344\u0958\u0dddﬀ\u2adc\u0340\ufb1d豈\U0002f800\U0001d15eѝЙйᾲᾼῼΐ\u1e69"
CASED = "ΑΒΓΔαςσϹЖЯжＡａＺⒶⓐ\U00010400\U00010428\U0001e900ʰªⅧ"
HANGUL = "가각힣한글\u1100\u1161\u11a8\uac01\u1113"
IDEOGRAPHS = "中文字日本語" + "".join(
    chr(edge + step)
    for first, last in (
        (0x3400, 0x4DBF),
        (0x4E00, 0x9FFF),
        (0xF900, 0xFAFF),
        (0x20000, 0x2A6DF),
        (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F),
        (0x2B820, 0x2CEAF),
        (0x2F800, 0x2FA1F),
    )
    for edge in (first, last)
    for step in (-1, 0, 1)
)
# Letters of Unicode 12 to 16, some with a lower case by now; private use; never assigned.
UNASSIGNED = (
    "\ua7ba\ua7c2\u2c2f\U0001f971\U0001fae0\U00010d50\U0001e4d0\ue000\uf8ff\U000f0000\U0010ffff\ufdd0\uffff"
)

SIGMAS = (
    "Σ",
    "ΣΣ",
    "ΟΔΟΣ",
    "ΣΟΦΟΣ.",
    "ΑΣ'Α",
    "ΑΣ\u00ad",
    "Α\u0301Σ\u0345",
    "1Σ",
    "aΣ1",
    "ʰΣ",
    "ΑΣ:Β",
    "Α.Σ",
    "ΑΣ中",
)
LENGTHS = (15, 16, 17, 18, 31, 32, 33, 99, 100, 101, 199, 200, 201, 255, 256, 257)

characters = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.integers(0, 0x10FFFF - 0x800).map(lambda point: chr(point if point < 0xD800 else point + 0x800)),
    st.sampled_from(load_unicode11().unassigned)
    .map(lambda run: chr(run[0]))
    .filter(lambda character: not "\ud800" <= character <= "\udfff"),
    st.sampled_from(load_unicode11().nonspacing_mark).map(lambda run: chr(run[1])),
    st.sampled_from(sorted(load_unicode11().lower)).map(chr),
    st.sampled_from(sorted(load_unicode11().decomposition)).map(chr),
    *map(
        st.sampled_from,
        (
            SPACES,
            ALMOST_SPACES,
            CONTROLS,
            PUNCTUATION,
            SYMBOLS,
            MARKS,
            LETTERS,
            CASED,
            HANGUL,
            IDEOGRAPHS,
            UNASSIGNED,
        ),
    ),
).filter(lambda character: character not in "\r\n")

plain_words = st.text("abcdeXYZ01", min_size=1, max_size=8)
odd_words = st.text(characters, min_size=1, max_size=8)
accented_words = st.tuples(st.sampled_from("aeZΑ각\u0f71"), st.text(MARKS, max_size=6)).map("".join)
# Combining characters that stay when accents are stripped: their order shows in the ids.
spacing_marks = st.sampled_from(
    sorted(
        chr(point)
        for point in load_unicode11().combining
        if not any(first <= point <= last for first, last in load_unicode11().nonspacing_mark)
    )
)
ordered_words = st.text(st.one_of(spacing_marks, spacing_marks, st.sampled_from(MARKS + "abc")), max_size=8)
glue = st.sampled_from(
    ["", "", "", "x", "é", ".", "[", "]", "\xa0", "\u2028", "\0", "\ufeff", "\xad", "\u0301", "中"]
)
special_words = st.tuples(
    glue, st.sampled_from((*SPECIAL_TOKENS, "[mask]", "[MASK", "[UNK][SEP]")), glue
).map("".join)


@st.composite
def long_words(draw: st.DrawFn) -> str:
    """Draw a word whose length is near a limit, with or without a non-ASCII character."""
    length = draw(st.sampled_from(LENGTHS))
    unit = draw(st.sampled_from(["a", "Ab", "x1", "abcXYZ", "é", "Ωα", "a\u0301", "각", "aé"]))
    word = (unit * length)[:length]
    if draw(st.booleans()):
        place = draw(st.integers(0, length))
        word = word[:place] + draw(st.sampled_from([*"é\u0301\0İ-'", "ǘ"])) + word[place:]
    return word


words = st.one_of(
    plain_words,
    plain_words,
    odd_words,
    accented_words,
    special_words,
    long_words(),
    st.sampled_from(SIGMAS),
    st.integers(0, 70_000).map(str),
)
separators = st.sampled_from([" ", " ", " ", " ", "", "  ", *SPACES, *ALMOST_SPACES])


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Draw a line without its newline: words of all types, separated by white space of all types."""
    pieces = draw(st.lists(st.tuples(words, separators), max_size=8))
    return "".join(word + separator for word, separator in pieces)


blank_lines = st.one_of(st.just(""), st.text(SPACES, max_size=3))
line_ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\r", "\r\r\n"])


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Draw a file of documents.

    Some are empty or have one sentence, and the last line may lack its newline.
    """
    end = draw(line_ends)
    documents = draw(st.lists(st.lists(lines(), max_size=3), max_size=3))
    rows = []
    for document in documents:
        rows += [*document, *draw(st.lists(blank_lines, min_size=1, max_size=2))]
    text = end.join(rows)
    if draw(st.booleans()):
        text += end
    return text.encode()


bad_bytes = st.sampled_from(
    [
        b"\x80",
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xc3",
        b"\xe0\x80\x80",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xed\xbf\xbf",
        b"\xf0\x80\x80\x80",
        b"\xf0\x9f\x98",
        b"\xf4\x90\x80\x80",
        b"\xf5",
        b"\xfe",
        b"\xff\xff",
    ]
)


@st.composite
def broken_texts(draw: st.DrawFn) -> bytes:
    """Draw mostly invalid UTF-8: text with bad bytes inserted, truncated text, or arbitrary bytes."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.binary(max_size=60))
    text = draw(texts())
    for bad in draw(st.lists(bad_bytes, min_size=1, max_size=3)):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + bad + text[place:]
    return text


# Vocabularies

LARGE_VOCABULARY = 70_000


def vocabulary_lines(tokens: list[str], end: str = "\n") -> bytes:
    return "".join(token + end for token in tokens).encode()


def large_vocabulary() -> bytes:
    """Return a vocabulary of more than 65,536 lines, so that ids need 32 bits.

    It has all numbers up to 69,999, single letters, and letters as continuations.
    """
    letters = [chr(point) for point in range(ord("a"), ord("z") + 1)]
    pieces = [f"##{character}" for character in (*letters, *"0123456789")]
    return vocabulary_lines([*map(str, range(LARGE_VOCABULARY)), *SPECIAL_TOKENS, *letters, *pieces])


@st.composite
def vocabularies(draw: st.DrawFn, text: bytes = b"") -> bytes:
    """Draw a tiny vocabulary, or one made of the text's words.

    Lines may be repeated, blank, or end with CR LF.
    """
    tokens = list(SPECIAL_TOKENS)
    found = _words_of(text)
    if found:
        for word in draw(st.lists(st.sampled_from(found), max_size=12)):
            tokens += draw(cuts(word))
    tokens += draw(
        st.lists(st.sampled_from([*"abcxyz01.[]", "##a", "##b", "##1", "##x", "##", "UNK", ""]), max_size=8)
    )
    if tokens and draw(st.booleans()):
        tokens += draw(st.lists(st.sampled_from(tokens), max_size=4))
    if draw(st.booleans()):
        tokens = draw(st.permutations(tokens))
    return vocabulary_lines(list(tokens), draw(st.sampled_from(["\n", "\n", "\r\n"])))


def _words_of(text: bytes) -> list[str]:
    line = text.decode(errors="ignore").replace("\n", " ").replace("\r", " ")
    found = {word for lower in (True, False) for word in split_words(line, DIALECTS["google"], lower)}
    return sorted(found)


@st.composite
def cuts(draw: st.DrawFn, word: str) -> list[str]:
    """Draw word pieces that together spell the word."""
    places = sorted(draw(st.sets(st.integers(1, len(word) - 1), max_size=4))) if len(word) > 1 else []
    bounds = [0, *places, len(word)]
    pieces = [word[start:stop] for start, stop in pairwise(bounds)]
    return [pieces[0], *(f"##{piece}" for piece in pieces[1:])]


dialects = st.sampled_from(sorted(DIALECTS))
seeds = st.one_of(
    st.integers(0, 100),
    st.integers(-(1 << 40), 1 << 40),
    st.integers(-(1 << 200), 1 << 200),
    st.sampled_from([0, 2**31, 2**32 - 1, 2**32, 2**64, -(2**64), 2**63 - 1, 10**300 - 1, 1 - 10**300]),
)
probabilities = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.15, 0.5, 1.0]))


@st.composite
def share_settings(draw: st.DrawFn) -> dict[str, float]:
    """Draw the shares of masked ids. Half of the time they are the shares of an original program."""
    if draw(st.booleans()):
        return {}
    first, second = sorted((draw(probabilities), draw(probabilities)))
    return {"mask_share": first, "random_share": second - first, "kept_share": 1 - second}


@st.composite
def example_settings(draw: st.DrawFn, *, dialect: str | None = None) -> BertSettings:
    """Draw any settings for making examples. Examples are mostly short."""
    length = draw(st.one_of(st.integers(8, 24), st.integers(8, 64), st.integers(8, 1024)))
    predictions = draw(st.one_of(st.integers(1, max(1, length // 4)), st.integers(1, length)))
    dialect = dialect or draw(dialects)
    remask = dialect == "graphcore" and predictions < length and draw(st.booleans())
    return BertSettings(
        dialect=dialect,
        max_seq_length=length,
        max_predictions_per_seq=predictions,
        dupe_factor=draw(st.integers(1, 3)),
        random_seed=draw(seeds),
        masked_lm_prob=draw(probabilities),
        short_seq_prob=draw(probabilities),
        lower_case=draw(st.booleans()),
        whole_word_mask=draw(st.booleans()),
        remask=remask,
        masks=remask or draw(st.sampled_from([True, True, False])),
        **draw(share_settings()),
    )


# Documents and examples, without the detour over text

WORDS_OF_SMALL_VOCABULARY = [f"w{i}" for i in range(20)] + [f"##p{i}" for i in range(12)]


def small_vocabulary(dialect: Dialect, doubled: bool = False) -> Vocabulary:
    """Return a vocabulary of 37 tokens, 12 of which are continuations.

    doubled: repeat some lines, so that some dialects (originals' reading of a vocabulary) skip ids.
    """
    tokens = ["[PAD]", "w3", *WORDS_OF_SMALL_VOCABULARY] if doubled else ["[PAD]", *WORDS_OF_SMALL_VOCABULARY]
    tokens += ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return parse_vocabulary(vocabulary_lines(tokens + ["##p0"] * doubled), "generated", dialect)


def make_documents(shape: list[list[int]], vocabulary: Vocabulary, dialect: Dialect, seed: int) -> Documents:
    """Return documents of random ids. shape: the lengths of each document's sentences.

    [CLS] and [SEP] appear among the ids only if the dialect keeps them as whole tokens in WordPiece text, or
    if the vocabulary is not WordPiece.
    """
    may_hold_special = dialect.keeps_special_tokens or vocabulary.continues_word is None
    made_only_by_us = () if may_hold_special else (vocabulary.cls, vocabulary.sep)
    usable = sorted(set(vocabulary.replacements) - set(made_only_by_us))
    lengths = [length for document in shape for length in document]
    ids = Random(seed).choices(usable, k=sum(lengths))
    return Documents(
        ids=array("I" if vocabulary.size > 1 << 16 else "H", ids),
        sentence_ends=array("I", accumulate(lengths)),
        document_ends=array("I", accumulate(map(len, shape))),
    )


sentence_lengths = st.one_of(st.integers(1, 8), st.integers(1, 30), st.integers(1, 400))
document_shapes = st.lists(st.lists(sentence_lengths, min_size=1, max_size=8), min_size=1, max_size=6)


def layouts(remask: st.SearchStrategy[bool]) -> st.SearchStrategy[ShardLayout]:
    return st.builds(
        lambda length, share, order: ShardLayout(
            max_seq_length=length, max_predictions_per_seq=1 + int(share * (length - 2)), remask=order
        ),
        st.one_of(st.integers(5, 40), st.integers(5, 300)),
        st.floats(0, 1),
        remask,
    )


@st.composite
def examples(draw: st.DrawFn, layout: ShardLayout, smallest_id: int, largest_id: int) -> BertExample:
    """Draw an example that fits the layout, with any ids."""
    length = draw(st.integers(1, layout.max_seq_length))
    fewest = max(0, length - (layout.max_seq_length - layout.max_predictions_per_seq)) if layout.remask else 0
    most = min(length, layout.max_predictions_per_seq)
    count = draw(st.integers(min(fewest, most), most))
    random = Random(draw(st.integers(0, 1 << 30)))
    positions = sorted(random.sample(range(length), count))
    edges = [
        smallest_id,
        *(edge for edge in (1, 127, 128, 16383, 16384, 65535) if edge < largest_id),
        largest_id,
    ]

    def ids(count: int) -> list[int]:
        return [random.choice((*edges, random.randint(smallest_id, largest_id))) for _ in range(count)]

    return BertExample(
        ids=ids(length),
        first_length=draw(st.integers(0, length)),
        positions=positions,
        labels=ids(count),
        next_label=draw(st.integers(0, 1)),
    )
