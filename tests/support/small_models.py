"""A small model, batches for it, and the same model in transformers to compare with."""

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from torch.nn import functional as F

from tests.support.padded_examples import PaddedExamples
from trainer.config.model import ModelConfig
from trainer.devices.cpu import cpu_attention
from trainer.model.headed import BertForPreTraining
from trainer.tasks.pretraining import compute_pretraining_loss

SMALL = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "initializer_range": 0.2,
}
B, S, P = 5, 24, 6


def make_batch(seed: int = 0, padded: bool = True) -> PaddedExamples:
    """Return sequences of several lengths.

    Each has 1 to P masked positions, and its last slots are unused.
    """
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(8, S + 1, (B,), generator=draw) if padded else torch.full((B,), S)
    real = (torch.arange(S) < lengths[:, None]).int()
    used = torch.randint(1, P + 1, (B,), generator=draw)
    filled = torch.arange(P) < used[:, None]
    positions = torch.stack([torch.randperm(8, generator=draw)[:P].sort().values for _ in range(B)])
    ids = torch.randint(1, SMALL["vocab_size"], (B, P), generator=draw)
    return PaddedExamples(
        input_ids=(torch.randint(1, SMALL["vocab_size"], (B, S), generator=draw) * real).int(),
        token_type_ids=((torch.arange(S) >= 5) * real).int(),
        attention_mask=real,
        masked_lm_positions=(positions * filled).int(),
        masked_lm_ids=(ids * filled).int(),
        masked_lm_weights=filled.float(),
        next_sentence_labels=torch.randint(0, 2, (B,), generator=draw).int(),
    )


def ours(seed: int = 0, **changes: Any) -> BertForPreTraining:
    """Return a small model in evaluation mode. None of its parameters is exactly zero or one."""
    torch.manual_seed(seed)
    model = BertForPreTraining(ModelConfig(**{**SMALL, **changes})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn(len(parameter))
                if name.endswith("predictions.bias"):
                    parameter[SMALL["vocab_size"] :] = 0
    return model


def in_transformers(model: BertForPreTraining) -> transformers.BertForPreTraining:
    """Return transformers' model with the same weights, in evaluation mode.

    The vocabulary's padding is left out.
    """
    made = transformers.BertForPreTraining(transformers.BertConfig(**model.config.as_json()))
    own = made.state_dict()
    weights = {name: weight[: len(own[name])] for name, weight in model.state_dict().items()}
    found = made.load_state_dict(weights, strict=False)
    assert not found.unexpected_keys
    assert set(found.missing_keys) <= {
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
    }  # tied
    return made.eval()


def answers_of(model: transformers.BertForPreTraining, batch: PaddedExamples) -> Any:
    return model(
        input_ids=batch.input_ids.long(),
        attention_mask=batch.attention_mask.long(),
        token_type_ids=batch.token_type_ids.long(),
        labels=labels_of(batch),
        next_sentence_label=batch.next_sentence_labels.long(),
    )


def labels_of(batch: PaddedExamples) -> Tensor:
    """Return the labels in transformers' form: -100 where nothing is masked."""
    labels = torch.full((B, S), -100)
    for row, slot in batch.masked_lm_weights.nonzero().tolist():
        labels[row, batch.masked_lm_positions[row, slot]] = int(batch.masked_lm_ids[row, slot])
    return labels


def assert_equal_transformers(
    model: BertForPreTraining, given: Any, examples: PaddedExamples, slots: Tensor
) -> None:
    """Assert that logits, losses and gradients equal those of transformers for the same examples.

    given: the batch that this trainer's model takes.
    slots: numbers of its masked slots among the (B * S) tokens.
    """
    other = in_transformers(model)
    wanted = answers_of(other, examples)
    logits = model(given)
    losses = compute_pretraining_loss(logits, given)
    words = wanted.prediction_logits.flatten(0, 1)[slots]
    torch.testing.assert_close(logits.masked_lm[:, :99], words, rtol=0, atol=1e-5)
    torch.testing.assert_close(logits.next_sentence, wanted.seq_relationship_logits, rtol=0, atol=1e-5)
    torch.testing.assert_close(losses.loss, wanted.loss, rtol=0, atol=1e-5)
    word_sum, count, _, _, pair_sum, pairs, _, _ = losses.sums
    torch.testing.assert_close(word_sum / count + pair_sum / pairs, wanted.loss.detach(), rtol=0, atol=1e-5)
    losses.loss.backward()
    wanted.loss.backward()
    gradients = dict(other.named_parameters())
    for name, parameter in model.named_parameters():
        found = parameter.grad[:99] if len(parameter) == 104 else parameter.grad
        torch.testing.assert_close(found, gradients[name].grad, rtol=1e-4, atol=1e-5, msg=name)


def assert_norms_in_32_bits(model: BertForPreTraining, batch: Any) -> None:
    """Assert that bf16 autocast keeps residuals in 16 bits and norms in 32, with close values."""
    model.bert.attention = cpu_attention
    seen = []
    for layer in model.bert.encoder.layer:
        layer.register_forward_hook(lambda module, inputs, output: seen.append([one.dtype for one in output]))
    kernel, computed = F.layer_norm, []

    def layer_norm(rows, *options):
        computed.append(rows.dtype)
        return kernel(rows, *options)

    with pytest.MonkeyPatch.context() as patch, torch.autocast("cpu", torch.bfloat16):
        patch.setattr(F, "layer_norm", layer_norm)
        logits = model(batch)
    assert seen == [[torch.bfloat16, torch.bfloat16]] * SMALL["num_hidden_layers"]
    assert set(computed) == {torch.float32}
    exact = model(batch)
    difference = (logits.masked_lm - exact.masked_lm)[:, : SMALL["vocab_size"]].norm()
    assert difference < 0.05 * exact.masked_lm[:, : SMALL["vocab_size"]].norm()
    outcome = compute_pretraining_loss(logits, batch)
    outcome.loss.backward()
    assert all(weight.grad.dtype == torch.float32 for weight in model.parameters())
