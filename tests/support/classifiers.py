"""Small classifiers saved by transformers, and pairs of texts for which they predict different classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

WORDS = [
    *("the", "a", "is", "old", "new", "good", "bad", "harbour", "market", "library", "garden", "bridge"),
    *("tower", "yes", "no", "it", "they", "closed"),
]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
PAIRS = [
    (f"the {first} is {kind}", f"{answer} it is {other}")
    for first, kind, answer, other in zip(
        WORDS[7:13] * 4, WORDS[3:7] * 6, ["yes", "no", "they"] * 8, WORDS[3:17] * 2, strict=False
    )
]
"""24 pairs of texts."""


def make_classifier(
    path: Path, names: Sequence[str] = (), *, rows: int = 0, problem: str | None = None, spread: float = 0.5
) -> Path:
    """Save a BERT with a classification head. Returns its directory.

    The classes are about equally frequent among its predictions for PAIRS.

    names: names of the labels.
    rows: number of labels without names, if ``names`` is empty.
    """
    count = len(names) or rows
    keys: dict[str, Any] = {"num_labels": count, "problem_type": problem}
    if names:
        keys = {
            "id2label": dict(enumerate(names)),
            "label2id": {name: row for row, name in enumerate(names)},
            "problem_type": problem,
        }
    config = transformers.BertConfig(
        vocab_size=len(TOKENS),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=40,
        initializer_range=spread,
        **keys,
    )
    torch.manual_seed(4)
    model = transformers.BertForSequenceClassification(config).eval()
    path.mkdir(parents=True)
    (path / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizer(str(path / "vocab.txt"))
    firsts, seconds = map(list, zip(*PAIRS, strict=True))
    with torch.no_grad():
        logits = model(**tokenizer(firsts, seconds, padding=True, return_tensors="pt")).logits
        model.classifier.bias -= logits.mean(0)
    model.save_pretrained(path)
    return path


def pipeline_answers(path: Path, texts: Sequence[tuple[str, str]] = PAIRS) -> list[dict[str, Any]]:
    """Return the label and score that transformers' pipeline predicts for each pair."""
    pipeline = transformers.pipeline("text-classification", model=str(path), device="cpu")
    return [pipeline({"text": first, "text_pair": second}) for first, second in texts]


def pairs_file(path: Path, labels: Sequence[str], heading: str = "sentence1\tsentence2\tgold_label") -> Path:
    """Write a table of PAIRS with these labels."""
    rows = [f"{first}\t{second}\t{label}" for (first, second), label in zip(PAIRS, labels, strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([heading, *rows]) + "\n", encoding="utf-8")
    return path
