"""Variations of tokenizer.json files, and texts that find their differences, drawn from a seeded generator.

Most of them are files that the library saves: a model, one or several normalisers and splitters,
post-processors and added tokens with all their flags. Some have an odd part: a key too many or too few, a
value of another type.
"""

import copy
import json
from random import Random
from typing import Any

from bertdata.tokens.bpe.settings import PATTERNS, make_byte_alphabet

Json = dict[str, Any]

_WORDS = """
the The THE cat sat's wasn't they'll I'VE 12 1234567 3.14 ... - -- naïve naive möchte MÖCHTE ﬁne Straße
STRASSE Istanbul istanbul İSTANBUL ıIi ΣΊΣΥΦΟΣ ς e\u0301 é E\u0301! abq abqx xabq solo <mask> <s> </s> [MASK]
[SEP] <x> covid19 COVID19 日本語 東京tower ไทย ١٢٣ ½ Ⅷ ０１ \u200b \u200d 👩\u200d🔬 \ufffd \u0344
\u1100\u1161\u11a8 ##a a##b
"""
WORDS = _WORDS.split()
BLANKS = (" ", " ", " ", "", "  ", "   ", "\t", "\xa0", "\u3000", " \u2028", "\r")
_CONTENTS = """
<mask> <x> <left> abq solo é! e\u0301! E! Istanbul istanbul İstanbul ß ss STRASSE ﬁ fi a the ##a covid19
COVID19 １ 1 12 <s> </s> [MASK] Ω Ω ς Σ -
"""
CONTENTS = (*_CONTENTS.split(), "  ", " ", " a", "a ", "x y", "\n", "\xa0", "", "\u0301", "naïve cat")
"""Texts of added tokens. Some are one text once normalised, or a part of another one."""


def byte_bpe(random: Random) -> Json:
    """Return the model of a byte-level BPE with some merges. Some have gaps in their ids, or odd merges."""
    vocabulary = {unit: number for number, unit in enumerate(make_byte_alphabet())}
    merges = []
    for first, second in _MERGES[: random.randrange(len(_MERGES) + 1)]:
        vocabulary.setdefault(first + second, len(vocabulary))
        merges.append([first, second])
    if random.random() < 0.1:
        merges.append(random.choice(merges or [["a", "b"]]))
    if random.random() < 0.2:
        for token in random.sample(["<s>", "</s>", "<x>", "Ġ<mask>"], 2):
            vocabulary[token] = max(vocabulary.values()) + random.choice((1, 1, 40))
    if random.random() < 0.03:
        vocabulary["twin"] = random.randrange(len(vocabulary))
    texts = random.random() < 0.3
    model: Json = {
        "type": "BPE",
        "dropout": random.choice((None, None, 0.1)),
        "unk_token": random.choice((None, None, "<unk>", "a")),
        "continuing_subword_prefix": random.choice((None, "", "")),
        "end_of_word_suffix": random.choice((None, "", "")),
        "fuse_unk": random.random() < 0.2,
        "byte_fallback": random.random() < 0.05,
        "ignore_merges": random.random() < 0.3,
        "vocab": vocabulary,
        "merges": [" ".join(merge) for merge in merges] if texts else merges,
    }
    if random.random() < 0.05:
        model["continuing_subword_prefix"] = random.choice(("##", "x", "t", "é"))
        if random.random() < 0.5:  # of the second token's bytes the prefix's number is cut off: half a letter
            model["merges"] = [["a", "é"]]
    if random.random() < 0.03:
        model["end_of_word_suffix"] = random.choice(("</w>", "e"))
    return model


_MERGES = [
    *(("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "t"), ("i", "n"), ("Ġ", "c"), ("a", "t"), ("Ġc", "at")),
    *(("Ã", "©"), ("Ã", "¶"), ("m", "Ã¶"), ("Ġ", "Ġ"), ("ĠĠ", "ĠĠ"), ("1", "2"), ("12", "3"), ("'", "s")),
    *(("I", "s"), ("a", "n"), ("t", "an"), ("b", "u"), ("æ", "Ĺ"), ("æĹ", "¥"), ("Ġ", "s"), ("e", "Ì")),
]


def wordpiece(random: Random) -> Json:
    """Return the model of a BERT's WordPiece. Sometimes its unknown token or prefix is another one."""
    letters = "abcdefghijklmnopqrstuvwxyzäöüßéσςάίABCDEIST0123456789.,'!-<>[]#日本東京"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + letter for letter in letters)]
    words += ["the", "cat", "##at", "naive", "naïve", "mochte", "möchte", "istanbul", "##ll", "strasse", "½"]
    random.shuffle(words)
    vocabulary = {word: number for number, word in enumerate(words)}
    if random.random() < 0.1:
        vocabulary["<s>"] = len(words) + random.choice((0, 30))
    return {
        "type": "WordPiece",
        "unk_token": "[UNK]" if random.random() < 0.95 else random.choice(("[PAD]", "none")),
        "continuing_subword_prefix": "##" if random.random() < 0.95 else random.choice(("", "#", "t")),
        "max_input_chars_per_word": random.choice((100, 100, 100, 200, 5, 1, 0)),
        "vocab": vocabulary,
    }


