"""Tiny masked-language models saved by transformers, changes to their files, and their logits."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.support.kit_models import flat
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.formats.kinds import read_checkpoint
from trainer.model.headed import BertForMaskedLM

VOCABULARY = 99
IDS = torch.randint(5, VOCABULARY, (1, 24), generator=torch.Generator().manual_seed(1))

_SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 42,
    "initializer_range": 0.2,
    "pad_token_id": 1,
}
_CONFIGS = {
    "bert": transformers.BertConfig,
    "roberta": transformers.RobertaConfig,
    "modernbert": transformers.ModernBertConfig,
}

KINDS = tuple(_CONFIGS)
WORDS = {
    "bert": "bert.embeddings.word_embeddings.weight",
    "roberta": "roberta.embeddings.word_embeddings.weight",
    "modernbert": "model.embeddings.tok_embeddings.weight",
}
DECODER = {
    "bert": "cls.predictions.decoder.weight",
    "roberta": "lm_head.decoder.weight",
    "modernbert": "decoder.weight",
}
"""Names of the word embeddings and of the output layer's weights in transformers."""


def new_model(kind: str, **changes: Any) -> Any:
    """Return transformers' masked-language model of this type, with random weights and biases."""
    torch.manual_seed(3)
    config = _CONFIGS[kind](**_SHAPE, **changes)
    model = transformers.AutoModelForMaskedLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn(len(parameter))
    return model


def save(model: Any, directory: Path) -> Path:
    """Save the model as transformers does. Returns its directory."""
    model.save_pretrained(directory)
    return directory


def rewrite(directory: Path, change: Any, **keys: Any) -> None:
    """Replace the saved tensors by ``change(tensors)``, and add keys to config.json."""
    path = directory / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    changed = {name: tensor.contiguous() for name, tensor in change(tensors).items()}
    save_file(changed, path, metadata={"format": "pt"})
    add_keys(directory, **keys)


def add_keys(directory: Path, **keys: Any) -> None:
    """Add keys to the directory's config.json."""
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | keys), encoding="utf-8")


def their_logits(directory: Path) -> Tensor:
    """Return the (tokens, words) logits that transformers computes for IDS."""
    load = transformers.AutoModelForMaskedLM.from_pretrained
    with torch.no_grad():
        found: Tensor = load(directory, attn_implementation="eager").eval()(input_ids=IDS).logits[0]
    return found


def read_model(path: Path) -> BertForMaskedLM:
    """Load the checkpoint into this trainer's model. Every weight must be in the file."""
    checkpoint = read_checkpoint(str(path))
    model = BertForMaskedLM(checkpoint.expect_config()).eval()
    assert fill_model(model, checkpoint) == []
    return model


def our_logits(path: Path) -> Tensor:
    """Return the logits that this trainer computes for IDS."""
    with torch.no_grad():
        batch = flat(IDS[0], torch.tensor([0, IDS.shape[1]]), IDS[0])
        found: Tensor = read_model(path)(batch).masked_lm[:, :VOCABULARY]
    return found
