"""The model on packed rows: outputs of Habana's and Graphcore's packed models, and of single sequences."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from bertdata.records import ShardLayout
from tests.support.packed_data import pack_in_turn
from trainer.checkpoints.source import read_weights_into
from trainer.config.model import ModelConfig
from trainer.config.model_kinds import read_model_config
from trainer.data.batches import Batch, FlatBatch
from trainer.data.evaluation import load_evaluation_batches, make_evaluation_form
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.load_packing import RowsPackedAtLoad
from trainer.data.loader import Loader
from trainer.data.packs import PackRows
from trainer.data.row_batches import RowBatch
from trainer.devices.cpu import cpu_attention
from trainer.model.headed import BertForPreTraining
from trainer.tasks.pretraining import compute_pretraining_loss


@pytest.fixture(scope="module")
def model(kit) -> BertForPreTraining:
    """The weights of both packed models, with exact GELU."""
    place = kit / "checkpoints" / "pytorch_nvidia"
    model = BertForPreTraining(read_model_config(json.loads((place / "bert_config.json").read_text())))
    assert read_weights_into(model, str(place / "ckpt_0.pt")) == []
    return model.eval()


def load(kit, program: str) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """A program's inputs and outputs."""
    found = (np.load(kit / "packed_model" / f"{program}_{kind}.npz") for kind in ("inputs", "outputs"))
    inputs, outputs = ({name: torch.from_numpy(file[name]) for name in file.files} for file in found)
    return inputs, outputs


def habana(inputs: dict[str, torch.Tensor]) -> RowBatch:
    used = inputs["masked_lm_positions"] > 0  # the first 0 ends the list
    return RowBatch(
        input_ids=inputs["input_ids"],
        token_type_ids=inputs["segment_ids"],
        attention_mask=inputs["input_mask"],
        position_ids=inputs["positions"],
        masked_lm_positions=inputs["masked_lm_positions"],
        masked_lm_ids=inputs["masked_lm_ids"],
        masked_lm_weights=used.float(),
        next_sentence_positions=inputs["next_sentence_positions"],
        next_sentence_labels=torch.where(
            inputs["next_sentence_weights"] > 0, inputs["next_sentence_labels"], -1
        ),
    )


def graphcore(inputs: dict[str, torch.Tensor]) -> RowBatch:
    """The [CLS] of sequence k stands at slot -k, and belongs to row 3 - k of the outputs."""
    rows, length = inputs["packed_input_ids"].shape
    labels, there = inputs["packed_next_sentence_labels"], inputs["packed_next_sentence_mask"] > 0
    return RowBatch(
        input_ids=inputs["packed_input_ids"],
        token_type_ids=inputs["packed_segment_ids"],
        attention_mask=inputs["packed_input_mask"],
        position_ids=inputs["packed_position_ids"],
        masked_lm_positions=inputs["packed_masked_lm_positions"],
        masked_lm_ids=inputs["packed_masked_lm_ids"],
        masked_lm_weights=(inputs["packed_masked_lm_mask"] > 0).float(),
        next_sentence_positions=torch.arange(length - 3, length, dtype=torch.int32).expand(rows, 3),
        next_sentence_labels=torch.where(there, labels, -1),
    )


@pytest.mark.parametrize(
    ("program", "read", "words"), [("habana", habana, 216), ("graphcore", graphcore, 211)]
)
def test_outputs_and_losses_are_those_of_the_packed_models(kit, model, program, read, words):
    inputs, outputs = load(kit, program)
    batch = read(inputs)
    with torch.no_grad():
        tokens, pooled = model.bert(batch)
        logits = model(batch)
    there = batch.next_sentence_labels >= 0
    real = batch.attention_mask > 0
    assert_close(tokens.view_as(outputs["sequence_output_last"])[real], outputs["sequence_output_last"][real])
    assert_close(pooled.view_as(outputs["pooled_output"])[there], outputs["pooled_output"][there])
    pairs = F.log_softmax(logits.next_sentence, 1).view_as(outputs["next_sentence_log_probs"])
    assert_close(pairs[there], outputs["next_sentence_log_probs"][there])
    used = batch.masked_lm_weights > 0
    guesses = F.log_softmax(logits.masked_lm[:, :words], 1).view_as(outputs["masked_lm_log_probs"])
    assert_close(guesses[used], outputs["masked_lm_log_probs"][used])
    if program == "habana":  # Graphcore's padded vocabulary is smaller
        loss = compute_pretraining_loss(logits, batch)
        assert_close(loss.loss, outputs["total_loss"])
        means = loss.sums[::2] / loss.sums[1::2]
        assert_close(means[0], outputs["masked_lm_loss"])
        assert_close(means[2], outputs["next_sentence_loss"])
    else:
        pairs_loss = F.cross_entropy(
            logits.next_sentence[there.ravel()], batch.next_sentence_labels[there].long()
        )
        assert_close(pairs_loss, outputs["next_sentence_loss"])
        words_loss = F.cross_entropy(
            logits.masked_lm[:, :words][used.ravel()], batch.masked_lm_ids[used].long()
        )
        assert_close(words_loss, outputs["masked_lm_loss"])