def other_model(random: Random) -> Json:
    """Return a Unigram, or a model of whole words."""
    words = ["<unk>", "<s>", "▁", "▁the", "▁cat", "the", "a", "t", "e", "é", "12", "▁möchte", "Istanbul"]
    if random.random() < 0.5:
        pieces = [[word, -random.random() * 9] for word in words]
        return {"type": "Unigram", "unk_id": random.choice((0, 0, None, 3)), "vocab": pieces}
    vocabulary = {word: number for number, word in enumerate(words)}
    return {"type": "WordLevel", "vocab": vocabulary, "unk_token": random.choice(("<unk>", "<unk>", "none"))}


def normalizer(random: Random) -> Json:
    """Return a normaliser that the library knows."""
    kinds: list[Json] = [
        *({"type": kind} for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")),
        {"type": "Strip", "strip_left": random.random() < 0.5, "strip_right": random.random() < 0.5},
        {"type": "Replace", "pattern": {"String": random.choice(("a", " ", "e", "''"))}, "content": "▁"},
        {"type": "Replace", "pattern": {"Regex": random.choice((r"\s+", "[0-9]", "x*"))}, "content": " "},
        {"type": "Prepend", "prepend": random.choice(("▁", "a", " "))},
        bert_normalizer(random),
    ]
    return random.choice(kinds)


def bert_normalizer(random: Random) -> Json:
    """Return BERT's normaliser with random switches."""
    return {
        "type": "BertNormalizer",
        "clean_text": random.random() < 0.9,
        "handle_chinese_chars": random.random() < 0.7,
        "strip_accents": random.choice((None, None, True, False)),
        "lowercase": random.random() < 0.6,
    }


def splitter(random: Random) -> Json:
    """Return a pre-tokeniser that the library knows."""
    behavior = random.choice(("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"))
    pattern = random.choice(({"Regex": r"\s+"}, {"String": " "}, {"Regex": r"\p{N}"}, {"String": "a"}))
    kinds: list[Json] = [
        *({"type": kind} for kind in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")),
        {"type": "Digits", "individual_digits": random.random() < 0.5},
        {"type": "Punctuation", "behavior": behavior},
        {"type": "CharDelimiterSplit", "delimiter": random.choice((" ", "a"))},
        {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": random.random() < 0.3},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        byte_level(random),
    ]
    return random.choice(kinds)


def byte_level(random: Random, **changes: bool) -> Json:
    """Return a ByteLevel with random switches."""
    switches = {name: random.random() < 0.5 for name in ("add_prefix_space", "trim_offsets")}
    return {"type": "ByteLevel", **switches, "use_regex": random.random() < 0.8, **changes}


def known_splitter(random: Random) -> Json:
    """Return one of the pre-tokenisers that the kernel of byte-level BPE knows."""
    if random.random() < 0.5:
        steps = [byte_level(random, use_regex=True)]
    else:
        split = {"type": "Split", "pattern": {"Regex": random.choice(list(PATTERNS))}, "behavior": "Isolated"}
        steps = [split | {"invert": False}, byte_level(random, add_prefix_space=False, use_regex=False)]
    if random.random() < 0.3:
        steps.insert(0, {"type": "Digits", "individual_digits": random.random() < 0.5})
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": steps}


def post_processor(random: Random) -> Json | None:
    """Return a post-processor, or none."""
    token = ["a", 64]
    kinds: list[Json | None] = [
        None,
        byte_level(random),
        {"type": "BertProcessing", "sep": token, "cls": token},
        {
            "type": "RobertaProcessing",
            "sep": token,
            "cls": token,
            "trim_offsets": random.random() < 0.7,
            "add_prefix_space": random.random() < 0.5,
        },
        {"type": "Sequence", "processors": [byte_level(random), byte_level(random)]},
    ]
    return random.choice(kinds)


def added_tokens(random: Random, vocabulary: Json) -> list[Json]:
    """Return added tokens, by id as the library saves them; sometimes an id, or an order, is another."""
    found, number = [], len(vocabulary)
    contents = random.sample(CONTENTS, random.choice((0, 0, 1, 1, 2, 3, 5)))
    if random.random() < 0.1:
        contents += contents[:1]
    if random.random() < 0.03:
        contents = random.sample(("Istanbul", "istanbul", "İstanbul", "é!", "e\u0301!", "E!"), 3)
    for content in contents:
        token_id = vocabulary.get(content)
        if token_id is None:
            token_id, number = number, number + 1
        if random.random() < 0.03:
            token_id += random.choice((1, 40, -1, 70_000))
        likely = {"single_word": 0.2, "lstrip": 0.25, "rstrip": 0.2, "normalized": 0.4, "special": 0.4}
        flags = {name: random.random() < share for name, share in likely.items()}
        found.append({"id": token_id, "content": content, **flags})
    if random.random() < 0.9:
        found.sort(key=lambda token: int(token["id"]))
    return found


def variation(random: Random) -> Json:
    """Return a tokenizer.json; some two thirds of them are such as a kernel runs."""
    draw = random.random()
    kind = "BPE" if draw < 0.45 else "WordPiece" if draw < 0.85 else "other"
    model = {"BPE": byte_bpe, "WordPiece": wordpiece, "other": other_model}[kind](random)
    plain = random.random() < 0.75
    if kind == "BPE" and plain:
        normal = random.choice((None, None, {"type": "NFC"}))
        split: Json | None = known_splitter(random)
    elif kind == "WordPiece" and plain:
        normal, split = bert_normalizer(random), {"type": "BertPreTokenizer"}
    else:
        normal = random.choice((None, normalizer(random), _sequence("normalizers", normalizer, random)))
        split = random.choice((None, splitter(random), _sequence("pretokenizers", splitter, random)))
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):
        vocabulary = {piece[0]: number for number, piece in enumerate(vocabulary)}
    tokens = added_tokens(random, vocabulary)
    if kind == "WordPiece" and random.random() < 0.7:
        for token in tokens:
            token["normalized"] = False
    file: Json = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": tokens,
        "normalizer": normal,
        "pre_tokenizer": split,
        "post_processor": post_processor(random),
        "decoder": random.choice((None, byte_level(random))),
        "model": model,
    }
    if random.random() < 0.2:
        make_odd(file, random)
    return file


def _sequence(name: str, make: Any, random: Random) -> Json:
    return {"type": "Sequence", name: [make(random) for _ in range(random.randrange(4))]}


ODD_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        1.5,
        1 << 40,
        "x",
        "false",
        "",
        {},
        [],
        {"type": "X"},
        ["a"],
        [["a", "b"]],
    ),
    *({"type": "NFC"}, {"String": "a"}, "Isolated", "1.0", "9.0", [1], [None]),
)


