"""Micro-batches padded to the longest of them: the model computes the same for all that was there."""

import pytest
import torch

from bertdata.records import ShardLayout
from trainer.config.model import ModelConfig
from trainer.data.batches import Batch, FlatBatch
from trainer.data.evaluation import load_evaluation_batches
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.generated import generate_data
from trainer.data.padded_rows import RowForm
from trainer.devices.cpu import cpu_attention
from trainer.model.headed import BertForPreTraining
from trainer.splitting.stage import count_tokens, pad_to_same_length

SHAPE = ModelConfig(
    vocab_size=203, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=64
)
LAYOUT = ShardLayout(max_seq_length=64, max_predictions_per_seq=10)


@pytest.fixture(scope="module")
def batches() -> dict[str, list[Batch]]:
    """Micro-batches of several lengths, by form."""
    data = generate_data(LAYOUT, vocabulary_size=SHAPE.vocab_size, fill=0.4)
    forms = {
        "flat": make_form(Rows(data), batch_size=2, token_budget=16),
        "rows": RowForm(width_step=8),
    }
    return {
        name: list(load_evaluation_batches(data, form=form, batch_size=2, limit=12))
        for name, form in forms.items()
    }


@pytest.mark.parametrize("form", ["flat", "rows"])
def test_all_have_the_length_of_the_longest_and_that_one_stays(form, batches):
    made = pad_to_same_length(batches[form])
    longest = max(map(count_tokens, batches[form]))
    assert min(map(count_tokens, batches[form])) < longest
    assert {count_tokens(batch) for batch in made} == {longest}
    for before, after in zip(batches[form], made, strict=True):
        assert (after is before) == (count_tokens(before) == longest)


@pytest.mark.parametrize("form", ["flat", "rows"])
def test_the_model_finds_the_same_words_and_pairs(form, batches):
    model = BertForPreTraining(SHAPE, cpu_attention).eval()
    with torch.no_grad():
        for before, after in zip(batches[form], pad_to_same_length(batches[form]), strict=True):
            wanted, found = model(before), model(after)
            used = before.masked_lm_weights.reshape(-1) > 0
            torch.testing.assert_close(found.masked_lm[used], wanted.masked_lm[used], rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(found.next_sentence, wanted.next_sentence, rtol=1e-5, atol=1e-5)
            assert torch.equal(after.masked_lm_ids, before.masked_lm_ids)


def test_padding_of_flat_batches_makes_up_sequences_of_its_own(batches):
    for before, after in zip(batches["flat"], pad_to_same_length(batches["flat"]), strict=True):
        assert isinstance(after, FlatBatch)
        assert after.tokens == before.tokens
        assert after.ends[-1] == len(after.input_ids) == len(after.position_ids) == len(after.token_type_ids)
        assert torch.equal(after.ends[: len(before.ends)], before.ends)
        sizes = after.ends.diff()
        assert int(sizes.max()) <= after.longest
        wanted = torch.cat([torch.arange(size, dtype=torch.int32) for size in sizes.tolist()])
        assert torch.equal(after.position_ids, wanted)
        assert not after.input_ids[before.tokens :].any()


def test_only_longer_batches_are_prepared_again(batches):
    prepared = []

    def prepare(batch):
        prepared.append(batch)
        return batch

    made = pad_to_same_length(batches["flat"], prepare)
    assert prepared == [
        after for before, after in zip(batches["flat"], made, strict=True) if after is not before
    ]
