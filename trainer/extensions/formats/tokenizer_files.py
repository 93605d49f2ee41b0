"""A tokeniser's files in Hugging Face form: the vocabulary, its casing and the special tokens."""

import json

from bertdata.io import storage
from bertdata.records import Vocabulary

_SPECIAL_TOKENS = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}


def export_tokenizer(vocabulary: Vocabulary, directory: str, *, lower_case: bool, longest: int) -> None:
    """Write vocab.txt, tokenizer_config.json and special_tokens_map.json for transformers' AutoTokenizer.

    longest: tokens of the longest sequence that the model takes.
    """
    config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": lower_case,  # strips accents too, unless strip_accents says otherwise
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": longest,
        **_SPECIAL_TOKENS,
    }
    files = {
        "vocab.txt": "".join(f"{word}\n" for word in vocabulary.words),
        "tokenizer_config.json": json.dumps(config, indent=2) + "\n",
        "special_tokens_map.json": json.dumps(_SPECIAL_TOKENS, indent=2) + "\n",
    }
    for name, text in files.items():
        with storage.open_output(storage.join(directory, name)) as file:
            file.write(text.encode())
