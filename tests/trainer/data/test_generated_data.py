"""Examples that are generated: the sizes that they may have."""

import pytest

from bertdata.errors import SettingsError
from bertdata.records import ShardLayout
from trainer.config.settings import Config
from trainer.data.generated import generate_data, make_configured_data


@pytest.mark.parametrize("masks", [1, 30])
def test_an_example_may_be_masked_whole_but_for_its_two_special_tokens(masks: int) -> None:
    layout = ShardLayout(max_seq_length=32, max_predictions_per_seq=masks)
    data = generate_data(layout, vocabulary_size=100, files=1, examples=4)
    (batch,) = data.batches(data.shards[0])
    assert batch.mask_ends.tolist() == [masks, 2 * masks, 3 * masks, 4 * masks]
    positions = batch.positions.reshape(4, masks)
    assert all(min(row) >= 1 and max(row) <= 30 and len(set(row)) == masks for row in positions.tolist())


@pytest.mark.parametrize("masks", [0, 31])
def test_other_numbers_of_masked_words_are_refused(masks: int) -> None:
    layout = ShardLayout(max_seq_length=32, max_predictions_per_seq=masks)
    message = rf"max_predictions_per_seq is {masks}, expected 1 to max_seq_length - 2 \(30\)"
    with pytest.raises(SettingsError, match=message):
        generate_data(layout, vocabulary_size=100)


@pytest.mark.parametrize(("length", "masks"), [(None, 20), (22, 20), (21, 3), (16, 2), (5, 1)])
def test_short_examples_have_fewer_masks_unless_a_number_is_given(length: int | None, masks: int) -> None:
    keys = {"generated_data": True, "max_seq_length": length}
    assert make_configured_data(Config.of(**keys)).layout.max_predictions_per_seq == masks
    with pytest.raises(SettingsError, match="max_predictions_per_seq is 40, expected 1 to"):
        make_configured_data(Config.of(**keys | {"max_seq_length": 40, "max_predictions_per_seq": 40}))


@pytest.mark.parametrize("fill", [0.0, 1.1])
def test_other_fractions_of_the_length_are_refused(fill: float) -> None:
    layout = ShardLayout(max_seq_length=32, max_predictions_per_seq=5)
    with pytest.raises(SettingsError, match=rf"fill is {fill:g}, expected 0\.2 to 1"):
        generate_data(layout, vocabulary_size=100, fill=fill)


def test_without_other_settings_there_are_8_files_of_4096_examples() -> None:
    data = generate_data(ShardLayout(max_seq_length=32, max_predictions_per_seq=5), vocabulary_size=100)
    assert [shard.examples for shard in data.shards] == [4096] * 8


@pytest.mark.parametrize(("given", "expected"), [({}, 30522), ({"vocab_size": 2000}, 2000)])
def test_the_ids_are_those_of_the_configured_model(given: dict[str, int], expected: int) -> None:
    assert make_configured_data(Config.of(**given)).vocabulary_size == expected
