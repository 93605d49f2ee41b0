"""The kit's RoBERTa and ModernBERT: outputs, losses and gradients of transformers' models."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tests.support.kit_models import KitBatch, gradients
from trainer.checkpoints.any_checkpoint import StoredTensor, unpad_vocabulary
from trainer.checkpoints.filling import fill_model
from trainer.checkpoints.formats.huggingface import read_huggingface
from trainer.checkpoints.formats.modernbert import to_modernbert
from trainer.checkpoints.formats.roberta import to_roberta
from trainer.data.batches import Batch
from trainer.devices.cpu import cpu_attention
from trainer.model.headed import BertForMaskedLM
from trainer.model.padded_attention import padded_attention

TO_THEIRS = {"roberta": to_roberta, "modernbert": to_modernbert}
ATTENTION = {"processor": cpu_attention, "any device": padded_attention}
FORMS = (*ATTENTION, "rows")


def filled(path: Path) -> BertForMaskedLM:
    """The model of a directory in transformers' form. Each of its weights is in the file."""
    checkpoint = read_huggingface(str(path))
    model = BertForMaskedLM(checkpoint.expect_config()).eval()
    assert fill_model(model, checkpoint) == []
    return model


def given(batch: KitBatch, form: str, model: BertForMaskedLM) -> tuple[Batch, Tensor]:
    """The batch in that form, and the rows of its tokens."""
    if form == "rows":
        return batch.rows(), batch.real().nonzero()[:, 0]
    model.bert.attention = ATTENTION[form]
    return batch.flat(), torch.arange(len(batch.expected("input_ids")))


def close(found: Tensor, expected: Tensor) -> bool:
    return torch.allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", TO_THEIRS)
@torch.no_grad()
def test_hidden_states_logits_and_losses_are_the_originals(kit, name, number, form):
    place = kit / "encoders" / "models" / name
    model, batch = filled(place), KitBatch(place, number)
    made, tokens = given(batch, form, model)
    states = [model.bert.embed(made)]
    for layer in model.bert.encoder.layer:
        states.append(type(states[0])(*layer(*states[-1], model.bert.sequences(made))))
    for layer, state in enumerate(states):
        is_last = layer == len(states) - 1
        assert close((state.normed if is_last else state.rows)[tokens], batch.expected(f"hidden_{layer}"))
    logits = model(made).masked_lm[tokens, : model.config.vocab_size]
    assert close(logits, batch.expected("logits"))
    loss = cross_entropy(logits, batch.expected("labels").long())
    assert close(loss, batch.expected("loss"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TO_THEIRS)
def test_norm_and_sum_of_each_gradient_are_the_originals(kit, name, form):
    place = kit / "encoders" / "models" / name
    model, batch = filled(place), KitBatch(place, 0)
    made, tokens = given(batch, form, model)
    logits = model(made).masked_lm[tokens, : model.config.vocab_size]
    cross_entropy(logits, batch.expected("labels").long()).backward()
    found = {name: StoredTensor.of(weight.grad) for name, weight in model.named_parameters()}
    ours = TO_THEIRS[name](unpad_vocabulary(found, model.config), model.config)
    expected = gradients(place)
    assert ours.keys() == expected.keys()
    for name, (norm, total) in expected.items():
        values = ours[name].read().double()
        bound = 1e-5 * norm + 1e-7  # the biases of a RoBERTa's keys have no gradient but rounding, some 1e-9
        assert float(values.norm()) == pytest.approx(norm, rel=0, abs=bound), name
        assert float(values.sum()) == pytest.approx(total, rel=0, abs=bound), name