def assert_close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


# --- packed and not


LAYOUT = ShardLayout(max_seq_length=32, max_predictions_per_seq=5)
PLAIN = generate_data(LAYOUT, vocabulary_size=150, fill=0.4, files=1, examples=24)
SHAPE = ModelConfig(
    vocab_size=150,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=48,
    max_position_embeddings=32,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def losses_and_gradients(batch: Batch) -> tuple[list[float], list[torch.Tensor]]:
    torch.manual_seed(0)
    model = BertForPreTraining(SHAPE)
    model.bert.attention = cpu_attention
    for weight in model.parameters():  # larger than at the start of a training, so that attention matters
        torch.nn.init.normal_(weight, std=0.2)
    outcome = compute_pretraining_loss(model(batch), batch)
    outcome.loss.backward()
    return [outcome.loss.item(), *outcome.sums.tolist()], [weight.grad for weight in model.parameters()]


def batches() -> dict[str, Batch]:
    """The same sequences: each in a padded row, flat, in packed rows, packed and flat, packed at load."""
    found = {}
    packed = pack_in_turn(PLAIN)
    at_load = RowsPackedAtLoad(PLAIN, window=24, sequences_per_row=5)
    for kind, rows in (("packed", PackRows(packed)), ("at load", at_load)):
        count = packed.shards[0].rows
        if rows is at_load:
            loader = Loader(rows, form=make_form(rows, batch_size=1, padded=True), batch_size=1)
            count = next(number for number, update in enumerate(loader, 1) if update.position.epoch)
            loader.close()
        for padded in (True, False):
            form = make_form(rows, batch_size=count, padded=padded)
            loader = Loader(rows, form=form, batch_size=count)
            found[f"{kind}, {'rows' if padded else 'flat'}"] = next(loader).batches[0]
            loader.close()
    for padded in (True, False):
        form = make_evaluation_form(packed, batch_size=24, padded=padded)
        found["rows" if padded else "flat"] = next(load_evaluation_batches(PLAIN, form=form, batch_size=24))
    return found


def test_losses_and_gradients_are_those_of_the_same_sequences_not_packed():
    found = batches()
    assert isinstance(found["packed, rows"], RowBatch)
    assert isinstance(found["at load, flat"], FlatBatch)
    assert len(found["packed, rows"].input_ids) < 20, "the rows hold several sequences"
    wanted_losses, wanted_gradients = losses_and_gradients(found.pop("rows"))
    assert max(gradient.abs().max() for gradient in wanted_gradients) > 0.01
    for kind, batch in found.items():
        losses, gradients = losses_and_gradients(batch)
        assert losses == pytest.approx(wanted_losses, rel=1e-5), kind
        for gradient, wanted in zip(gradients, wanted_gradients, strict=True):
            torch.testing.assert_close(gradient, wanted, rtol=1e-5, atol=1e-5, msg=kind)


def test_a_sequence_of_a_row_does_not_see_the_others():
    """The block mask: other ids in one sequence change the outputs of this sequence alone."""
    batch = batches()["packed, rows"]
    torch.manual_seed(0)
    model = BertForPreTraining(SHAPE).eval()
    second = batch.attention_mask == 2
    changed = dataclasses.replace(batch, input_ids=torch.where(second, 7, batch.input_ids))
    with torch.no_grad():
        before, after = (model.bert(one)[0].view(*second.shape, -1) for one in (batch, changed))
    assert torch.equal(before[~second], after[~second])
    assert not torch.isclose(before[second], after[second]).all(dim=1).any()
    assert second.any()