def make_odd(file: Json, random: Random) -> None:
    """Change one part of a file, somewhere outside a vocabulary, to what the library would not save."""
    places = list(_places(file))
    parent, key = random.choice(places)
    draw = random.random()
    if draw < 0.55:
        parent[key] = copy.deepcopy(random.choice(ODD_VALUES))
    elif draw < 0.8:
        del parent[key]
    elif isinstance(parent, dict):
        parent[random.choice(("odd", "type", "version", "pattern", "clean_text"))] = random.choice(ODD_VALUES)


def _places(value: Any) -> Any:
    """The containers and keys of a JSON value; of a vocabulary a few."""
    if isinstance(value, dict):
        keys = list(value) if len(value) < 30 else list(value)[:2]
        for key in keys:
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for place in range(min(len(value), 3)):
            yield value, place
            yield from _places(value[place])


def text(random: Random, file: Json) -> str:
    """Return a document of words, blanks and added tokens."""
    pieces = []
    added = file.get("added_tokens")
    tokens = [token for token in added if isinstance(token, dict)] if isinstance(added, list) else []
    contents = [token.get("content") for token in tokens]
    own = [content for content in contents if isinstance(content, str)]
    for _ in range(random.randrange(1, 9)):
        draw = random.random()
        if own and draw < 0.35:
            word = random.choice(own)
            word = random.choice((word, word, word.upper(), word.lower()))
        elif draw < 0.9:
            word = random.choice(WORDS)
        else:
            word = chr(random.choice((random.randrange(0x20, 0x250), random.randrange(0x250, 0xD800))))
        pieces += [word, random.choice(BLANKS)]
    return "".join(pieces).replace("\n", " ").replace("\r", " ")


def dumped(file: Json) -> bytes:
    """Return the bytes of a file."""
    return json.dumps(file, ensure_ascii=False).encode()
