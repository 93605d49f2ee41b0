"""Small checkpoints with made-up weights and moments."""

from dataclasses import replace

import torch

from trainer.checkpoints.any_checkpoint import Checkpoint, StoredTensor
from trainer.config.model import ModelConfig
from trainer.model.headed import BertForPreTraining, HeadedBert

CONFIG = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def made(vocab_size: int = 101, **changes) -> Checkpoint:
    """Return a checkpoint with moments. None of its values is a special number such as 0 or 1."""
    torch.manual_seed(3)
    config = ModelConfig(vocab_size=vocab_size, **{**CONFIG, **changes})
    model = BertForPreTraining(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn_like(parameter) / 50
        for table in (model.bert.embeddings.word_embeddings.weight, model.cls.predictions.bias):
            table[vocab_size:] = 0
    moments = {}
    for name, weight in model.named_parameters():
        for kind in ("exp_avg", "exp_avg_sq"):
            values = torch.rand(weight.shape)
            values[vocab_size:] = 0 if weight.shape[0] == config.padded_vocab_size else values[vocab_size:]
            moments[f"{kind}/{name}"] = StoredTensor.of(values)
    return replace(checkpoint_of(model), moments=moments, updates=7, optimiser="lamb-mlperf")


def checkpoint_of(model: HeadedBert) -> Checkpoint:
    """Return a checkpoint of the model's weights."""
    weights = {name: StoredTensor.of(tensor) for name, tensor in model.state_dict().items()}
    return Checkpoint(kind="model", path="model", config=model.config, weights=weights)
