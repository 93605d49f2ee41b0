"""What transformers makes of exported models, in this process or, for older releases, in another.

Usage: ``python -m tests.support.transformers_reading TEXTS_AS_JSON DIRECTORY ...``
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer

MOST_LOGITS = 400
"""Logits of each head that are compared."""

_POOLER = "bert.pooler.dense."
"""Weights that a BERT which finds answers has here, and not in transformers: they take no part."""


def read_exports(texts: Sequence[Sequence[str]], places: Iterable[str]) -> dict[str, Any]:
    """Return what the tokeniser and the model in each directory make of the texts and pairs.

    Directories whose model class is missing in this release are left out.
    """
    found = {}
    for place in places:
        with open(os.path.join(place, "config.json"), encoding="utf-8") as file:
            name = json.load(file)["architectures"][0]
        if hasattr(transformers, name):
            found[place] = _read(place, getattr(transformers, name), texts)
    return found


def _read(place: str, model_class: Any, texts: Sequence[Sequence[str]]) -> dict[str, Any]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    model, report = model_class.from_pretrained(place, output_loading_info=True)
    file = os.path.join(place, "tokenizer.json")
    alone = Tokenizer.from_file(file) if os.path.exists(file) else None
    return {
        "texts": [_read_text(one, tokenizer, model.eval(), alone) for one in texts],
        "inputs": sorted(tokenizer.model_input_names),
        "longest": tokenizer.model_max_length,
        "missing": sorted(report["missing_keys"]),
        "unexpected": sorted(name for name in report["unexpected_keys"] if not name.startswith(_POOLER)),
    }


def _read_text(one: Sequence[str], tokenizer: Any, model: Any, alone: Any) -> dict[str, Any]:
    batch, encoding = tokenizer(*one), alone and alone.encode(*one)
    try:
        with torch.no_grad():
            answer = model(**tokenizer(*one, return_tensors="pt"))
    except (IndexError, TypeError) as error:
        answer = {repr(error): torch.zeros(1)}
    return {
        "ids": batch["input_ids"],
        "segments": batch.get("token_type_ids"),
        "ids alone": encoding and encoding.ids,
        "segments alone": encoding and encoding.type_ids,
        "logits": {key: value.flatten().tolist()[:MOST_LOGITS] for key, value in answer.items()},
    }


if __name__ == "__main__":
    print(json.dumps(read_exports(json.loads(sys.argv[1]), sys.argv[2:])))
