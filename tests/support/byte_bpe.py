"""Tokenizer.json files of byte-level BPE, trained on short texts in twelve languages."""

import json
from functools import cache
from typing import Any

from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bertdata.records import Vocabulary
from bertdata.tokens.bpe.settings import PATTERNS
from bertdata.tokens.bpe.tokenizer import ByteBpeTokenizer
from bertdata.unicode.tables import load_library_classes, load_unicode11
from tests.support.strategies import lines

LANGUAGES = {
    "English": "The keeper's lamp wasn't lit at 7:45; they'd waited 1200 hours, and I'll say so. DON'T!",
    "German": "Der Müller aß 3 Äpfel, während draußen die Straßenbahn über die Brücke fuhr.",
    "French": "L'été dernier, nous avons mangé des crêpes « à la plage » ; c'était délicieux !",
    "Spanish": "¿Dónde está el niño? Aquí vivieron 25 pingüinos y una cigüeña pequeña.",
    "Polish": "Zażółć gęślą jaźń: żółta łódka płynęła w nocy przez źródło.",
    "Russian": "Ёжик нашёл в лесу двадцать грибов и подарил их соседу, который жил у реки.",
    "Greek": "Η θάλασσα ήταν ήσυχη, και ο Οδυσσεύς κοιτούσε το μικρό νησί.",
    "Arabic": "كَتَبَ الوَلَدُ رسالةً طويلةً إلى أخيه في ١٢ مايو، ثم نام.",
    "Hindi": "बच्चे ने नदी के किनारे ज़मीन पर ५ फूल और एक बड़ा पत्थर देखा।",
    "Thai": "เด็กผู้หญิงเดินไปที่ตลาดเพื่อซื้อผลไม้ ๓ กิโลกรัมกับน้ำผึ้ง",
    "Chinese": "早上七点，老师走进图书馆，借了三本关于海洋的书。",
    "Korean": "바다가 보이는 작은 집에서 할머니는 매일 아침 2번 차를 마신다.",
}
"""Made-up text. Arabic and Hindi contain combining marks."""

_PATTERN_TEXTS = {name: text for text, name in PATTERNS.items()}


def byte_level(add_prefix_space: bool, use_regex: bool = True) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def split(pattern: str) -> dict[str, Any]:
    """Return a pre-tokeniser that splits at the named pattern."""
    return sequence(
        {
            "type": "Split",
            "pattern": {"Regex": _PATTERN_TEXTS[pattern]},
            "behavior": "Isolated",
            "invert": False,
        },
        byte_level(False, use_regex=False),
    )


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def added(token_id: int, content: str, **changes: bool) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": token_id, "content": content, **flags, **changes}


PRE_TOKENIZERS = {
    "gpt2": byte_level(False),
    "gpt2 with a blank": byte_level(True),
    "gpt2 by Split": split("gpt2"),
    "llama3": split("llama3"),
    "qwen2": split("qwen2"),
    "each digit": sequence({"type": "Digits", "individual_digits": True}, byte_level(False)),
    "runs of digits": sequence({"type": "Digits", "individual_digits": False}, byte_level(True)),
}
ROBERTA = {
    "type": "RobertaProcessing",
    "sep": ["</s>", 2],
    "cls": ["<s>", 0],
    "trim_offsets": True,
    "add_prefix_space": True,
}
ADDED = {
    "few": [("<mask>", {"lstrip": True, "special": True})],
    "all": [
        ("<mask>", {"lstrip": True, "special": True}),
        ("  ", {"normalized": True}),
        ("    ", {"normalized": True}),
        ("solo", {"single_word": True, "normalized": True}),
        ("é!", {"normalized": True}),
        ("<left>", {"lstrip": True, "normalized": True}),
        ("abq", {"single_word": True}),
        ("<|x|>", {}),
    ],
    "stripping": [
        ("<right>", {"rstrip": True}),
        ("<both>", {"lstrip": True, "rstrip": True, "normalized": True}),
    ],
}


@cache
def _trained() -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        min_frequency=1,
        show_progress=False,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(LANGUAGES.values(), trainer)
    return str(tokenizer.to_str())


def byte_bpe(
    pre_tokenizer: Any = "gpt2", *, tokens: str = "few", composes: bool = False, **changes: Any
) -> dict[str, Any]:
    """Return the contents of a tokenizer.json of byte-level BPE.

    pre_tokenizer: a name in PRE_TOKENIZERS, or the JSON object itself.
    tokens: a name in ADDED, which lists added tokens.
    changes: other keys of the file or of its model.
    """
    parsed: dict[str, Any] = json.loads(_trained())
    size = len(parsed["model"]["vocab"])
    parsed["pre_tokenizer"] = (
        PRE_TOKENIZERS[pre_tokenizer] if isinstance(pre_tokenizer, str) else pre_tokenizer
    )
    parsed["normalizer"] = {"type": "NFC"} if composes else None
    parsed["added_tokens"] += [
        added(size + place, content, **flags) for place, (content, flags) in enumerate(ADDED[tokens])
    ]
    for key, value in changes.items():
        (parsed if key in parsed else parsed["model"])[key] = value
    return parsed


def vocabulary_of(parsed: dict[str, Any]) -> Vocabulary:
    ids = {**parsed["model"]["vocab"], **{token["content"]: token["id"] for token in parsed["added_tokens"]}}
    words = [""] * (max(ids.values()) + 1)
    for word, token_id in ids.items():
        words[token_id] = word
    return Vocabulary(
        name="made",
        md5="",
        kind="bpe",
        words=words,
        continues_word=None,
        replacements=tuple(range(len(words))),
        unk=ids.get("<unk>"),
    )


def tokenizer_of(parsed: dict[str, Any], engine: Any, between: str = " ") -> ByteBpeTokenizer:
    return ByteBpeTokenizer(parsed, vocabulary_of(parsed), between=between, engine=engine)


_odd = st.one_of(
    st.sampled_from(sorted(load_unicode11().combining)),
    st.sampled_from(sorted(load_unicode11().decomposition)),
    *(
        st.sampled_from(table).flatmap(lambda run: st.integers(*run))
        for table in (
            load_library_classes().number,
            load_library_classes().newer_number,
            load_library_classes().space,
            load_library_classes().word_but_letter,
            load_library_classes().newer_mark,
            load_library_classes().never_composed,
        )
    ),
).map(chr)
KNOWN = """
's 'S 'ſ 're 'LL 'll ' '' <mask> <s> <unk> <left> <right> <both> <|x|> abq solo é! e\u0301! 12 1234567 ... -
\0 a\0 the \u1100\u1161\u11a8 \u1161 \u11a8 \u0344 aaaaaaaaaaaaaaaa aaaaaaaaaaaaaaaaa
"""
_known = st.sampled_from(KNOWN.split())
_blanks = st.sampled_from([" ", " ", "", "  ", "   ", "    ", "\t", "\n", "\r\n", " \n ", "\xa0", "\u3000"])
_words = st.one_of(_known, _known, _odd, st.sampled_from(" ".join(LANGUAGES.values()).split()))
_pieces = st.lists(st.one_of(_words, _blanks), max_size=12).map("".join)
bpe_texts = st.lists(st.one_of(_pieces, _pieces, lines()), max_size=3).map("".join)
"""Texts with added tokens, combining marks, white space and numbers of all kinds, any other characters."""
