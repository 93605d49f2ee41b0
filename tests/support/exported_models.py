"""Small models with every shape, head and tokeniser, exported for transformers.

Each model is a run with random weights, converted by the export command.
``tests.support.transformers_reading`` computes what a release of transformers makes of the export.
``Exported`` computes what this trainer makes of it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertdata.cli.main import main as bertdata
from bertdata.config.dialects import find_dialect
from bertdata.tokens.files import TokenizerFile, VocabularyFile
from bertdata.tokens.kept_files import write_tokenizer_files
from bertdata.tokens.load import tokenizer_of, vocabulary_of
from bertdata.tokens.tokenizer import Tokenizer
from bertdata.tokens.tokenizer_json import find_tokenizer_json
from bertdata.tokens.wordpiece import WordPieceTokenizer
from tests.support.tokenizer_files import train_unigram
from tests.support.transformers_reading import MOST_LOGITS
from trainer.checkpoints.checkpoint import make_initial_state, write_checkpoint
from trainer.checkpoints.formats.convert import convert
from trainer.config.model import ModelConfig
from trainer.config.modernbert import ModernBertConfig
from trainer.config.roberta import RobertaConfig
from trainer.config.settings import Config
from trainer.data.single import make_single_batch
from trainer.model.headed import BertForMaskedLM, BertForPreTraining, HeadedBert
from trainer.tasks.classification.features import make_features
from trainer.tasks.classification.reading import TextPair
from trainer.tasks.heads import make_answerer, make_classifier

LINES = [
    "Jakob went to the old harbour of Kiel, and the Ärzte wrote it down in 1897.",
    "Where did the lamp of the harbour go? The lamp went to the old town!",
    "Étienne saw the lamp of the harbour, and left it near the town of the doctors.",
    *(f"The lamp {number} of harbour {number * 7} is an old lamp." for number in range(60)),
]

TEXTS: list[tuple[str, ...]] = [
    ("Jakob",),
    ("Jakob saw the lamp.",),
    (" The lamp of  Étienne's town !",),
    ("Jakob", "the old lamp"),
    ("Where did Jakob go?", "Jakob went to the old harbour of Kiel."),
]
"""Single texts and pairs."""

SHAPE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
    "initializer_range": 0.5,
}
SHAPES: dict[str, tuple[type[ModelConfig], dict[str, Any]]] = {
    "bert": (ModelConfig, {}),
    "one-segment": (ModelConfig, {"type_vocab_size": 1}),
    "roberta": (RobertaConfig, {}),
    "two-segments": (RobertaConfig, {"type_vocab_size": 2}),
    "modernbert": (ModernBertConfig, {}),
}
HEADS = ("words", "labels", "answers")
"""Heads of masked words (and pairs, of a BERT), of a classification, of answers."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A model, its tokeniser, and the directory that it was exported to."""

    directory: Path
    model: HeadedBert
    tokenizer: Tokenizer

    def sequence(self, texts: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the token ids and segments that fine-tuning makes of a text or a pair of texts."""
        pair = TextPair(texts[0], texts[1] if len(texts) > 1 else None, "", "a line")
        (feature,) = make_features([pair], [0], self.tokenizer, 64)
        ids, first = feature.ids, feature.first_length
        return ids, [0] * first + [1] * (len(ids) - first)

    def answers(self, texts: Sequence[str]) -> dict[str, list[float]]:
        """Return the first few logits of each head for these texts, under transformers' names."""
        ids, segments = self.sequence(texts)
        batch = make_single_batch(ids, first_length=segments.count(0), masks=range(len(ids)))
        with torch.no_grad():
            found = self.model(batch)
        values: dict[str, Tensor]
        if isinstance(self.model, BertForMaskedLM):
            words = found.masked_lm[:, : self.model.config.vocab_size]
            values = {"logits": words}
            if found.next_sentence is not None:
                values = {"prediction_logits": words, "seq_relationship_logits": found.next_sentence}
        elif hasattr(self.model, "qa_outputs"):
            values = {"start_logits": found[:, 0], "end_logits": found[:, 1]}
        else:
            values = {"logits": found}
        return {name: value.flatten().tolist()[:MOST_LOGITS] for name, value in values.items()}


def export(place: Path, file: TokenizerFile, shape: str, head: str = "words", **changes: Any) -> Exported:
    """Make a run with random weights, export it to a directory below ``place``, and return it.

    file: tokeniser of the model.
    shape, head: names of the model's shape and of its head.
    """
    kind, keys = SHAPES[shape]
    tokens = vocabulary_of(file)
    config = kind(**{"vocab_size": tokens.size, **SHAPE, **keys, **changes})
    if tokens.pad is not None and isinstance(config, RobertaConfig):
        config = replace(config, pad_token_id=tokens.pad)
    model = _model(config, head)
    name = f"{shape}-{head}-{Path(file.path).stem}"
    run = place / f"{name}-run"
    state = replace(make_initial_state(Config.of(), config), step=1)
    write_checkpoint(run / "checkpoints" / "step-00000001", state, model.state_dict(), {})
    write_tokenizer_files(file, str(run))
    convert(str(run), str(place / name))
    return Exported(directory=place / name, model=model, tokenizer=_tokenizer(file))


def _model(config: ModelConfig, head: str) -> HeadedBert:
    """Return a random model in which no parameter is exactly zero or one."""
    torch.manual_seed(5)
    if head == "labels":
        model = make_classifier(config, 3)
    elif head == "answers":
        model = make_answerer(config)
    else:
        model = BertForPreTraining(config) if type(config) is ModelConfig else BertForMaskedLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter += 0.3 * torch.randn(len(parameter))
                if name.endswith("predictions.bias"):
                    parameter[config.vocab_size :] = 0
    return model.eval()


def _tokenizer(file: TokenizerFile) -> Tokenizer:
    """Return the tokeniser that the commands ``predict`` and ``finetune`` would use."""
    if not isinstance(file, VocabularyFile):
        return tokenizer_of(file)
    keys = {"lower_case": file.lower_case, "keep_accents": file.keep_accents}
    return WordPieceTokenizer(vocabulary_of(file), find_dialect("google"), **keys)


def make_tokenizers(place: Path) -> dict[str, TokenizerFile]:
    """Make tokenisers: from ``train-vocab``, with a prefix space, with a template, and GPT-2's."""
    text = place / "text.txt"
    text.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    for kind, size, name in (
        ("wordpiece", 260, "vocab.txt"),
        ("wordpiece", 260, "wordpiece.json"),
        ("bpe", 340, "bpe.json"),
        ("unigram", 160, "unigram.json"),
    ):
        flags = [f"--kind={kind}", f"--size={size}", f"--output={place / name}", "--no-lower-case"]
        assert bertdata(["train-vocab", str(text), *flags]) == 0
    train_unigram(place / "segments.json", LINES, 160)
    parsed = json.loads((place / "bpe.json").read_text(encoding="utf-8"))
    parsed["pre_tokenizer"]["add_prefix_space"] = True
    (place / "prefix.json").write_text(json.dumps(parsed), encoding="utf-8")
    parsed["post_processor"] = template(parsed["model"]["vocab"])
    (place / "template.json").write_text(json.dumps(parsed), encoding="utf-8")
    found: dict[str, TokenizerFile] = {
        "vocab": VocabularyFile(path=str(place / "vocab.txt"), dialect="google", lower_case=False),
        "accents": VocabularyFile(
            path=str(place / "vocab.txt"), dialect="google", lower_case=True, keep_accents=True
        ),
    }
    for name in ("wordpiece", "bpe", "unigram", "segments", "prefix", "template"):
        found[name] = find_tokenizer_json(str(place / f"{name}.json"), {})
    return found


def template(ids: dict[str, int]) -> dict[str, Any]:
    """Return ModernBERT's post-processor with RoBERTa's special tokens.

    Pairs have one separator and one segment.
    """
    cls, sep = ({"SpecialToken": {"id": token, "type_id": 0}} for token in ("<s>", "</s>"))
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    tokens = {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in ("<s>", "</s>")}
    return {
        "type": "TemplateProcessing",
        "single": [cls, first, sep],
        "pair": [cls, first, sep, second, sep],
        "special_tokens": tokens,
    }


def differences(exported: Iterable[Exported], found: dict[str, Any]) -> list[str]:
    """Return one line for each difference between this trainer's outputs and those of transformers.

    found: what ``read_exports`` has returned.
    """
    lines = []
    for one in exported:
        if (theirs := found.get(str(one.directory))) is None:
            continue
        name = one.directory.name
        has_segments = one.model.config.type_vocab_size > 1
        if theirs["missing"] or theirs["unexpected"]:
            lines.append(f"{name}: missing {theirs['missing']}, unexpected {theirs['unexpected']}")
        if ("token_type_ids" in theirs["inputs"]) != has_segments:
            lines.append(f"{name}: inputs {theirs['inputs']}")
        for texts, read in zip(TEXTS, theirs["texts"], strict=True):
            lines += _compare(f"{name}: {texts}", one, texts, read)
    return lines


def _compare(where: str, one: Exported, texts: Sequence[str], read: dict[str, Any]) -> list[str]:
    """Return the differences for a single text or pair."""
    ids, segments = one.sequence(texts)
    wanted = {"ids": ids, "segments": None}
    if one.model.config.type_vocab_size > 1:
        wanted |= {"segments": segments, "segments alone": segments}
    if read["ids alone"] is None:  # a vocab.txt
        wanted.pop("segments alone", None)
    else:
        wanted["ids alone"] = ids
    lines = [
        f"{where}: {key} {read[key]}, expected {value}" for key, value in wanted.items() if read[key] != value
    ]
    expected = one.answers(texts)
    if read["logits"].keys() != expected.keys():
        return [*lines, f"{where}: {list(read['logits'])}, expected {list(expected)}"]
    for name, values in expected.items():
        worst = max(abs(a - b) for a, b in zip(values, read["logits"][name], strict=True))
        if not worst < 1e-4:
            lines.append(f"{where}: {name} differ by {worst:.3g}")
    return lines
